import type { Page } from "playwright-core";
import { connect, recordMeeting, syncAgain, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { startProduct } from "./support/product";
import { answerWith, disconnected, failed } from "./support/steps";

let page: Page;

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);

const product = useStarted(startProduct);
beforeAll(async () => {
  const { service, simulator } = product;
  const { singleDeal, severalDeals, ghosted } = simulator.company.stories;
  const [dealId] = severalDeals.dealIds;
  simulator.control.add("activity", {
    subject: "Prepare the offer",
    deal_id: dealId,
    due_date: TOMORROW,
    due_time: "",
  });
  await connect(service, simulator);
  await syncEnds(service);
  const ownerEmail = simulator.company.users.get(singleDeal.ownerId)?.email ?? "";
  const hour = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const meetings: [title: string, emails: string[], inHours: number][] = [
    ["Walk through the proposal", [singleDeal.email, singleDeal.colleagueEmail, ownerEmail], 2],
    ["Quarterly catch-up", [severalDeals.email], 5],
    ["Intro call", [ghosted.email], -34.5 * 24],
    ["First call", ["curious.newcomer@somewhere-new.example"], 24],
  ];
  for (const [title, emails, inHours] of meetings) {
    // Of a seller who owns no deal: who owns one would decide between two.
    await recordMeeting(service, emails, { title, startsAt: hour(inHours) });
  }
  page = await product.signIn("member");
});
afterEach(() => product.simulator.control.clearFaults());

async function open(title: string): Promise<void> {
  await page.getByRole("link", { name: "Meetings" }).first().click();
  await page.getByRole("link", { name: title }).click();
  await page.getByRole("heading", { level: 1, name: title }).waitFor();
}
const card = (name: string) => page.getByRole("region", { name });

test("a seller opens a meeting and sees the deal, why it is that one, its people, the contact and the timeline", async () => {
  await page.getByRole("link", { name: "Meetings" }).click();
  await page.getByRole("heading", { level: 1, name: "Meetings" }).waitFor();
  const line = page.getByRole("listitem").filter({ hasText: "Quarterly catch-up" });
  await line.getByText("2 deals to choose from").waitFor();
  await screenshot(page, "meetings");
  await open("Walk through the proposal");
  const deal = card("Halden Freight A/S – annual licence");
  await page.getByText("With Marta Lindqvist, Jens Aaby; held by").waitFor();
  await deal.getByText("It is the only deal of the attendees").waitFor();
  await deal.getByText("€48,250.75").waitFor();
  await deal.getByText("Proposal made").waitFor();
  await deal.getByText("Contract review").waitFor();
  await card("People").getByText("marta.lindqvist@halden-freight.example").waitFor();
  await card("Timeline").getByText("Mail from Marta Lindqvist").waitFor();
  const contact = card("Contact with the buyer");
  await contact.getByText("Active", { exact: true }).waitFor();
  await contact.getByRole("img", { name: /contacts?, the latest .* ago/ }).waitFor();
  await screenshot(page, "briefing");
});

test("a quiet deal says in plain words why it is held for quiet", async () => {
  await open("Intro call");
  const contact = card("Contact with the buyer");
  await contact.getByText("Ghosted", { exact: true }).waitFor();
  await contact.getByText("no answer is known to our last").waitFor();
  await screenshot(page, "briefing-quiet");
});

test("where two deals could be meant a person chooses, and may change their mind", async () => {
  await open("Quarterly catch-up");
  await page.getByRole("heading", { name: "Which deal is this meeting about?" }).waitFor();
  await screenshot(page, "briefing-choice");
  await page.getByRole("button", { name: "Choose Baltic Mills – renewal" }).click();
  await page.getByRole("heading", { name: "Baltic Mills – renewal", level: 2 }).waitFor();
  // A day is no instant, "in 8 hours".
  const tomorrow = await page.evaluate(
    (date) => new Date(date).toLocaleDateString(undefined, { timeZone: "UTC", dateStyle: "medium" }),
    TOMORROW,
  );
  await card("Baltic Mills – renewal").getByText(`Prepare the offer, on ${tomorrow}`).waitFor();
  expect(await page.locator(".chart-next title").textContent()).toBe(`Next step, ${tomorrow}`);
  await page.getByText("It is about another deal").click();
  await page.getByRole("button", { name: "Choose Baltic Mills – second plant" }).click();
  await page.getByRole("heading", { name: "Baltic Mills – second plant", level: 2 }).waitFor();
});

test("a stranger's meeting has no deal and says why, and offers no note", async () => {
  await open("First call");
  await card("No deal").waitFor();
  await page.getByText("there is nothing to write a note on").waitFor();
  expect(await page.getByRole("button", { name: "Write to the CRM" }).count()).toBe(0);
  expect(await findings(page)).toEqual([]);
});

