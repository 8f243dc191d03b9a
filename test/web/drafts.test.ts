import type { Page } from "playwright-core";
import { posts } from "../support/notes";
import { connect, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startProduct } from "./support/product";
import { disconnected, isGuarded, noteForm, openMeeting, openNewMeeting } from "./support/steps";

// Seen red with the page as it was, which kept typed text in the form alone.

let page: Page;
let title: string;

const product = useStarted(startProduct);
beforeAll(() => connected());
beforeEach(async () => {
  page = await product.signIn("member");
  title = await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
});

async function connected(): Promise<void> {
  await connect(product.service, product.simulator);
  await syncEnds(product.service);
}

/** Signs in where the browser stands already, as whoever the host product is told. */
async function signInAs(name: string): Promise<void> {
  await page.goto(product.host.url);
  await page.getByRole("button", { name }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
}

const TYPED = "They want it **by spring**.";
const typed = () => noteForm(page).text.fill(TYPED);
const shown = () => noteForm(page).text.inputValue();

test("typed text is there after going to another page and back, after a reload, and in a new tab", async () => {
  await typed();
  await openMeeting(page, title);
  expect(await shown()).toBe(TYPED);
  await page.reload();
  expect(await shown()).toBe(TYPED);
  const other = await page.context().newPage();
  await other.goto(page.url());
  expect(await noteForm(other).text.inputValue()).toBe(TYPED);
  expect(await findings(page)).toEqual([]);
});

test("each meeting has a draft of its own", async () => {
  await typed();
  const first = title;
  await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
  expect(await shown()).toBe("");
  await noteForm(page).text.fill("Another one.");
  await openMeeting(page, first);
  expect(await shown()).toBe(TYPED);
});

test("a disconnect elsewhere takes nothing that was typed: it is shown, and after the next connect it can be written", async () => {
  await typed();
  await disconnected(product);
  await page.getByRole("heading", { name: "No CRM is connected" }).waitFor();
  await page.getByRole("region", { name: "Your note is kept" }).getByText(TYPED).waitFor();
  expect(await findings(page)).toEqual([]);
  await connected();
  await noteForm(page).form.getByText("On Deal: ").waitFor();
  expect(await shown()).toBe(TYPED);
  await noteForm(page).write.click();
  await noteForm(page).form.getByText("Written", { exact: true }).waitFor();
  expect(posts(product.simulator)).toHaveLength(1);
});

test("of a note whose answer was lost a disconnect is no proof that it was not written", async () => {
  await page.route("**/graphql", async (route) => {
    const asked = route.request().postData() ?? "";
    if (asked.includes("mutation WriteNote")) await route.fetch();
    return /mutation WriteNote|query NoteByKey/.test(asked) ? route.abort() : route.continue();
  });
  await typed();
  await noteForm(page).write.click();
  await noteForm(page).form.getByText("We do not know yet whether").waitFor();
  await disconnected(product);
  await page.getByRole("region", { name: "Your note is kept" }).getByText("We do not know yet whether").waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await connected();
  await noteForm(page).form.getByText("The note was written", { exact: true }).waitFor();
  expect(posts(product.simulator)).toHaveLength(1);
});

test("who signs in again finds the text; another user of the same browser never sees it", async () => {
  const secret = "Between you and me.";
  await noteForm(page).text.fill(secret);
  await page.context().clearCookies();
  await page.reload();
  await page.getByText("You are not signed in").first().waitFor();
  await signInAs("Anna Admin");
  await openMeeting(page, title);
  expect(await shown()).toBe("");
  expect(await page.content()).not.toContain(secret);
  await signInAs("Max Member");
  await openMeeting(page, title);
  expect(await shown()).toBe(secret);
});

test("a draft is gone once its note is written, and so it is in the browser's store", async () => {
  await typed();
  await noteForm(page).write.click();
  await noteForm(page).form.getByText("Written", { exact: true }).waitFor();
  await page.reload();
  expect(await shown()).toBe("");
  // Of the note there is a mark, for other tabs that may have its text.
  expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")).toMatch(
    /^\[\{"written:[^{]*\{(?!.*spring).*\},\{\}\]$/,
  );
});

test("two tabs of one meeting keep their own text, and what one has written is not lost to the other", async () => {
  await typed();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await noteForm(other).text.fill("Of the other tab.");
  await page.reload();
  expect(await shown()).toBe(TYPED);
  await noteForm(page).write.click();
  await noteForm(page).form.getByText("Written", { exact: true }).waitFor();
  await other.reload();
  expect(await noteForm(other).text.inputValue()).toBe("Of the other tab.");
});

describe("The record that was chosen for a note", () => {
  const { form, where } = { form: () => noteForm(page).form, where: () => noteForm(page).form.getByLabel("Write on") };
  const goesTo = (name: string, on = page) => noteForm(on).form.getByText(`On ${name}`).waitFor();
  const writtenOn = () => posts(product.simulator).map(({ body }) => body);

  // Seen red: the text stood there again, and went on the deal.
  test("is there with the text: after another page, a reload and a sign-in, and in a new tab", async () => {
    const person = (await where().locator("option", { hasText: "Person: " }).textContent()) ?? "";
    await where().selectOption({ label: person });
    await typed();
    await openMeeting(page, title);
    await goesTo(person);
    await page.reload();
    await goesTo(person);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await goesTo(person, other);
    await signInAs("Max Member");
    await openMeeting(page, title);
    await goesTo(person);
    await noteForm(page).write.click();
    await form().getByText("Written", { exact: true }).waitFor();
    const { personId } = product.simulator.company.stories.singleDeal;
    expect(writtenOn()).toEqual([{ content: expect.any(String), person_id: personId }]);
  });

  test("is named where it belongs to the meeting no more, and no other takes its place", async () => {
    const { severalDeals } = product.simulator.company.stories;
    title = await openNewMeeting(product, page, [severalDeals.email]);
    await page.getByRole("button", { name: "Choose Baltic Mills – renewal" }).click();
    await goesTo("Deal: Baltic Mills – renewal");
    await where().selectOption({ index: 1 });
    await typed();
    await where().selectOption({ label: "Deal: Baltic Mills – renewal" });
    await page.getByText("It is about another deal").click();
    await page.getByRole("button", { name: "Choose Baltic Mills – second plant" }).click();
    await form().getByText("no longer belongs to this meeting").waitFor();
    await openMeeting(page, title);
    await form().getByText("“Deal: Baltic Mills – renewal” no longer belongs to this meeting").waitFor();
    expect([await shown(), await noteForm(page).write.isEnabled()]).toEqual([TYPED, false]);
    expect(await findings(page)).toEqual([]);
  });

  // Seen red: it was given back as a note on the deal.
  test("is that of a note that never arrived, for who edits it after a reload", async () => {
    await page.route("**/graphql", (route) =>
      route.request().postData()?.includes("mutation WriteNote") ? route.abort() : route.continue(),
    );
    await where().selectOption({ index: 1 });
    await typed();
    await noteForm(page).write.click();
    await form().getByText("We do not know yet whether").waitFor();
    await page.reload();
    await form().getByRole("button", { name: "Edit" }).click({ timeout: 60_000 });
    await goesTo("Person: ");
    await page.reload();
    await goesTo("Person: ");
  });

  // Seen red: what the other tab had only shown stood there as a note on the deal.
  test("is that of a note which another tab has sent in vain", async () => {
    product.simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { status: 403 } });
    await typed();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await goesTo("Deal: ", other);
    await where().selectOption({ index: 1 });
    await noteForm(page).write.click();
    await form().getByText("The note was not written").waitFor();
    await noteForm(other).form.getByText("The note was not written").waitFor();
    await goesTo("Person: ", other);
    await goesTo("Person: ");
  });
});

