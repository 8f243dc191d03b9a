import type { Page } from "playwright-core";
import { connect, recordMeeting, syncEnds, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { startProduct } from "./support/product";
import { disconnected, overhang, tabTo } from "./support/steps";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINE = "anna@seller.example";
let page: Page;

/** Noon, so that no meeting of a story falls on another day. */
const noon = (days: number) => new Date(new Date().setHours(12, 0, 0, 0) + days * DAY_MS).toISOString();

const product = useStarted(startProduct);
beforeAll(async () => {
  const { service, simulator } = product;
  const { singleDeal, severalDeals } = simulator.company.stories;
  const meetings: [title: string, email: string, days: number, ownerEmail: string][] = [
    ["Last week's call", singleDeal.email, -7, MINE],
    ["Yesterday's call", singleDeal.email, -1, MINE],
    ["Which of the deals?", severalDeals.email, 0, MINE],
    ["Tomorrow's call", singleDeal.email, 1, MINE],
    ["Next week's call", singleDeal.email, 7, "other@seller.example"],
    ["A stranger", "curious.newcomer@somewhere-new.example", 2, MINE],
    ["لقاء مع شركة الشمال", "curious.newcomer@somewhere-new.example", 3, MINE],
  ];
  for (const [title, email, days, ownerEmail] of meetings) {
    await recordMeeting(service, [email], { title, startsAt: noon(days), ownerEmail });
  }
  page = await product.signIn("admin");
  await page.getByRole("link", { name: "Meetings" }).click();
});

const titlesOf = (section: string, on = page) =>
  on.getByRole("region", { name: section }).getByRole("heading", { level: 3 }).allTextContents();
const line = (title: string, on = page) =>
  on.getByRole("listitem").filter({ has: on.getByRole("link", { name: title }) });

test("while no CRM is connected no meeting is said to have no deal", async () => {
  await line("Yesterday's call").getByText("No CRM is connected").waitFor();
  await page.getByText("No CRM is connected, so no meeting is matched to a deal").waitFor();
  expect(await page.getByText("No deal", { exact: false }).count()).toBe(0);
  await screenshot(page, "meetings-not-connected");
});

test("an open tab shows the deals by itself once somebody has connected elsewhere", async () => {
  const { service, simulator } = product;
  await connect(service, simulator);
  await syncEnds(service);
  await line("Yesterday's call").getByText("Halden Freight A/S – annual licence").waitFor();
  await line("A stranger").getByText("No deal").waitFor();
  await page.getByText(/^CRM data as of/).waitFor();
});

test("today, what comes with the next first, and what has been with the latest first", async () => {
  expect(await titlesOf("Today")).toEqual(["Which of the deals?"]);
  expect(await titlesOf("Upcoming")).toEqual([
    "Tomorrow's call",
    "A stranger",
    "لقاء مع شركة الشمال",
    "Next week's call",
  ]);
  expect(await titlesOf("Past")).toEqual(["Yesterday's call", "Last week's call"]);
  await page.getByText(/^Times are those of /).waitFor();
  await screenshot(page, "meetings");
});

// Seen red: one timer until midnight stood still while the computer slept, and yesterday stood under "Today" for hours.
test("who opens a sleeping computer the next day sees that day's meetings", async () => {
  const slept = await product.signIn("admin");
  await slept.clock.install();
  await slept.goto(`${product.service.url}/meetings`);
  await line("Which of the deals?", slept).waitFor();
  await slept.clock.setSystemTime(Date.now() + DAY_MS);
  await slept.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await until("tomorrow has come", async () => (await titlesOf("Today", slept)).includes("Tomorrow's call"));
  await until("today has passed", async () => (await titlesOf("Past", slept))[0] === "Which of the deals?");
});

test("tabs hold what is to be chosen and what has no deal, with how many, and stand in the address", async () => {
  await page.getByRole("link", { name: "Needs a choice (1)" }).click();
  await until("only that one is left", async () => (await page.getByRole("heading", { level: 3 }).count()) === 1);
  await line("Which of the deals?").getByText("2 deals to choose from").waitFor();
  expect(new URL(page.url()).search).toBe("?show=choice");
  expect(await findings(page)).toEqual([]);
  await page.getByRole("link", { name: "No deal (2)" }).click();
  await line("A stranger").waitFor();
  await page.reload();
  await line("A stranger").waitFor();
  expect(await titlesOf("Past")).toEqual([]);
  await page.getByRole("link", { name: "All (7)" }).click();
});

test("a search and whose meetings they are narrow the list, and the counts with it", async () => {
  await page.getByRole("searchbox", { name: "Search" }).fill("CALL");
  await page.getByRole("link", { name: "All (4)" }).waitFor();
  await page.getByRole("checkbox", { name: "Mine" }).check();
  await page.getByRole("link", { name: "All (3)" }).waitFor();
  await until("the other's is gone", async () => (await titlesOf("Upcoming")).join() === "Tomorrow's call");
  expect(new URL(page.url()).search).toBe("?q=CALL&mine=1");
  const other = await product.signIn("member");
  await other.goto(`${product.service.url}/meetings`);
  await other.getByRole("checkbox", { name: "Mine (your sign-in does not say your address)" }).waitFor();
  expect(await findings(other)).toEqual([]);
  // What is typed is never beside a list that is of something else.
  await page.getByRole("link", { name: "Meetings", exact: true }).click();
  await page.getByRole("link", { name: "All (7)" }).waitFor();
  expect(await page.getByRole("searchbox", { name: "Search" }).inputValue()).toBe("");
});

// Seen red: it was loading, and nothing was said.
test("where it cannot be read who somebody is, that is said of their own meetings, and trying again asks for it", async () => {
  const reader = await product.signIn("admin");
  // Without events nothing asks before the button is pressed.
  await reader.routeWebSocket(/graphql$/, () => {});
  let fails = true;
  await reader.route("**/graphql", (route) =>
    fails && route.request().postData()?.includes("query Me {")
      ? route.fulfill({ status: 200, json: { errors: [{ message: "Not now." }] } })
      : route.continue(),
  );
  await reader.goto(`${product.service.url}/meetings?mine=1`);
  await reader.getByRole("alert").filter({ hasText: "Not now." }).waitFor();
  expect(await reader.getByRole("heading", { level: 3 }).count()).toBe(0);
  fails = false;
  await reader.getByRole("button", { name: "Try again" }).click();
  await reader.getByRole("link", { name: "All (6)" }).waitFor();
  await line("Tomorrow's call", reader).waitFor();
});

test("where nothing fits no time is said to be without meetings, and how many fit is read out", async () => {
  await page.getByRole("searchbox", { name: "Search" }).fill("nobody knows it");
  await page.getByText("No meeting of today fits.").waitFor();
  await page.getByText("No past meeting fits.").waitFor();
  expect(await page.getByText("No meeting today.").count()).toBe(0);
  const readOut = (text: string) => page.locator("[aria-live=polite] p").filter({ hasText: text }).last().waitFor();
  await readOut("0 meetings");
  await page.getByRole("searchbox", { name: "Search" }).fill("Yesterday");
  await readOut("1 meeting");
  await page.getByRole("searchbox", { name: "Search" }).fill("");
  await readOut("7 meetings");
  // A cancelled one has no deal to choose or to lack: there the box would do nothing.
  await page.getByRole("link", { name: "No deal (2)" }).click();
  await page.getByRole("checkbox", { name: "Also cancelled ones" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "All (7)" }).click();
  await page.getByRole("checkbox", { name: "Also cancelled ones" }).waitFor();
});

test("cancelling and deleting ask first, say what they mean, and leave the focus on the list, by keyboard alone", async () => {
  await line("Tomorrow's call").getByRole("button", { name: "Cancel" }).press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("It counts as no contact with the buyer").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.keyboard.press("Enter");
  await tabTo(page, "button", "Cancel the meeting");
  await page.keyboard.press("Enter");
  await line("Tomorrow's call").waitFor({ state: "detached" });
  await page.locator("[aria-live=polite]").filter({ hasText: "Tomorrow's call is cancelled" }).waitFor();
  const isKept = () => page.evaluate<boolean>("document.activeElement.closest('main') !== null");
  await until("the focus is on the list", isKept);
  await page.getByRole("checkbox", { name: "Also cancelled ones" }).check();
  await line("Tomorrow's call").getByText("Cancelled").waitFor();
  await line("A stranger").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete for good" }).click();
  await line("A stranger").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "No deal (1)" }).waitFor();
  const kept = await product.database.query(
    "SELECT title FROM meeting WHERE title IN ('A stranger', 'Tomorrow''s call')",
  );
  expect(kept).toEqual([{ title: "Tomorrow's call" }]);
});

