import { connect, recordMeeting, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { startProduct } from "./support/product";

const product = useStarted(startProduct);

test("tabs that were open before the CRM was connected show the deal by themselves", async () => {
  const { simulator, service } = product;
  const title = "Before the connect";
  const meeting = await recordMeeting(service, [simulator.company.stories.singleDeal.email], { title });
  for (let more = 0; more < 60; more += 1) await recordMeeting(service, [simulator.company.stories.ghosted.email]);
  const list = await product.signIn("member");
  await list.getByRole("link", { name: "Meetings" }).click();
  const line = list.getByRole("listitem").filter({ hasText: title });
  await line.waitFor();
  const briefing = await list.context().newPage();
  await briefing.goto(`${service.url}/meetings/${meeting.id}`);
  await briefing.getByRole("heading", { name: "No CRM is connected" }).waitFor();
  await connect(service, simulator);
  await syncEnds(service);
  await briefing.getByRole("region", { name: "Halden Freight A/S – annual licence" }).waitFor();
  await line.getByText("Halden Freight A/S – annual licence").waitFor();
});