test("what was typed here is forgotten after 90 days, whoever it was", async () => {
  await typed();
  await page.evaluate(`for (const [slot, days] of [["draft:89", 89], ["draft:91", 91], ["sent:91", 91], ["other:91", 91], ["draft:0"]])
    localStorage.setItem(slot, JSON.stringify({ text: "", at: Date.now() - days * 86_400_000 }))`);
  await page.reload();
  expect(await shown()).toBe(TYPED);
  const kept = await page.evaluate<string[]>("Object.keys(localStorage)");
  expect(kept.filter((slot) => /:\d/.test(slot)).sort()).toEqual(["draft:0", "draft:89", "other:91"]);
});

test("60,000 characters are kept like any others", async () => {
  const long = "Long and true. ".repeat(4_000);
  await noteForm(page).text.fill(long);
  await page.reload();
  expect(await shown()).toBe(long);
});

test("where the browser keeps nothing the page says so, and warns before the text would be lost", async () => {
  await page.addInitScript({
    content: 'Storage.prototype.setItem = () => { throw new DOMException("Full.", "QuotaExceededError"); };',
  });
  await page.reload();
  await typed();
  await noteForm(page).form.getByText("This browser cannot keep your text").waitFor();
  expect(await findings(page)).toEqual([]);
  const asked = page.waitForEvent("dialog");
  const left = page.goto(product.host.url).catch(() => undefined);
  const dialog = await asked;
  expect(dialog.type()).toBe("beforeunload");
  await dialog.dismiss();
  await left;
  expect(await shown()).toBe(TYPED);
  // Seen red: elsewhere in the page nothing warned, nor after that.
  await page.getByRole("link", { name: "Meetings" }).first().click();
  await page.getByRole("link", { name: title, exact: true }).waitFor();
  expect(await isGuarded(page)).toBe(true);
  await openMeeting(page, title);
  expect(await shown()).toBe(TYPED);
  await noteForm(page).form.getByText("This browser cannot keep your text").waitFor();
  await noteForm(page).text.fill("");
  expect(await isGuarded(page)).toBe(false);
});
