import type { Page } from "playwright-core";
import { recordMeeting, syncAgain, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { answerWith, failed, focusIsKept, listen, noteForm, state } from "./support/steps";

const product = useStarted(startConnected);
let meetingId = "";
beforeAll(async () => {
  const { service, simulator } = product;
  const { email } = simulator.company.stories.singleDeal;
  const startsAt = "2026-11-20T16:58:00.000Z";
  meetingId = (await recordMeeting(service, [email], { title: "Walk through the proposal", startsAt })).id;
});

const focused = (page: Page) => page.evaluate("document.activeElement.id || document.activeElement.textContent");
const at = (path: string) => `${product.service.url}${path}`;

test("each page has a title of its own, is read out as it comes, and takes the focus", async () => {
  const page = await product.signIn("member");
  expect(await page.title()).toBe("CRM connection – Meeting Intelligence");
  for (const [link, title] of [
    ["Meetings", "Meetings"],
    ["Walk through the proposal", "Walk through the proposal"],
    ["Quiet deals", "Quiet deals"],
  ] as const) {
    await page.getByRole("link", { name: link, exact: true }).first().press("Enter");
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    await until(`the title is ${title}`, async () => (await page.title()) === `${title} – Meeting Intelligence`);
    expect(await focused(page)).toBe("main");
    await page.locator("[aria-live=polite]").filter({ hasText: title }).waitFor();
  }
});

// Seen red: "No deal", and nothing of an error; and lines of before as if they were still so.
test("a list of which a part, or that which is newer, could not be read says so, and of no deal that it is none", async () => {
  const reader = await product.signIn("member");
  const line = reader.getByRole("listitem").filter({ hasText: "Walk through the proposal" });
  const problem = reader.getByRole("region", { name: "Past" }).getByRole("alert").filter({ hasText: "Not now." });
  const withoutDeals = (answer: object) =>
    JSON.parse(JSON.stringify(answer), (key, value) => (key === "deal" ? null : value));
  await answerWith(reader, "query Meetings(", ({ data }) => failed("Not now.", withoutDeals(data)));
  await reader.goto(at("/meetings"));
  await problem.waitFor();
  await line.getByText("Not known", { exact: true }).waitFor();
  expect(await line.getByText("No deal").count()).toBe(0);
  expect(await findings(reader)).toEqual([]);
  await reader.unrouteAll({ behavior: "ignoreErrors" });
  await problem.getByRole("button", { name: "Try again" }).click();
  await problem.waitFor({ state: "detached" });
  await line.getByText("Halden Freight").waitFor();
  await answerWith(reader, "query Meetings(", () => failed("Not now."));
  await syncAgain(product.service, product.database);
  await problem.waitFor();
  await line.getByText("Halden Freight").waitFor();
  await reader.context().close();
});

test("signing in leads back to the address that was asked for, with what is in it", async () => {
  const page = await product.openSignedOut();
  await page.goto(at("/quiet?verdict=GHOSTED&min=1000"));
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Max Member" }).click();
  await page.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
  expect(page.url()).toBe(at("/quiet?verdict=GHOSTED&min=1000"));
});

test.each(["https://elsewhere.example/", "//elsewhere.example/quiet", "javascript:alert(1)", "http://["])(
  "nobody is led to %s after signing in",
  async (returnTo) => {
    const address = `${product.host.url}/sign-in/member?return_to=${encodeURIComponent(returnTo)}`;
    const answer = await fetch(address, { method: "POST", redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, product.service.url]);
  },
);

test("an address that leads nowhere is a page that says so and leads on, and is not found for programs", async () => {
  const page = await product.signIn("member");
  const answer = await page.goto(at("/elsewhere/and/further"));
  expect(answer?.status()).toBe(404);
  expect(answer?.headers()["content-security-policy"]).toContain("default-src 'none'");
  await page.getByRole("heading", { level: 1, name: "There is no such page" }).waitFor();
  expect(await page.title()).toBe("There is no such page – Meeting Intelligence");
  expect(await findings(page)).toEqual([]);
  await page.getByRole("link", { name: "Open the meetings" }).click();
  await page.getByRole("heading", { level: 1, name: "Meetings" }).waitFor();
  const plain = await fetch(at("/elsewhere"));
  expect([plain.status, plain.headers.get("content-type")]).toEqual([404, "application/json; charset=utf-8"]);
});

test("figures are the browser's: its language, its days, and its zone, which is shown", async () => {
  const page = await product.signIn("member", { locale: "de-DE", timezoneId: "Asia/Kolkata" });
  await page.goto(at(`/meetings/${meetingId}`));
  const begins = page.locator("time[datetime='2026-11-20T16:58:00.000Z']").first();
  expect(await begins.textContent()).toMatch(/^Fr\., 20\. Nov\. 2026, 22:28 (GMT|UTC)\+5:30$/);
  await page.getByText(/^48\.250,75\s€$/).waitFor();
  // Words are the page's own, how long ago something is among them; the instant itself is there as well.
  const asOf = page.getByText(/^CRM data as of/).locator("time");
  expect(await asOf.textContent()).toMatch(/^(just now|\d+ (seconds?|minutes?) ago)$/);
  expect(await asOf.getAttribute("title")).toMatch(/^\d+\. \S+ 2\d\d\d, \d\d:\d\d (GMT|UTC)\+5:30$/);
});

test("a meeting that ends on another day of the reader's says which", async () => {
  const { email } = product.simulator.company.stories.singleDeal;
  const [startsAt, endsAt] = ["2026-11-12T09:00:00.000Z", "2026-11-12T11:00:00.000Z"];
  const { id } = await recordMeeting(product.service, [email], { title: "Off-site", startsAt, endsAt });
  const begins = (page: Page) => page.locator(`time[datetime='${startsAt}']`).first();
  const here = await product.signIn("member", { timezoneId: "UTC" });
  await here.goto(at(`/meetings/${id}`));
  expect(await begins(here).textContent()).toBe("Thu, 12 Nov 2026, 09:00–11:00 UTC");
  const there = await product.signIn("member", { timezoneId: "Pacific/Kiritimati" });
  await there.goto(at(`/meetings/${id}`));
  expect(await begins(there).textContent()).toMatch(/^Thu, 12 Nov 2026, 23:00 – 13 Nov 2026, 01:00 (GMT|UTC)\+14$/);
});

// Seen red: where the day had begun in the tenant's zone, "26 Nov 2026, 11:00" for whoever reads it here.
test("a contact on a day without a time is shown by that day, wherever its reader is", async () => {
  const { service, simulator, database } = product;
  const { dealId, personId } = simulator.company.stories.singleDeal;
  const due_date = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);
  const done = { done: true, due_date, due_time: "", marked_as_done_time: `${due_date}T15:00:00Z` };
  simulator.control.add("activity", { subject: "Demo", type: "call", deal_id: dealId, person_id: personId, ...done });
  await syncAgain(service, database);
  const page = await product.signIn("member", { timezoneId: "Pacific/Pago_Pago" });
  await page.goto(at(`/meetings/${meetingId}`));
  const shown = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" }).format(new Date(`${due_date}T12:00:00Z`));
  const line = page.getByRole("region", { name: "Timeline" }).getByRole("listitem").filter({ hasText: "Demo (call)" });
  expect(await line.locator(`time[datetime='${due_date}']`).textContent()).toBe(`on ${shown}`);
  const dot = page.locator("circle title").filter({ hasText: "Demo (call)" });
  expect(await dot.textContent()).toBe(`Demo (call), ${shown}`);
});

