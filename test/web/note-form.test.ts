import type { Page, Route } from "playwright-core";
import { posts } from "../support/notes";
import { until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { answerWith, noteForm, openMeeting as openMeetingAgain, openNewMeeting } from "./support/steps";

// Seen red with: the page as it was, which kept the target of its first look and made a new key with each edit;
// and as it was when it needed the tab's store, and made a key for each of two submits.

let page: Page;

const product = useStarted(startConnected);
beforeEach(async () => {
  product.simulator.control.clearFaults();
  page = await product.signIn("member");
});

const openMeeting = (story: "singleDeal" | "severalDeals" | "sharedAddress") =>
  openNewMeeting(product, page, [product.simulator.company.stories[story].email]);
const form = () => noteForm(page).form;
const text = () => noteForm(page).text;
const button = (name = "Write to the CRM") => form().getByRole("button", { name });
const writtenOn = () => posts(product.simulator).map(({ body }) => body as Record<string, unknown>);
const isWritten = () => form().getByText("Written", { exact: true }).first().waitFor();
const NOT_KNOWN = "We do not know yet";

describe("Where a note goes", () => {
  test("a note that was typed before the deal was chosen is written on the deal", async () => {
    await openMeeting("severalDeals");
    await text().fill("They take the second plant.");
    await form().getByText("Nothing is chosen yet").waitFor();
    expect(await button().isEnabled()).toBe(false);
    expect(await findings(page)).toEqual([]);
    await page.getByRole("button", { name: "Choose Baltic Mills – second plant" }).click();
    await form().getByText("On Deal: Baltic Mills – second plant").waitFor();
    await button().click();
    await isWritten();
    const [, second] = product.simulator.company.stories.severalDeals.dealIds;
    expect(writtenOn()).toEqual([{ content: expect.stringContaining("second plant"), deal_id: second }]);
  });

  test("who has chosen a person writes on the person, whatever deal is chosen after it", async () => {
    await openMeeting("severalDeals");
    await text().fill("A private word.");
    const { personId } = product.simulator.company.stories.severalDeals;
    await form().getByLabel("Write on").selectOption({ index: 1 });
    await page.getByRole("button", { name: "Choose Baltic Mills – renewal" }).click();
    await page.getByRole("heading", { name: "Baltic Mills – renewal", level: 2 }).waitFor();
    await form().getByText("On Person: ").waitFor();
    await button().click();
    await isWritten();
    expect(writtenOn()).toEqual([{ content: expect.any(String), person_id: personId }]);
  });

  test("a chosen record that is gone is said, and no other takes its place", async () => {
    await openMeeting("severalDeals");
    await page.getByRole("button", { name: "Choose Baltic Mills – renewal" }).click();
    await form().getByText("On Deal: Baltic Mills – renewal").waitFor();
    await form().getByLabel("Write on").selectOption({ index: 1 });
    await form().getByLabel("Write on").selectOption({ label: "Deal: Baltic Mills – renewal" });
    await text().fill("About the renewal.");
    await page.getByText("It is about another deal").click();
    await page.getByRole("button", { name: "Choose Baltic Mills – second plant" }).click();
    await form().getByText("“Deal: Baltic Mills – renewal” no longer belongs to this meeting").waitFor();
    expect(await button().isEnabled()).toBe(false);
    expect(await findings(page)).toEqual([]);
    await form().getByLabel("Write on").selectOption({ label: "Deal: Baltic Mills – second plant" });
    await button().click();
    await isWritten();
    const [, second] = product.simulator.company.stories.severalDeals.dealIds;
    expect(writtenOn()).toMatchObject([{ deal_id: second }]);
  });
});

const isOf = (route: Route, operation: string) => route.request().postData()?.includes(operation) ?? false;

interface Loss {
  /** Lets the looks at what became of the note pass. */
  releaseLooks(): void;
}

/** The first answer to writeNote goes as `lose` says; nothing is looked up before it may be. */
async function loseAnswer(lose: (route: Route) => Promise<unknown>): Promise<Loss> {
  let releaseLooks: () => void = () => undefined;
  const looks = new Promise<void>((release) => {
    releaseLooks = release;
  });
  let isLost = false;
  await page.route("**/graphql", async (route) => {
    if (isOf(route, "mutation WriteNote") && !isLost) {
      isLost = true;
      return void (await lose(route));
    }
    if (isOf(route, "query NoteByKey")) await looks;
    await route.continue().catch(() => undefined);
  });
  return { releaseLooks };
}

/** A note is sent, its first request is held back, and the page has looked in vain. @returns what lets that request arrive */
async function sendAndHoldBack(words: string): Promise<() => Promise<unknown>> {
  let arrive: () => Promise<unknown> = async () => undefined;
  const { releaseLooks } = await loseAnswer(async (route) => {
    arrive = () => route.fetch();
  });
  await text().fill(words);
  await button().click();
  releaseLooks();
  await form().getByText("The service has not taken the note").waitFor({ timeout: 60_000 });
  return () => arrive();
}

const worked = (lose: (route: Route) => Promise<unknown>) => async (route: Route) => {
  await route.fetch();
  await lose(route);
};

/** What the page's own store does where a browser forbids it, or has no room left. */
const STORES: [string, string][] = [
  [
    "may not be used",
    'Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("Insecure.", "SecurityError"); } });',
  ],
  ["is full", 'Storage.prototype.setItem = () => { throw new DOMException("Full.", "QuotaExceededError"); };'],
  ["holds what another version of the page left", `Storage.prototype.getItem = () => '{"other":1}';`],
];

test.each(STORES)(
  "where the tab's store %s a note is written all the same, and a lost answer makes no second one",
  async (_, spoil) => {
    await page.addInitScript({ content: spoil });
    await page.reload();
    await openMeeting("singleDeal");
    const { releaseLooks } = await loseAnswer(worked((route) => route.abort()));
    await text().fill("Without a store.");
    await button().click();
    await form().getByText(NOT_KNOWN).waitFor();
    releaseLooks();
    await form().getByText("The note was written", { exact: true }).waitFor();
    expect(writtenOn()).toHaveLength(1);
  },
);

test("two submits in one turn of the page are one note", async () => {
  await openMeeting("singleDeal");
  await text().fill("Twice.");
  await page.evaluate("for (const _ of [1, 2]) document.querySelector('textarea').form.requestSubmit()");
  await isWritten();
  expect(writtenOn()).toHaveLength(1);
});

const refusal = { __typename: "Refusal", code: "CRM_UNAVAILABLE", message: "Not now.", field: null, retryAt: null };
const REFUSED = { json: { data: { writeNote: refusal } } };

test("a note that was refused after its first answer was lost keeps its key, also for who has left the page meanwhile", async () => {
  await openMeeting("singleDeal");
  const meeting = page.url();
  const arrive = await sendAndHoldBack("First words.");
  await page.route("**/graphql", (route) =>
    isOf(route, "mutation WriteNote") ? route.fulfill(REFUSED) : route.fallback(),
  );
  await button("Send again").click();
  await form().getByText("Not now.").waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await arrive();
  await page.goto(meeting);
  await text().fill("Second words.");
  await button().click();
  await form().getByText("it may be the text as it was before").waitFor();
  expect(writtenOn()).toEqual([expect.objectContaining({ content: expect.stringContaining("First words.") })]);
});

// Seen red: it was another key, under which the service looks for another note.
test("a note whose receipt the service has lost is sent again with its own key", async () => {
  await openMeeting("singleDeal");
  const keys: unknown[] = [];
  await page.route("**/graphql", (route) => {
    if (!isOf(route, "mutation WriteNote")) return route.fallback();
    keys.push(route.request().postDataJSON().variables.input.idempotencyKey);
    const writeNote = { ...refusal, code: "NOT_CONNECTED", message: "Its receipt is gone." };
    return keys.length === 1 ? route.fulfill({ json: { data: { writeNote } } }) : route.continue();
  });
  await text().fill("Agreed.");
  await button().click();
  await form().getByText("Its receipt is gone.").waitFor();
  await button().click();
  await isWritten();
  expect(keys).toEqual([keys[0], keys[0]]);
});

describe("A lost answer", () => {
  test.each<[string, (route: Route) => Promise<unknown>]>([
    ["the connection is cut", worked((route) => route.abort("connectionreset"))],
    ["a proxy answers with a page", worked((route) => route.fulfill({ status: 502, body: "<h1>Bad gateway</h1>" }))],
    ["an answer that is no JSON", worked((route) => route.fulfill({ status: 200, body: "<html>" }))],
    ["no answer comes", worked(() => Promise.resolve())],
  ])("%s: it is not known, an edit and another try make no second note, and then it is known", async (_, lose) => {
    await openMeeting("singleDeal");
    const { releaseLooks } = await loseAnswer(lose);
    await text().fill("Agreed on the price.");
    await button().click();
    await form().getByText(NOT_KNOWN).waitFor();
    expect(await findings(page)).toEqual([]);
    await text().focus();
    await page.keyboard.type("!");
    if (await button().isEnabled()) await button().click();
    expect(await text().inputValue()).toBe("Agreed on the price.");
    releaseLooks();
    await form().getByText("The note was written", { exact: true }).waitFor();
    await isWritten();
    expect(await text().inputValue()).toBe("");
    expect(writtenOn()).toHaveLength(1);
  });

  test("the page is loaded again before the answer is known: the text is there, and it is looked up", async () => {
    await openMeeting("singleDeal");
    const { releaseLooks } = await loseAnswer(worked((route) => route.abort()));
    await text().fill("Before the reload.");
    await button().click();
    await form().getByText(NOT_KNOWN).waitFor();
    await page.reload();
    await form().getByText(NOT_KNOWN).waitFor();
    expect(await text().inputValue()).toBe("Before the reload.");
    releaseLooks();
    await form().getByText("The note was written", { exact: true }).waitFor();
    await page.reload();
    expect(await text().inputValue()).toBe("");
    expect(await form().getByText(NOT_KNOWN).count()).toBe(0);
    expect(writtenOn()).toHaveLength(1);
  });

  test.each<[string, (route: Route) => Promise<unknown>, string | null]>([
    ["a request that never reached the service", (route) => route.abort(), null],
    [
      "a request that the service answered with an error",
      (route) => route.fulfill({ status: 200, json: { errors: [{ message: "Too many at once." }] } }),
      "Too many at once.",
    ],
  ])("%s is said to be none, and sent again it is one note", async (_, lose, said) => {
    await openMeeting("singleDeal");
    const { releaseLooks } = await loseAnswer(lose);
    await text().fill("Sent from a train.");
    await button().click();
    await form().getByText(NOT_KNOWN).waitFor();
    releaseLooks();
    await form().getByText("The service has not taken the note").waitFor();
    if (said) await form().getByText(said).waitFor();
    expect(await findings(page)).toEqual([]);
    expect(writtenOn()).toEqual([]);
    await button("Send again").click();
    await isWritten();
    expect(await text().inputValue()).toBe("");
    expect(writtenOn()).toEqual([expect.objectContaining({ content: expect.stringContaining("Sent from a train.") })]);
  });

  test("who is signed out when sending finds the text again, and it is written once", async () => {
    await openMeeting("singleDeal");
    const meeting = page.url();
    await page.context().clearCookies();
    await page.route("**/graphql", (route) =>
      route.fulfill({ status: 401, json: { errors: [{ message: "Sign in." }] } }),
    );
    await text().fill("After lunch.");
    await button().click();
    await form().getByText("You are not signed in").first().waitFor();
    await page.unroute("**/graphql");
    await page.goto(product.host.url);
    await page.getByRole("button", { name: "Max Member" }).click();
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.goto(meeting);
    await form().getByText("The service has not taken the note").waitFor();
    expect(await text().inputValue()).toBe("After lunch.");
    await button("Send again").click();
    await isWritten();
    expect(writtenOn()).toHaveLength(1);
  });

  test("a request that comes late, after its text was changed and sent, makes no second note", async () => {
    await openMeeting("singleDeal");
    const arrive = await sendAndHoldBack("First words.");
    await button("Edit").click();
    await text().fill("Second words.");
    await arrive();
    await button().click();
    await form().getByText("it may be the text as it was before").waitFor();
    expect(writtenOn()).toEqual([expect.objectContaining({ content: expect.stringContaining("First words.") })]);
    expect(await text().inputValue()).toBe("Second words.");
  });

  test("a note that the CRM refused is said to be not written, and its text can be changed and sent", async () => {
    await openMeeting("singleDeal");
    product.simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "throttle" } });
    const { releaseLooks } = await loseAnswer(worked((route) => route.abort()));
    await text().fill("Too early.");
    await button().click();
    await form().getByText(NOT_KNOWN).waitFor();
    releaseLooks();
    await form().getByText("The note was not written", { exact: true }).waitFor();
    await text().fill("Later.");
    await button().click();
    await isWritten();
    expect(writtenOn().map(({ content }) => String(content).slice(0, 12))).toEqual(["<p>Too early", "<p>Later.</p"]);
    expect(
      await product.database.query(
        "SELECT state FROM note_write WHERE state = 'WRITTEN' AND requested_at > now() - interval '5 seconds'",
      ),
    ).toHaveLength(1);
  });
});