test.each([320, 380])("at %i pixels nothing hangs over the edge, dark and without motion", async (width) => {
  const options = { viewport: { width, height: 760 }, colorScheme: "dark", reducedMotion: "reduce" } as const;
  const phone = await product.signIn("admin", options);
  await phone.goto(`${product.service.url}/meetings`);
  await line("لقاء مع شركة الشمال", phone).waitFor();
  expect(await overhang(phone)).toBe(0);
  expect(await findings(phone)).toEqual([]);
});

// Seen red: the list was short again, and the meeting that was opened was not in it.
test("who comes back from a meeting finds the list as long as it was, and their place in it", async () => {
  const email = "curious.newcomer@somewhere-new.example";
  for (let day = 30; day < 60; day += 1) {
    await recordMeeting(product.service, [email], { title: `${day} days ago`, startsAt: noon(-day) });
  }
  const reader = await product.signIn("admin");
  await reader.getByRole("link", { name: "Meetings" }).click();
  await reader.getByRole("button", { name: "Show more: Past" }).click();
  const opened = reader.getByRole("link", { name: "58 days ago", exact: true });
  await opened.click();
  await reader.getByRole("heading", { level: 1, name: "58 days ago" }).waitFor();
  await reader.goBack();
  await opened.waitFor();
  const bottom = reader.viewportSize()?.height ?? 0;
  await until("it is in sight", async () => ((await opened.boundingBox())?.y ?? bottom) < bottom);
  await reader.reload();
  await opened.waitFor();
});

