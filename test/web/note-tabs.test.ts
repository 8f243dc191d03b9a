import type { Page } from "playwright-core";
import { posts } from "../support/notes";
import { until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { noteForm, openMeeting, openNewMeeting } from "./support/steps";

// Seen red with: a note that only the tab that had sent it knew of. Its text stood in the next tab, and was written again. And
// with one that all tabs forgot once it was written, also where its text still stood in one of them.

let page: Page;
let title: string;
/** The keys with which the browser's tabs have asked for a note. */
let keys: string[];

const product = useStarted(startConnected);
beforeEach(async () => {
  product.simulator.control.clearFaults();
  page = await product.signIn("member");
  title = await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
});
afterEach(async () => {
  await page.context().unrouteAll({ behavior: "ignoreErrors" });
  await page.context().close();
});

const TEXT = "They take it **by spring**.";
const NOT_KNOWN = "We do not know yet";
const KEPT = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }])";
const written = () => posts(product.simulator).length;
const isWritten = (tab: Page) => noteForm(tab).form.getByText("The note was written", { exact: true }).waitFor();

async function newTab(): Promise<Page> {
  const tab = await page.context().newPage();
  await tab.goto(page.url());
  await noteForm(tab).text.waitFor();
  return tab;
}

/** What a tab sends arrives, or does not; its answer never comes, and no tab looks what became of it before it may. */
async function holdBack(arrives = true): Promise<() => void> {
  let release: () => void = () => undefined;
  const looks = new Promise<void>((pass) => {
    release = pass;
  });
  keys = [];
  await page.context().route("**/graphql", async (route) => {
    const asked = route.request().postData() ?? "";
    if (asked.includes("query NoteByKey")) await looks;
    if (!asked.includes("mutation WriteNote")) return void (await route.continue().catch(() => undefined));
    keys.push(JSON.parse(asked).variables.input.idempotencyKey);
    if (keys.length > 1) return route.continue();
    // One that is left open arrives once its tab is closed.
    return void (await (arrives ? route.fetch() : route.abort()));
  });
  return release;
}

async function send(tab: Page): Promise<void> {
  await noteForm(tab).write.click();
  await until("it is sent", async () => keys.length > 0);
}

/** Whoever clicks what can be clicked. */
async function tryToSend(tab: Page): Promise<void> {
  const { write } = noteForm(tab);
  if (await write.isEnabled()) await write.click();
  expect(await write.isEnabled()).toBe(false);
}