/** As receipts stand that are looked up no more; of a company that is not connected nothing is read, so its record is out of sight. */
const FOR_GOOD: [string, string, string][] = [
  [
    "a day of looks has not found out",
    "next_look_up_at = NULL, requested_at = now() - interval '25 hours', error_message = 'Search the CRM for it.'",
    "Search the CRM for it.",
  ],
  [
    "is of a CRM that another one has replaced",
    "crm_company_id = crm_company_id + 1, requested_at = now() - interval '15 minutes'",
    "It is looked for in the CRM",
  ],
];

// Seen red: the form was locked for ever, and said that it was being looked up.
test.each(FOR_GOOD)(
  "a note whose fate %s can be written again by who is told that it may be there twice",
  async (_, set, said) => {
    await openMeeting("singleDeal");
    product.simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { status: 503 } });
    await text().fill("Nobody knows.");
    await button().click();
    await form().getByText(NOT_KNOWN).waitFor();
    const anew = button("Write it again, though it may be there twice");
    expect(await anew.count()).toBe(0);
    await product.database.query(`UPDATE note_write SET ${set} WHERE state = 'UNKNOWN'`);
    await page.reload();
    await anew.waitFor();
    await form().getByText(said).first().waitFor();
    expect([await text().inputValue(), await button().isEnabled()]).toEqual(["Nobody knows.", false]);
    expect(await findings(page)).toEqual([]);
    await anew.click();
    await form().getByText("The note may have been written").waitFor();
    expect(await findings(page)).toEqual([]);
    await page.reload();
    expect([await text().inputValue(), writtenOn().length]).toEqual(["Nobody knows.", 1]);
    await button().click();
    await form().getByText("The note was written", { exact: true }).waitFor();
    expect(writtenOn()).toHaveLength(2);
    await product.database.query("DELETE FROM note_write WHERE state = 'UNKNOWN'");
  },
);