test("a note is looked at before it is written, arrives once, and leaves a receipt", async () => {
  await open("Walk through the proposal");
  product.simulator.log.clear();
  await page
    .getByRole("textbox", { name: "Note" })
    .fill(
      "# Agreed\n\n#### So far\n\nWe **agreed** on the price.\n\n- send the contract\n\n<img src=x onerror=alert(1)>\n\n" +
        "1. Price\n\nAs ![drawn](https://a.example/x.png), see [there](/deals/1).\n\n2. Contract",
    );
  await page.getByRole("button", { name: "Preview" }).click();
  const preview = page.getByRole("region", { name: "Preview" });
  expect(await preview.locator("strong").textContent()).toBe("agreed");
  expect(await preview.locator("img").count()).toBe(0);
  await preview.getByText("<img src=x onerror=alert(1)>").waitFor();
  const made = await preview
    .locator("ol, a")
    .evaluateAll((all) => all.map((one) => `${one.textContent?.trim()} ${one.getAttribute("href") ?? ""}`));
  // Seen red: the second point was sent as the first, the image was no link, and the link within the CRM was one.
  expect(made).toEqual(["Price ", "drawn https://a.example/x.png", "Contract "]);
  expect(await preview.locator("ol[start='2']").count()).toBe(1);
  // Seen red: a second title of the page, as a screen reader has its headings, and one three levels below it.
  expect(await preview.getByRole("heading", { level: 3 }).allTextContents()).toEqual(["Agreed", "So far"]);
  await screenshot(page, "briefing-note", card("Note to the CRM"));
  await page.getByRole("button", { name: "Write to the CRM" }).click();
  const note = card("Note to the CRM");
  await note.getByText("Written", { exact: true }).waitFor();
  await note.getByText(/^CRM-[0-9A-Z]{10}$/).waitFor();
  expect(await page.getByRole("textbox", { name: "Note" }).inputValue()).toBe("");
  const [sent, ...more] = product.simulator.log.of("POST", "/api/v1/notes");
  expect(more).toEqual([]);
  const content = JSON.stringify(sent?.body).replaceAll('\\"', "'");
  expect(content).toContain("<strong>agreed</strong>");
  for (const part of ["<ol start='2'>", "href='https://a.example/x.png'", "[there](/deals/1)"]) {
    expect(content).toContain(part);
  }
  expect(await findings(page)).toEqual([]);
});

test("where the CRM's answer is lost the page and the receipt say that it is not known until it is, and nothing is sent again", async () => {
  await open("Intro call");
  product.simulator.log.clear();
  product.simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "lostAfter" } });
  await page.getByRole("textbox", { name: "Note" }).fill("They did not answer.");
  await page.getByRole("button", { name: "Write to the CRM" }).click();
  const note = card("Note to the CRM");
  await note.getByText("Not known yet").waitFor();
  await note.getByText("the note may or may not be there").first().waitFor();
  await screenshot(page, "briefing-note-unknown", note);
  await note.getByText("We do not know yet whether the note was written").waitFor();
  expect(await page.getByRole("button", { name: "Write to the CRM" }).isEnabled()).toBe(false);
  expect(await page.getByRole("textbox", { name: "Note" }).inputValue()).toBe("They did not answer.");
  await note.getByText("The note was written", { exact: true }).waitFor();
  expect(product.simulator.log.of("POST", "/api/v1/notes")).toHaveLength(1);
});

test("a refused note keeps its text and says why", async () => {
  await open("Walk through the proposal");
  product.simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "throttle" } });
  await page.getByRole("textbox", { name: "Note" }).fill("For later.");
  await page.getByRole("button", { name: "Write to the CRM" }).click();
  await card("Note to the CRM").getByText("Not written", { exact: true }).waitFor();
  expect(await page.getByRole("textbox", { name: "Note" }).inputValue()).toBe("For later.");
});

describe("A briefing that is read in part, or not at all,", () => {
  interface Told {
    meeting: { briefing: object };
  }
  const AS_IF = {
    nothing: () => null,
    "no meeting": (told: Told) => ({ ...told, meeting: null }),
    "no briefing": (told: Told) => ({ ...told, meeting: { ...told.meeting, briefing: null } }),
    "no deal": (told: Told) => ({
      ...told,
      meeting: { ...told.meeting, briefing: { ...told.meeting.briefing, deal: null } },
    }),
  };
  const readAs = (name: keyof typeof AS_IF, message: string) =>
    answerWith(page, "query Briefing(", ({ data }) => failed(message, AS_IF[name](data)));
  const untrue = () =>
    page
      .getByText(/^(There is no such meeting|No CRM is connected|Which deal is this meeting about\?|No deal)$/)
      .count();
  afterEach(() => page.unrouteAll({ behavior: "ignoreErrors" }));

  // Seen red: the page was empty, or said that no CRM was connected, or that there was no such meeting.
  test("takes nothing away that was read before", async () => {
    await open("Quarterly catch-up");
    const deal = card("Baltic Mills – second plant");
    await deal.waitFor();
    for (const name of Object.keys(AS_IF) as (keyof typeof AS_IF)[]) {
      await readAs(name, `Not now: ${name}.`);
      await syncAgain(product.service, product.database);
      await page.getByText(`Not now: ${name}.`).waitFor();
      expect([name, await deal.count(), await untrue()]).toEqual([name, 1, 0]);
    }
    await page.unrouteAll({ behavior: "wait" });
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText(/^Not now/).waitFor({ state: "detached" });
    await deal.waitFor();
  });

  test.each(Object.keys(AS_IF) as (keyof typeof AS_IF)[])("is told as that, and not as a fact: %s", async (name) => {
    await open("Quarterly catch-up");
    await readAs(name, "Not now.");
    await page.reload();
    await page.getByText("Not now.").waitFor();
    expect(await untrue()).toBe(0);
    expect(await findings(page)).toEqual([]);
    await page.unrouteAll({ behavior: "wait" });
    await page.getByRole("button", { name: "Try again" }).click();
    await card("Baltic Mills – second plant").waitFor();
  });
});

test("an address that names no meeting of this organization says so", async () => {
  await page.goto(`${product.service.url}/meetings/TWVldGluZzo0`);
  await page.getByRole("heading", { level: 1, name: "There is no such meeting" }).waitFor();
  expect(await findings(page)).toEqual([]);
});

test("without a connection a briefing shows nothing of before, and the way to connect", async () => {
  await open("Walk through the proposal");
  await card("People").waitFor();
  await disconnected(product);
  await page.getByRole("heading", { name: "No CRM is connected" }).waitFor();
  // Whom the meeting is with is the calendar's word.
  expect(await page.getByText("Halden Freight A/S").count()).toBe(0);
});
