import { connect, recordMeeting, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { startProduct } from "./support/product";

const product = useStarted(startProduct);
const TITLE = "Framework contract";
const before = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

// Seen red: "No company" and "nobody" for a company that no attendee is of, and for an owner whom the CRM does not show.
test("of a company or an owner that cannot be read the page does not say that there is none", async () => {
  const { service, simulator } = product;
  const { control } = simulator;
  const email = "ada@consultants.example";
  const org_id = control.add("organization", { name: "Buyer Corp" });
  const person_id = control.add("person", { name: "Ada", emails: [{ value: email, primary: true, label: "work" }] });
  const owner_id = control.add("user", {});
  const old = `${before(60).slice(0, 19)}Z`;
  control.add("deal", { title: TITLE, person_id, org_id, owner_id, add_time: old, stage_change_time: old });
  control.hide("user", owner_id);
  await connect(service, simulator);
  await syncEnds(service);
  await recordMeeting(service, [email], { title: "With Ada", startsAt: before(40) });
  const page = await product.signIn("member");
  await page.getByRole("link", { name: "Meetings" }).first().click();
  await page.getByRole("link", { name: "With Ada" }).click();
  await page.getByRole("region", { name: TITLE }).getByText("Company not known").waitFor();
  await page.getByRole("region", { name: "People" }).getByText("Company not known").waitFor();
  await page.goto(`${service.url}/quiet`);
  const row = page.getByRole("row", { name: TITLE });
  await row.locator('[data-name="Owner"]').getByText("not known").waitFor();
  await row.getByRole("button", { name: "Snooze" }).click();
  const owner = page.getByRole("dialog").locator("dt", { hasText: "Owner" }).locator("xpath=following-sibling::dd[1]");
  expect(await owner.innerText()).toBe("not known");
});
