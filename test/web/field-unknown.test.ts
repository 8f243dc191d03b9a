import type { Page } from "playwright-core";
import type { Fault } from "../../simulator/server/faults";
import { fieldOf, heldIn, patches, setMapping } from "../support/fields";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { fieldForm, openNewMeeting } from "./support/steps";

// A value of which the CRM did not answer whether it holds it.

let page: Page;

const product = useStarted(startConnected);
beforeEach(async () => {
  product.simulator.control.clearFaults();
  page = await product.signIn("admin");
});

const form = () => fieldForm(page).form;
const write = () => fieldForm(page).write;
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
async function sendUnknown(crm: Fault, story: "singleDeal" | "severalDeals" = "singleDeal"): Promise<void> {
  const { service, simulator } = product;
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "text").field_code);
  await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", "varchar").field_code);
  await openNewMeeting(product, page, [simulator.company.stories[story].email]);
  if (story === "severalDeals")
    await page
      .getByRole("button", { name: /^Choose / })
      .first()
      .click();
  simulator.control.fail({ match: "/api/v2/deals/", method: "PATCH", times: 2, with: crm });
  await text().fill(LONG);
  await write().click();
  await form().getByText(NOT_KNOWN).waitFor();
}

const fail = () =>
  product.database.query(
    "UPDATE field_write SET state = 'FAILED', settled_at = now(), next_look_up_at = NULL WHERE state = 'UNKNOWN'",
  );

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
  await fail();
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

// Seen red: it was shown as on the other deal, and overwrote its field once somebody wrote the person's.
test("what was sent for one deal does not go to another that is chosen by then, unless it is changed there", async () => {
  await sendUnknown({ status: 503 }, "severalDeals");
  await page.getByText("It is about another deal").click();
  const other = page.getByRole("button", { name: /^Choose / }).first();
  const title = (await other.getAttribute("aria-label"))?.replace("Choose ", "") ?? "";
  await other.click();
  await page.getByRole("heading", { level: 2, name: title }).waitFor();
  await form().getByText("Filled in for another deal").waitFor();
  expect(await findings(page)).toEqual([]);
  await fail();
  await text().and(page.locator(":enabled")).waitFor();
  const before = patches(product.simulator).length;
  await form()
    .getByLabel(/\(Text\)/)
    .fill("Decides");
  await write().click();
  await form().getByRole("status").getByText("Written", { exact: true }).waitFor();
  const since = () => patches(product.simulator).slice(before);
  expect(since().map(({ path }) => path.split("/")[3])).toEqual(["persons"]);
  expect([await text().inputValue(), await write().isEnabled()]).toEqual([LONG, false]);
  await text().fill("For this one.");
  await form().getByText("Filled in for another deal").waitFor({ state: "detached" });
  await write().click();
  await isWritten(title);
});
