import type { Page } from "playwright-core";
import { fieldOf, heldIn, setMapping } from "../support/fields";
import { recordMeeting, syncAgain } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { startConnected } from "./support/product";
import { focusIsKept, noteForm, openMeeting, openNewMeeting } from "./support/steps";

let page: Page;

const DAY_MS = 86_400_000;
const product = useStarted(startConnected);
beforeAll(async () => {
  const { service, simulator } = product;
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "text").field_code);
  await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", "varchar").field_code);
});
beforeEach(async () => {
  product.simulator.control.clearFaults();
  page = await product.signIn("member");
});

const card = (name: string | RegExp) => page.getByRole("region", { name });

test("a ghosted deal says only why it is ghosted, and the contact that counts stands in timeline and picture", async () => {
  const { email } = product.simulator.company.stories.ghosted;
  await openNewMeeting(product, page, [email], { startsAt: new Date(Date.now() - 33.6 * DAY_MS).toISOString() });
  const contact = card("Contact with the buyer");
  await contact.getByText("Ghosted", { exact: true }).waitFor();
  const days = /The buyer has been silent for (3\d days)/.exec((await contact.textContent()) ?? "")?.[1];
  const reasons = await contact.getByRole("listitem").allTextContents();
  expect(reasons).toEqual([expect.stringContaining("no answer is known to our last")]);
  await card("Timeline").getByText(`${days} ago, silence is counted from here`).waitFor();
  expect(await card("Timeline").getByText("Recorded meeting").count()).toBe(1);
  expect(await contact.locator(".chart-counted").count()).toBe(1);
  expect(await contact.getByText("this changes").count()).toBe(0);
  expect(await findings(page)).toEqual([]);
});

const connectedDaysAgo = (days: number) =>
  product.database.query("UPDATE connection SET connected_at = now() - make_interval(days => $1)", [days]);

// Seen red: "Nothing of the deal has changed in the CRM" in the last 30 days, of which nobody had looked at the first 28.
// And "What changed before is not told here", where it had been looked at and somebody had only authorized again.
test("of the time before the CRM was connected nothing is said to have changed, nor that nothing has", async () => {
  const { email } = product.simulator.company.stories.singleDeal;
  await connectedDaysAgo(2);
  const title = await openNewMeeting(product, page, [email]);
  const changed = card("Changed since the CRM was connected");
  await changed.getByText("As far as has been seen, nothing of the deal has changed.").waitFor();
  const day = new Date(Date.now() - 2 * DAY_MS).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  await changed.getByText(day).and(changed.getByText("What changed before may be missing here.")).waitFor();
  expect(await findings(page)).toEqual([]);
  await connectedDaysAgo(31);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: title }).waitFor();
  await card("Changed in the last 30 days")
    .getByText("As far as has been seen, nothing of the deal has changed.")
    .waitFor();
});

test("what has changed since the last meeting is said from what to what, and the last meeting is a link", async () => {
  const { service, simulator, database } = product;
  const { dealId, email } = simulator.company.stories.singleDeal;
  await recordMeeting(service, [email], {
    title: "The meeting before",
    startsAt: new Date(Date.now() - DAY_MS).toISOString(),
  });
  simulator.control.change("deal", dealId, { value: 51_000, expected_close_date: "2027-03-01" });
  await syncAgain(service, database);
  await connectedDaysAgo(31);
  await openNewMeeting(product, page, [email]);
  const changed = card("Changed since the last meeting");
  await changed.getByRole("link", { name: "The meeting before" }).waitFor();
  const value = changed.getByRole("listitem").filter({ hasText: "Value" });
  await value.getByText("€48,250.75").waitFor();
  await value.getByText("€51,000").waitFor();
  await changed.getByText("1 Mar 2027").waitFor();
  expect(await findings(page)).toEqual([]);
  await changed.getByRole("link", { name: "The meeting before" }).click();
  await page.getByRole("heading", { level: 1, name: "The meeting before" }).waitFor();
});

test("notes of the CRM keep their form, author and link, and nothing in them runs", async () => {
  await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
  const notes = card("Notes in the CRM");
  await notes.getByRole("strong").or(notes.locator("b")).filter({ hasText: "legal" }).waitFor();
  await notes.getByText("Olivia Lefèvre").first().waitFor();
  await notes.getByRole("link", { name: "open in the CRM" }).first().waitFor();
});

test("a choice is made with the evidence beside it, and taken back", async () => {
  await openNewMeeting(product, page, [product.simulator.company.stories.severalDeals.email]);
  const choice = card("Which deal is this meeting about?");
  const second = choice.getByRole("listitem").filter({ hasText: "second plant" });
  await second.getByText("owned by Rahul Eriksen").waitFor();
  await second.getByText("Last contact:").waitFor();
  await second.getByRole("link", { name: "open in the CRM" }).waitFor();
  await page.getByRole("button", { name: "Choose Baltic Mills – second plant" }).click();
  await page.getByRole("button", { name: "Take the choice back" }).click();
  await choice.waitFor();
  await focusIsKept(page);
  expect(await findings(page)).toEqual([]);
});

