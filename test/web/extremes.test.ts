import type { BrowserContextOptions, Page } from "playwright-core";
import { fieldOf, setMapping } from "../support/fields";
import { connect, recordMeeting, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { startProduct } from "./support/product";
import { overhang } from "./support/steps";

const TITLE = `פגישת סיכום עם Halden ${"Verkaufs".repeat(25)}`;
const DEAL = `عقد سنوي – ${"Halden".repeat(30)}`;
const LONG = `محمد ${"Wolfeschlegelstein".repeat(8)}`;
const WORDS = "Long and true. ".repeat(3_999);

const product = useStarted(startProduct);
beforeAll(async () => {
  const { service, simulator } = product;
  const { dealId, email, colleagueEmail, noteId, personId, ownerId } = simulator.company.stories.singleDeal;
  const { ghosted } = simulator.company.stories;
  simulator.control.change("deal", dealId, { title: DEAL });
  simulator.control.change("deal", ghosted.dealId, { value: 99_999_999_999.5, currency: "JPY" });
  const [owner, field] = [simulator.company.users.get(ownerId), fieldOf(simulator, "DEAL", "text")];
  if (owner) owner.name = LONG;
  field.field_name = LONG;
  simulator.control.change("person", personId, { name: "مارتا ليندكفيست" });
  simulator.control.change("note", noteId, {
    content: `<h1>Agreed</h1><script>alert(1)</script><ul><li>${WORDS}</li></ul><p><b>The end.</b> <a href="javascript:alert(1)">here</a> <a href="https://example.com/">there</a></p>`,
  });
  await connect(service, simulator);
  await syncEnds(service);
  await setMapping(service, "DEAL", field.field_code);
  const strangers = Array.from({ length: 498 }, (_, index) => `guest.${index}@town-hall.example`);
  await recordMeeting(service, [email, colleagueEmail, ...strangers], { title: TITLE });
  await recordMeeting(service, [ghosted.email], { startsAt: new Date(Date.now() - 34.5 * 86_400_000).toISOString() });
});

async function open(options: BrowserContextOptions): Promise<Page> {
  const page = await product.signIn("member", options);
  await page.getByRole("link", { name: "Meetings" }).first().click();
  await page.getByRole("link", { name: TITLE }).waitFor();
  expect(await overhang(page)).toBe(0);
  await page.getByRole("link", { name: TITLE }).click();
  await page.getByRole("region", { name: DEAL }).waitFor();
  return page;
}

const LOOKS: [string, BrowserContextOptions][] = [
  ["380 pixels", { viewport: { width: 380, height: 760 } }],
  ["320 pixels, dark", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
  ["200 % zoom", { viewport: { width: 590, height: 430 }, deviceScaleFactor: 2, reducedMotion: "reduce" }],
];

test.each(LOOKS)(
  "at %s a briefing of 500 attendees, names of two directions and without a blank, and a note of 60,000 characters can be read",
  async (look, options) => {
    const page = await open(options);
    expect(await overhang(page)).toBe(0);
    await page.getByText("and 497 others").waitFor();
    await page.getByText("Others in the meeting (498)").click();
    await page.getByText("guest.497@town-hall.example").waitFor();
    await screenshot(page, `briefing-${look.replace(/\W+/g, "-")}`);
    await page.context().close();
  },
);

test("a long note is short until it is asked for, keeps its form, and only safe links lead out of it", async () => {
  const page = await open({});
  const note = page.getByRole("region", { name: "Notes in the CRM" }).getByRole("article");
  const short = (await note.boundingBox())?.height ?? 0;
  await note.getByRole("button", { name: "Show the whole note" }).click();
  expect((await note.boundingBox())?.height).toBeGreaterThan(2 * short);
  await note.getByRole("heading", { name: "Agreed" }).waitFor();
  expect(await note.locator("script").count()).toBe(0);
  expect(await note.getByRole("link", { name: "there" }).getAttribute("href")).toBe("https://example.com/");
  expect(await note.getByRole("link", { name: "here", exact: true }).count()).toBe(0);
  expect(await findings(page)).toEqual([]);
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
  expect(pdf.match(/\/Type\s*\/Page\b/g)).not.toBeNull();
});

/** Text that reaches out of the card or the cell that it stands in, by more than a pixel. */
const REACHING_OUT = `[...document.querySelectorAll(".card, td, th")].flatMap((place) => {
  const [texts, found] = [document.createTreeWalker(place, NodeFilter.SHOW_TEXT), []];
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(text);
    const beyond = range.getBoundingClientRect().right - place.getBoundingClientRect().right;
    if (beyond > 1 && !text.parentElement.closest(".visually-hidden, select, dialog")) found.push(text.data);
  }
  return found;
})`;

test.each([1180, 320])("at %i pixels no name and no amount reaches into what stands beside it", async (width) => {
  const page = await product.signIn("admin", { viewport: { width, height: 760 } });
  await page.getByRole("region", { name: "What is seen of the CRM" }).getByText(LONG).first().waitFor();
  await page.getByRole("region", { name: "Fields the service may write" }).getByText(LONG).waitFor();
  expect([await overhang(page), await page.evaluate(REACHING_OUT)]).toEqual([0, []]);
  await page.goto(`${product.service.url}/quiet`);
  // Exact, whatever is usual in its currency.
  await page.getByRole("table").getByText("JP¥99,999,999,999.5").waitFor();
  expect([await overhang(page), await page.evaluate(REACHING_OUT)]).toEqual([0, []]);
  await page.context().close();
});
