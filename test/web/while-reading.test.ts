import type { Page } from "playwright-core";
import { fieldOf, patches, setMapping } from "../support/fields";
import { posts } from "../support/notes";
import { connect, syncAgain, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startProduct } from "./support/product";
import { disconnected, fieldForm, noteForm, openNewMeeting } from "./support/steps";

let page: Page;
const product = useStarted(() => startProduct());

// Seen red: the first deal that had come stood there, and the note went on it.
test("while the CRM is read for the first time a person says where a note or a field goes; afterwards the match does", async () => {
  const { service, simulator, database } = product;
  const { email, dealId } = simulator.company.stories.singleDeal;
  // They come, and do not end.
  const mend = simulator.control.fail({ match: /\/api\/v[12]\/deals$/, with: { kind: "again" } });
  await connect(service, simulator);
  expect((await syncEnds(service)).state).toBe("FAILED");
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "text").field_code);
  page = await product.signIn("member");
  await openNewMeeting(product, page, [email]);
  const { form, text, write } = noteForm(page);
  await text.fill("Agreed.");
  await form.getByText("The CRM is still being read, and another record may come to be meant").waitFor();
  expect([await write.isEnabled(), await findings(page)]).toEqual([false, []]);
  const deal = (await form.locator("option", { hasText: "Deal: " }).textContent()) ?? "";
  await form.getByLabel("Write on").selectOption({ label: deal });
  await write.click();
  await form.getByText("Written", { exact: true }).waitFor();
  expect(posts(simulator).map(({ body }) => body)).toMatchObject([{ deal_id: dealId }]);
  await openNewMeeting(product, page, [email]);
  await form.getByText("another record may come to be meant").waitFor();
  const fields = fieldForm(page);
  await fields.form.getByLabel(/\(Long text\)/).fill("Agreed.");
  // Seen red: it named the deal by itself.
  await fields.form.getByText("Choose the deal: until then it is not written.").waitFor();
  expect([await fields.write.isEnabled(), await findings(page)]).toEqual([false, []]);
  mend();
  await syncAgain(service, database);
  await form.getByText(`On ${deal}`).waitFor();
  expect(await fields.write.isEnabled()).toBe(true);
});

// Seen red: it named the company that was there by itself, and the meeting had two.
test("while a company of somebody who attends is still to be read a person says on which a field is written", async () => {
  const { service, simulator } = product;
  await disconnected(product);
  const [known, unread] = ["dora", "emil"].map((name) => {
    const org_id = simulator.control.add("organization", { name: `${name} trading` });
    const email = `${name}@${name}-trading.example`;
    simulator.control.add("person", { name, org_id, emails: [{ value: email, primary: true, label: "work" }] });
    return { email, org_id };
  });
  const body = {
    success: true,
    data: [{ id: known?.org_id, name: "Known" }],
    additional_data: { next_cursor: "more" },
  };
  const pages = [{ with: { status: 200, body } }, { with: { status: 500 } }].map((page, at) => ({
    ...{ match: "/api/v2/organizations", ...page },
    where: ({ cursor }: Readonly<Record<string, string>>) => (cursor === undefined) === (at === 0),
  }));
  const mend = pages.map((page) => simulator.control.fail(page));
  await connect(service, simulator);
  expect((await syncEnds(service)).state).toBe("FAILED");
  await setMapping(service, "ORGANIZATION", fieldOf(simulator, "ORGANIZATION", "varchar").field_code);
  page = await product.signIn("member");
  await openNewMeeting(product, page, [known?.email ?? "", unread?.email ?? ""]);
  const { form, write } = fieldForm(page);
  await form.getByLabel(/\(Text\)/).fill("early");
  await form.getByText("Choose the organization: until then it is not written.").waitFor();
  expect([await write.isEnabled(), await findings(page)]).toEqual([false, []]);
  await form.getByLabel(/^Which organization gets/).selectOption({ label: "Known" });
  for (const end of mend) end();
  await write.click();
  await form.getByText("Written", { exact: true }).waitFor();
  expect(patches(simulator).map(({ path }) => path)).toEqual([`/api/v2/organizations/${known?.org_id}`]);
});