test("the tab that has sent a note is gone before the answer: the next one locks it, looks it up, and sends no second one", async () => {
  const release = await holdBack();
  await noteForm(page).text.fill(TEXT);
  await send(page);
  await until("the CRM has it", async () => written() === 1);
  const first = page;
  const tab = await newTab();
  await first.close();
  page = tab;
  await tryToSend(tab);
  await noteForm(tab).form.getByText(NOT_KNOWN).waitFor();
  expect(await noteForm(tab).text.inputValue()).toBe(TEXT);
  expect(await findings(tab)).toEqual([]);
  await tab.reload();
  await noteForm(tab).form.getByText(NOT_KNOWN).waitFor();
  await tryToSend(tab);
  release();
  await isWritten(tab);
  expect([await noteForm(tab).text.inputValue(), written(), keys.length]).toEqual(["", 1, 1]);
  expect(await tab.evaluate(KEPT)).toMatch(/^\[\{"written:[^{]*\{(?!.*spring).*\},\{\}\]$/);
});

test("what never arrived is sent by the next tab with the key it had", async () => {
  const release = await holdBack(false);
  await noteForm(page).text.fill(TEXT);
  await send(page);
  const first = page;
  page = await newTab();
  await first.close();
  release();
  await noteForm(page).form.getByText("The service has not taken the note").waitFor();
  await noteForm(page).form.getByRole("button", { name: "Send again" }).click();
  await isWritten(page);
  expect([new Set(keys).size, keys.length, written()]).toEqual([1, 2, 1]);
});

test.each([
  ["typed in it", true],
  ["only shown in it", false],
])(
  "a tab that was open before, with the text %s, locks it as well, and drops it once it is written",
  async (_, isTyped) => {
    const other = await newTab();
    if (isTyped) await noteForm(other).text.fill(TEXT);
    await noteForm(page).text.fill(TEXT);
    if (!isTyped) await other.reload();
    const release = await holdBack();
    await send(page);
    await noteForm(other).form.getByText(NOT_KNOWN).waitFor();
    await tryToSend(other);
    release();
    await isWritten(other);
    expect([await noteForm(other).text.inputValue(), written(), keys.length]).toEqual(["", 1, 1]);
  },
);

test("another tab can write a text of its own meanwhile, and the next one still knows of the first", async () => {
  const other = await newTab();
  await noteForm(other).text.fill("Of the other tab.");
  await noteForm(page).text.fill(TEXT);
  const release = await holdBack();
  await send(page);
  await noteForm(other).write.click();
  await isWritten(other);
  const first = page;
  page = await newTab();
  await first.close();
  await noteForm(page).form.getByText(NOT_KNOWN).waitFor();
  await tryToSend(page);
  release();
  await isWritten(page);
  expect([new Set(keys).size, keys.length, written()]).toEqual([2, 2, 2]);
});

test("a tab that showed another page meanwhile sends no second one; the same words typed later are another note", async () => {
  const other = await newTab();
  await noteForm(other).text.fill(TEXT);
  await other.getByRole("link", { name: "Meetings" }).first().click();
  await page.reload();
  expect(await noteForm(page).text.inputValue()).toBe(TEXT);
  await noteForm(page).write.click();
  await isWritten(page);
  await openMeeting(other, title);
  await tryToSend(other);
  await isWritten(other);
  expect([await noteForm(other).text.inputValue(), written()]).toEqual(["", 1]);
  await noteForm(other).text.fill(TEXT);
  await noteForm(other).write.click();
  await until("it is written again", async () => written() === 2);
});

test("a note that another user of the browser has sent is neither shown nor locked", async () => {
  await holdBack();
  await noteForm(page).text.fill(TEXT);
  await send(page);
  await page.goto(product.host.url);
  await page.getByRole("button", { name: "Anna Admin" }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  await openMeeting(page, title);
  expect([await noteForm(page).text.inputValue(), await noteForm(page).form.getByText(NOT_KNOWN).count()]).toEqual([
    "",
    0,
  ]);
  await noteForm(page).text.fill(TEXT);
  expect(await noteForm(page).write.isEnabled()).toBe(true);
});

test("who edits a note that never arrived finds the edited text after a reload, and its key goes with it", async () => {
  const release = await holdBack(false);
  await noteForm(page).text.fill(TEXT);
  await send(page);
  release();
  await noteForm(page).form.getByRole("button", { name: "Edit" }).click({ timeout: 60_000 });
  await noteForm(page).text.fill("As edited.");
  const first = page;
  page = await newTab();
  await first.close();
  expect(await noteForm(page).text.inputValue()).toBe("As edited.");
  await noteForm(page).write.click();
  await isWritten(page);
  expect([new Set(keys).size, written()]).toEqual([1, 1]);
});

const TWO_DAYS_AGO = `for (const store of [localStorage, sessionStorage])
  for (const slot of Object.keys(store).filter((one) => one.startsWith("sent:"))) {
    const note = JSON.parse(store.getItem(slot));
    store.setItem(slot, JSON.stringify({ ...note, at: note.at - 2 * 86_400_000 }));
  }`;

test("that the service has no receipt of a note of another day is no proof: its key is not sent again", async () => {
  const release = await holdBack(false);
  await noteForm(page).text.fill(TEXT);
  await send(page);
  await page.evaluate(TWO_DAYS_AGO);
  await page.reload();
  release();
  const { form, text, write } = noteForm(page);
  await form.getByRole("button", { name: "Write it again, though it may be there twice" }).click();
  expect([await text.inputValue(), await write.isEnabled(), keys.length]).toEqual([TEXT, true, 1]);
});