test("all that a person sees first comes with one answer of the API", async () => {
  await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
  const address = page.url();
  // A request that the page before still sends would be the one that is answered.
  await page.goto("about:blank");
  let answered = 0;
  await page.route("**/graphql", async (route) => {
    answered += 1;
    if (answered === 1) await route.continue();
  });
  await page.goto(address);
  const deal = card("Halden Freight A/S – annual licence");
  await deal.getByText("Contract review").waitFor();
  await card(/^Changed /).waitFor();
  await card("Contact with the buyer").getByRole("img").waitFor();
  await card("People").getByText("Marta Lindqvist").waitFor();
  await card("Notes in the CRM").waitFor();
  await noteForm(page).write.waitFor();
});

test("a printed briefing is one page", async () => {
  await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
  await card("Contact with the buyer").waitFor();
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
  expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
  await page.emulateMedia({ media: "print" });
  expect(await page.getByRole("textbox", { name: "Note" }).isVisible()).toBe(false);
  await card("Timeline").waitFor();
});

test("a printed briefing is dark on white, and says of when it is for who reads it later", async () => {
  await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
  const asOf = page.getByText(/^CRM data as of/);
  expect(await asOf.innerText()).toMatch(/^CRM data as of [\w ]+\.$/);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await asOf.innerText()).toMatch(/^CRM data as of [\w ]+, \d+ \w+ 2\d\d\d, \d\d:\d\d \S+\.$/);
  const colours =
    "[getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.querySelector('h1')).color]";
  expect(await page.evaluate(colours)).toEqual(["rgb(255, 255, 255)", "rgb(24, 32, 44)"]);
});

test("the confirmation names record and author and leads to the record in the CRM", async () => {
  await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
  const { form, text, write } = noteForm(page);
  await text.fill("Agreed.");
  await write.click();
  const said = form.getByRole("status").filter({ hasText: "The note was written" });
  await said.getByText("Deal: Halden Freight A/S – annual licence").waitFor();
  await said.getByText("Olivia Lefèvre").waitFor();
  const { dealId } = product.simulator.company.stories.singleDeal;
  const link = said.getByRole("link", { name: "See it in the CRM" });
  expect(await link.getAttribute("href")).toMatch(new RegExp(`/deal/${dealId}$`));
  expect(await findings(page)).toEqual([]);
});

describe("Nominated fields", () => {
  const fields = () => page.getByRole("form", { name: "Nominated fields" });
  const fill = async () => {
    await openNewMeeting(product, page, [product.simulator.company.stories.singleDeal.email]);
    await fields()
      .getByLabel(/\(Long text\)/)
      .fill("Wants it by spring.");
    await fields()
      .getByLabel(/\(Text\)/)
      .fill("Decides");
  };
  const results = () => fields().getByRole("status").getByRole("listitem");

  test("are written beside the note, each with its result", async () => {
    const { simulator } = product;
    const { dealId, personId } = simulator.company.stories.singleDeal;
    const title = await openNewMeeting(product, page, [simulator.company.stories.singleDeal.email]);
    await fields()
      .getByLabel(/\(Long text\)/)
      .fill("Wants it by spring.");
    await openMeeting(page, title);
    expect(
      await fields()
        .getByLabel(/\(Long text\)/)
        .inputValue(),
    ).toBe("Wants it by spring.");
    await fields()
      .getByLabel(/\(Text\)/)
      .fill("Decides");
    await fields().getByRole("button", { name: "Write the fields" }).click();
    await results().first().getByText("Written").waitFor();
    await results().last().getByText("Written").waitFor();
    expect(await results().count()).toBe(2);
    expect(heldIn(simulator, "DEAL", dealId, fieldOf(simulator, "DEAL", "text").field_code)).toBe(
      "Wants it by spring.",
    );
    expect(heldIn(simulator, "PERSON", personId, fieldOf(simulator, "PERSON", "varchar").field_code)).toBe("Decides");
    expect(
      await fields()
        .getByLabel(/\(Long text\)/)
        .inputValue(),
    ).toBe("");
    await screenshot(page, "briefing-fields", page.getByRole("region", { name: "Note to the CRM" }));
  });

  test("one that fails hides none that was written, and stays to be corrected", async () => {
    await fill();
    product.simulator.control.fail({ match: "/api/v2/persons", method: "PATCH", with: { status: 403 } });
    await fields().getByRole("button", { name: "Write the fields" }).click();
    await results().filter({ hasText: "Halden" }).getByText("Written", { exact: true }).waitFor();
    await results().filter({ hasText: "Marta" }).getByText("Not written", { exact: true }).waitFor();
    expect(
      await fields()
        .getByLabel(/\(Text\)/)
        .inputValue(),
    ).toBe("Decides");
    expect(
      await fields()
        .getByLabel(/\(Long text\)/)
        .inputValue(),
    ).toBe("");
  });

  test("a lost answer is asked for again with the same key, and nothing is written twice", async () => {
    await fill();
    let isLost = false;
    await page.route("**/graphql", async (route) => {
      if (isLost || !route.request().postData()?.includes("mutation WriteFields")) return route.continue();
      isLost = true;
      await route.fetch();
      await route.abort();
    });
    await fields().getByRole("button", { name: "Write the fields" }).click();
    await fields().getByText("We do not know yet").waitFor();
    await results().first().getByText("Written").waitFor();
    expect(product.simulator.log.of("PATCH", "/api/v2/")).toHaveLength(2);
  });
});