test("the focus stays near when what had it goes", async () => {
  const page = await product.signIn("admin");
  const choose = page.getByRole("button", { name: "Choose a field for Deals" });
  await choose.press("Enter");
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  await focusIsKept(page);
  await page.getByRole("button", { name: "Cancel" }).press("Enter");
  await choose.waitFor();
  const near = "document.activeElement.closest('section')?.ariaLabel === 'Fields the service may write'";
  await until("the focus is near", () => page.evaluate<boolean>(near));
});

// Seen red: "10 seconds ago", "20 seconds ago" and so on, of each receipt, and in a warning over whatever was being read.
test("that time passes is not read out", async () => {
  const page = await product.signIn("admin");
  await page.clock.install();
  await page.goto(at(`/meetings/${meetingId}`));
  const { form, text, write } = noteForm(page);
  await text.fill("Agreed.");
  await write.click();
  await form.getByText("Written", { exact: true }).waitFor();
  await listen(page, { childList: false });
  await page.clock.runFor(5 * 60_000);
  await form.getByRole("listitem").getByText("5 minutes ago").waitFor();
  expect(await page.evaluate("readOut")).toEqual([]);
});

// Seen red: a clock that is ahead made fresh data "older than a day", one that is behind gave it a time to come.
test.each([30, -5])(
  "what is said of time goes by the service's clock, where the browser's is %d hours ahead",
  async (hours) => {
    const page = await product.signIn("admin");
    await page.clock.install({ time: Date.now() + hours * 3_600_000 });
    await page.goto(at("/meetings"));
    await page.getByText(/CRM data as of (just now|\d+ (second|minute)s? ago)/).waitFor();
    expect(await page.getByText("older than a day").count()).toBe(0);
  },
);

/** Of what is newer than browsers that the build is for (Chrome 111, Firefox 116, Safari 16.4): what a page could use unawares. */
const NEWER = `delete AbortSignal.any; delete URL.canParse; delete URL.parse; delete URLSearchParams.prototype.size;
delete Promise.withResolvers; delete Promise.try; delete Array.fromAsync; delete Object.groupBy; delete Map.groupBy;
for (const name of ["toSorted", "toReversed", "toSpliced", "with"]) delete Array.prototype[name];
for (const name of ["union", "intersection", "difference", "isSubsetOf", "isSupersetOf"]) delete Set.prototype[name];
for (const name of ["map", "filter", "some", "every", "find", "reduce", "toArray"]) delete Iterator.prototype[name];
delete Element.prototype.checkVisibility; delete HTMLElement.prototype.showPopover; delete globalThis.Iterator;`;