// Seen red: after the reload the text that was refused stood there.
test("what is typed in place of a note stays when the note is refused late, though the meeting is of another deal by then", async () => {
  const title = await openMeeting("severalDeals");
  await page.getByRole("button", { name: "Choose Baltic Mills – renewal" }).click();
  await form().getByText("On Deal: Baltic Mills – renewal").waitFor();
  await sendAndHoldBack("Of the renewal.");
  await page.getByText("It is about another deal").click();
  await page.getByRole("button", { name: "Choose Baltic Mills – second plant" }).click();
  await page.getByRole("heading", { name: "Baltic Mills – second plant", level: 2 }).waitFor();
  let refuse: () => Promise<void> = async () => undefined;
  await page.route("**/graphql", async (route) => {
    if (!isOf(route, "mutation WriteNote")) return route.fallback();
    refuse = () => route.fulfill(REFUSED);
  });
  await button("Send again").click();
  await openMeetingAgain(page, title);
  await form().getByText("The service has not taken the note").waitFor();
  await button("Edit").click();
  await text().fill("Of the second plant.");
  await refuse();
  await page.evaluate("new Promise((done) => setTimeout(done, 100))");
  await page.reload();
  expect(await text().inputValue()).toBe("Of the second plant.");
});

// Seen red: what could not be read of it was taken for a record that is out of sight for good.
test("a look that is answered in part does not unlock a note", async () => {
  await openMeeting("singleDeal");
  product.simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { status: 503 } });
  let looks = 0;
  await answerWith(page, "query NoteByKey", ({ data }: { data: { crmWrites: { nodes: object[] } } }) => {
    looks += 1;
    const requestedAt = new Date(Date.now() - 11 * 60_000).toISOString();
    const nodes = data.crmWrites.nodes.map((node) => ({ ...node, requestedAt, target: null }));
    return { data: { crmWrites: { nodes } }, errors: [{ message: "The record could not be read." }] };
  });
  await text().fill("Nobody knows yet.");
  await button().click();
  await until("it was looked up, and again", async () => looks > 1);
  await form().getByText(NOT_KNOWN).waitFor();
  expect(await button("Write it again, though it may be there twice").count()).toBe(0);
});
