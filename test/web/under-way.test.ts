import type { Locator, Page, Route } from "playwright-core";
import { recordMeeting } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { recordPastMeetings, state } from "./support/steps";

// Seen red: the button looked as before, the dialog went, and what was to be kept was gone seconds later.

let page: Page;

const product = useStarted(startConnected);
beforeEach(async () => {
  page = await product.signIn("admin");
});

const line = (title: string) => page.getByRole("listitem").filter({ has: page.getByRole("link", { name: title }) });
const dialog = () => page.getByRole("dialog");
const button = (name: string) => dialog().getByRole("button", { name, exact: true });

/** A request that waits until it is said what becomes of it. */
async function holdBack(operation: string): Promise<(end: (route: Route) => Promise<unknown>) => void> {
  let go: (end: (route: Route) => Promise<unknown>) => void = () => undefined;
  const ended = new Promise<(route: Route) => Promise<unknown>>((release) => {
    go = release;
  });
  await page.route("**/graphql", async (route) => {
    if (!route.request().postData()?.includes(`mutation ${operation}`)) return route.fallback();
    await (await ended)(route);
  });
  return (end) => go(end);
}

const passes = (route: Route) => route.continue();

/** Neither the button nor the keyboard closes what waits for its answer; the browser itself closes a dialog at a second Escape. */
async function isHeld(busy: Locator, keep: Locator): Promise<void> {
  await busy.waitFor();
  expect(await keep.isDisabled()).toBe(true);
  for (const _ of [1, 2, 3]) await page.keyboard.press("Escape");
  // Where the browser has closed it, it opens again within a frame or two.
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  await page.locator("dialog[open]").waitFor();
  expect(await busy.isVisible()).toBe(true);
  expect(await page.evaluate("getComputedStyle(document.querySelector('[aria-busy=true]')).cursor")).toBe("progress");
  expect(await findings(page)).toEqual([]);
}

async function ask(what: "Cancel" | "Delete", title: string): Promise<void> {
  await recordMeeting(product.service, [product.simulator.company.stories.singleDeal.email], { title });
  await page.getByRole("link", { name: "Meetings" }).click();
  await line(title).getByRole("button", { name: what }).click();
}

test("a meeting that is being deleted is shown as that, cannot be kept any more, and a late refusal is told", async () => {
  await ask("Delete", "Gone soon");
  const end = await holdBack("DeleteMeeting");
  await button("Delete for good").click();
  await isHeld(button("Deleting …"), button("Keep it"));
  const refusal = { __typename: "Refusal", code: "NOT_ALLOWED_FOR_ROLE", message: "Not yours to delete." };
  end((route) => route.fulfill({ json: { data: { deleteMeeting: refusal } } }));
  await dialog().getByRole("alert").filter({ hasText: "Not yours to delete." }).waitFor();
  await button("Delete for good").waitFor();
  await button("Keep it").click();
  await dialog().waitFor({ state: "detached" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await line("Gone soon").getByRole("button", { name: "Delete" }).click();
  await button("Delete for good").click();
  await line("Gone soon").waitFor({ state: "detached" });
});

test("so is one that is being cancelled", async () => {
  await ask("Cancel", "Off soon");
  const end = await holdBack("CancelMeeting");
  await button("Cancel the meeting").click();
  await isHeld(button("Cancelling …"), button("Keep it"));
  end(passes);
  await line("Off soon").waitFor({ state: "detached" });
});

// Seen red: it was closed, and a refusal was told to nobody.
test("a deal that is being snoozed or woken is shown as that, and a late refusal is told", async () => {
  await recordPastMeetings(product);
  await page.getByRole("link", { name: "Quiet deals" }).click();
  const row = page.getByRole("row").filter({ has: page.getByRole("button", { name: "Snooze" }) });
  await row.first().getByRole("button", { name: "Snooze" }).click();
  await dialog().getByRole("textbox", { name: "Why it is quiet" }).fill("Holidays.");
  const end = await holdBack("SnoozeDeal");
  await button("Snooze").click();
  await isHeld(button("Snooze"), button("Close"));
  const refusal = { __typename: "Refusal", code: "NOT_ALLOWED_FOR_ROLE", message: "Not yours to snooze." };
  end((route) => route.fulfill({ json: { data: { snoozeDeal: refusal } } }));
  await dialog().getByRole("alert").filter({ hasText: "Not yours to snooze." }).waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await button("Snooze").click();
  await dialog().waitFor({ state: "detached" });
  await page.getByRole("checkbox", { name: "Snoozed ones" }).check();
  await page.getByRole("button", { name: "Wake" }).first().click();
  const wake = await holdBack("WakeDeal");
  await button("Wake it").click();
  await isHeld(button("Wake it"), button("Close"));
  wake(passes);
  await dialog().waitFor({ state: "detached" });
});

// Seen red, in Firefox for as long as the other page took: "The service cannot be reached".
test("what the browser ends because another page is asked for is told to nobody but who stays", async () => {
  const problem = page.getByRole("alert").filter({ hasText: "The service cannot be reached" });
  await page.getByText("Connected account").waitFor();
  await page.route("**/graphql", (route) => route.abort());
  await page.evaluate("window.dispatchEvent(new Event('beforeunload', { cancelable: true }))");
  await page.getByRole("link", { name: "Quiet deals" }).click();
  await page.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
  await page.waitForTimeout(1_000);
  expect(await problem.count()).toBe(0);
  await problem.waitFor();
});

test("a connection that is being ended cannot be kept any more", async () => {
  await page.getByRole("link", { name: "CRM connection", exact: true }).click();
  await page.getByRole("button", { name: "Disconnect …" }).click();
  const end = await holdBack("Disconnect");
  await button("Disconnect and delete the copy").click();
  await isHeld(button("Disconnecting …"), button("Keep it connected"));
  end(passes);
  await state(page, "Not connected").waitFor();
});