// Seen red: "The service cannot be reached", for ever.
test("the page works in the oldest browsers that it is built for", async () => {
  const page = await product.signIn("admin");
  const faults: string[] = [];
  page.on("pageerror", ({ message }) => faults.push(message));
  await page.addInitScript({ content: NEWER });
  // Before Firefox 128 and Safari 17.4 a mark with words of its own for who listens is not understood.
  await page.route(/assets\/.*\.css$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replaceAll('/ ""', "/ unheard-of") });
  });
  await page.goto(at("/quiet/settings"));
  await page.getByRole("button", { name: "Add days" }).waitFor();
  await page.getByRole("link", { name: "CRM connection", exact: true }).click();
  await state(page, "Connected").waitFor();
  await page.getByText("What the last run read").click();
  const mark = "getComputedStyle(document.querySelector('.step-succeeded > :first-child'), '::before').content";
  // Seen red: none, and nothing told which step of a sync was running.
  expect(await page.evaluate(mark)).toBe('"✓"');
  await page.getByRole("link", { name: "Meetings" }).click();
  await page.getByRole("link", { name: "Walk through the proposal" }).click();
  await page.getByRole("region", { name: "Notes in the CRM" }).waitFor();
  const { form, text } = noteForm(page);
  await text.fill("[Terms](https://example.com/terms)");
  await form.getByRole("button", { name: "Preview" }).click();
  await form.getByRole("link", { name: "Terms" }).waitFor();
  await page.context().clearCookies();
  await page.goto(at("/meetings?show=all"));
  await page.getByRole("link", { name: "Sign in" }).waitFor();
  expect(faults).toEqual([]);
});

// Each seen red: nothing was left of the page, of the way elsewhere and of the text that was being typed.
describe("A page that stayed open while the service became newer", () => {
  const broken = (page: Page) => page.getByRole("alert").filter({ hasText: "This part of the page cannot be shown" });
  const loadAgain = (page: Page) => broken(page).getByRole("button", { name: "Load the page again" }).click();

  test("a page whose script is gone says so, leads elsewhere, and is there once it is loaded again", async () => {
    const page = await product.signIn("admin");
    await page.goto(at("/quiet"));
    await page.route(/assets\/silence-page/, (route) => route.fulfill({ status: 404 }));
    await page.getByRole("link", { name: "When is a deal quiet?" }).click();
    await broken(page).waitFor();
    expect(await findings(page)).toEqual([]);
    await page.getByRole("link", { name: "Meetings" }).click();
    await page.getByRole("heading", { level: 1, name: "Meetings" }).waitFor();
    await page.goBack();
    await page.unrouteAll();
    await loadAgain(page);
    await page.getByRole("heading", { level: 1, name: "When is a deal quiet?" }).waitFor();
  });

  test("a window whose scripts are not there says what to do", async () => {
    const page = await product.signIn("admin");
    await page.route(/assets\/.*\.js$/, (route) => route.fulfill({ status: 404 }));
    await page.reload();
    await page.getByText("If nothing more comes, load it again.").waitFor();
  });

  test("a preview whose script is gone takes no text away", async () => {
    const page = await product.signIn("admin");
    await page.goto(at(`/meetings/${meetingId}`));
    await page.route(/assets\/note-preview/, (route) => route.fulfill({ status: 404 }));
    const { form, text } = noteForm(page);
    await text.fill("Half a note.");
    await form.getByRole("button", { name: "Preview" }).click();
    await broken(page).waitFor();
    await form.getByRole("button", { name: "Edit" }).click();
    expect(await text.inputValue()).toBe("Half a note.");
  });

  test("a value that it does not know does not take the page away", async () => {
    const page = await product.signIn("admin");
    await page.route(/graphql$/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace('"CONNECTED"', '"PAUSED"') });
    });
    await page.reload();
    await broken(page).waitFor();
    await page.unrouteAll({ behavior: "wait" });
    await loadAgain(page);
    await page.getByText("Connected account").waitFor();
  });
});

test("data that is older than a day is said to be so wherever it is shown", async () => {
  const page = await product.signIn("member");
  await product.database.query(
    "UPDATE sync_run SET finished_at = now() - interval '30 hours' WHERE state = 'SUCCEEDED'",
  );
  for (const path of ["/meetings", `/meetings/${meetingId}`, "/quiet", "/quiet/settings"]) {
    await page.goto(at(path));
    await page.getByRole("alert").filter({ hasText: "What you see is older than a day" }).waitFor();
    expect([path, await findings(page)]).toEqual([path, []]);
  }
});
