import type { Page } from "playwright-core";
import type { Fault } from "../../simulator/server/faults";
import { fieldOf, heldIn, patches, setMapping } from "../support/fields";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { openNewMeeting } from "./support/steps";

// A value of which the CRM did not answer whether it holds it.

let page: Page;

const product = useStarted(startConnected);
beforeEach(async () => {
  product.simulator.control.clearFaults();
  page = await product.signIn("admin");
});
afterEach(() => page.context().close());

const form = () => page.getByRole("form", { name: "Nominated fields" });
const write = () => form().getByRole("button", { name: "Write the fields" });
const isWritten = (record: string) =>
  form()
    .getByRole("status")
    .getByRole("listitem")
    .filter({ hasText: record })
    .getByText("Written", { exact: true })
    .waitFor();
const text = () => form().getByLabel(/\(Long text\)/);
const held = () => {
  const { simulator } = product;
  return heldIn(
    simulator,
    "DEAL",
    simulator.company.stories.singleDeal.dealId,
    fieldOf(simulator, "DEAL", "text").field_code,
  );
};
const LONG = "What was said at length. ".repeat(2_000).trim();
const NOT_KNOWN = "We do not know yet whether this was written";

/** @param crm what the CRM answers to the long text of the deal */
async function sendUnknown(crm: Fault): Promise<void> {
  const { service, simulator } = product;
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "text").field_code);
  await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", "varchar").field_code);
  await openNewMeeting(product, page, [simulator.company.stories.singleDeal.email]);
  simulator.control.fail({ match: "/api/v2/deals/", method: "PATCH", times: 2, with: crm });
  await text().fill(LONG);
  await write().click();
  await form().getByText(NOT_KNOWN).waitFor();
}

// Seen red: the field was emptied, and minutes later it was said to be not written.
test("what may be written stays in its field, locked, and can be written again once it is known not to be", async () => {
  await sendUnknown({ status: 503 });
  await page.reload();
  await form().getByText(NOT_KNOWN).waitFor();
  expect([await text().inputValue(), await text().isEnabled(), await write().isEnabled()]).toEqual([
    LONG,
    false,
    false,
  ]);
  expect(await findings(page)).toEqual([]);
  await form()
    .getByLabel(/\(Text\)/)
    .fill("Decides");
  await write().click();
  await isWritten("Marta");
  expect(patches(product.simulator).filter(({ path }) => path.includes("/deals/"))).toHaveLength(2);
  await product.database.query(
    "UPDATE field_write SET state = 'FAILED', settled_at = now(), next_look_up_at = NULL WHERE state = 'UNKNOWN'",
  );
  await text().and(page.locator(":enabled")).waitFor();
  expect(await text().inputValue()).toBe(LONG);
  await write().click();
  await isWritten("Halden");
  expect([held(), await text().inputValue()]).toEqual([LONG, ""]);
});

test("it goes from its field once it is known to be written", async () => {
  await sendUnknown({ kind: "failAfter", status: 503 });
  await form().getByText(NOT_KNOWN).waitFor({ state: "detached" });
  expect([held(), await text().inputValue()]).toEqual([LONG, ""]);
});

test("who edits it can write it again, though nobody knows yet whether it is written", async () => {
  await sendUnknown({ status: 503 });
  await form().getByRole("button", { name: "Edit" }).click();
  await form().getByText(NOT_KNOWN).waitFor({ state: "detached" });
  expect(await text().inputValue()).toBe(LONG);
  await text().fill("In short.");
  await write().click();
  await isWritten("Halden");
  expect([held(), await text().inputValue()]).toEqual(["In short.", ""]);
});