// Seen red: what had been the last of a page that was pushed out of it was shown nowhere; where one left, the next one twice.
test("a list of several pages has each meeting once while meetings come and go", async () => {
  const past = (on: Page) => titlesOf("Past", on);
  const reader = await product.signIn("member");
  await reader.getByRole("link", { name: "Meetings" }).click();
  await reader.getByRole("button", { name: "Show more: Past" }).click();
  await line("59 days ago", reader).waitFor();
  const before = await past(reader);
  const email = "curious.newcomer@somewhere-new.example";
  const { id } = await recordMeeting(product.service, [email], { title: "20 days ago", startsAt: noon(-20) });
  await until("it is there", async () => (await past(reader)).length > before.length);
  await until("each is there once", async () => {
    const shown = await past(reader);
    return shown.length === before.length + 1 && new Set(shown).size === shown.length;
  });
  await product.service.ask("mutation ($id: ID!) { deleteMeeting(meetingId: $id) { __typename } }", { id });
  // A match wakes the page.
  await recordMeeting(product.service, [email], { title: "In 20 days", startsAt: noon(20) });
  await until("it is gone", async () => {
    const shown = await past(reader);
    return shown.length === before.length && shown.every((title, index) => title === before[index]);
  });
});

test("after a disconnect elsewhere nothing of before is shown, without a reload", async () => {
  await disconnected(product);
  await line("Yesterday's call").getByText("No CRM is connected").waitFor();
  await until("no deal is left", async () => (await page.getByText("Halden Freight").count()) === 0);
});
