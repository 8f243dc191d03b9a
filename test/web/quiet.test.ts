import type { Locator, Page } from "playwright-core";
import { recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { multiplyDeal } from "./support/many-deals";
import { startConnected } from "./support/product";
import { answerWith, disconnected, failed, focusIsKept, overhang, recordPastMeetings, tabTo } from "./support/steps";

const DAY_MS = 86_400_000;
const GHOSTED = "Corvus Optik – rollout";
let page: Page;

const product = useStarted(() => startConnected({ crm: { deals: 60 } }));
beforeAll(async () => {
  page = await product.signIn("member");
  await page.getByRole("link", { name: "Quiet deals" }).click();
});

const rows = (on = page) =>
  on
    .getByRole("table")
    .getByRole("row")
    .filter({ has: on.getByRole("cell") });
const rowOf = (title: string, on = page) => on.getByRole("row").filter({ hasText: title });
const days = async (on = page) =>
  (
    await rows(on)
      .getByText(/^\d+ days?$/)
      .allTextContents()
  ).map((text) => Number.parseInt(text, 10));
const search = (on = page) => new URL(on.url()).search;
const isFocused = async (element: Locator) => (await element.and(page.locator(":focus")).count()) === 1;

test("while no meeting is recorded the board is empty, and says what is looked at", async () => {
  await page.getByRole("heading", { name: "No deal has gone quiet" }).waitFor();
  await page.getByText("Deals without a recorded meeting are not looked at.").waitFor();
  await screenshot(page, "quiet-empty");
});

test("a deal is a row: the buyer's silence, the strongest reason, and how many more there are", async () => {
  const { service, simulator } = product;
  await recordPastMeetings(product);
  const startsAt = new Date(Date.now() - 36 * DAY_MS).toISOString();
  await recordMeeting(service, [simulator.company.stories.ghosted.email], { startsAt });
  await page.reload();
  const row = rowOf(GHOSTED);
  await row.getByText("Ghosted").waitFor();
  await row.getByText("buyer silent").waitFor();
  await row.getByText(/no answer is known to our last/).waitFor();
  await row.getByRole("button", { name: /\d more reasons? for/ }).waitFor();
  const shown = await days();
  expect(shown.length).toBe(await rows().count());
  expect(shown).toEqual([...shown].sort((a, b) => b - a));
  await page.getByRole("heading", { level: 2, name: `${shown.length} deals, worth` }).waitFor();
  await page.getByText(/^CRM data as of/).waitFor();
  await screenshot(page, "quiet");
});

// Seen red: the reading that the change asked for was given the answer that was on its way, and the board stayed old.
test("what changes while an older answer is still on its way is not missed", async () => {
  const { service, database } = product;
  const slow = await product.signIn("admin");
  let deliver: () => void = () => undefined;
  const delivered = new Promise<void>((release) => {
    deliver = release;
  });
  let answered: () => void = () => undefined;
  const old = new Promise<void>((done) => {
    answered = done;
  });
  await slow.route(/graphql$/, async (route) => {
    if (!route.request().postData()?.includes("QuietDeals")) return route.continue();
    const response = await route.fetch();
    answered();
    await delivered;
    await route.fulfill({ response });
  });
  await slow.getByRole("link", { name: "Quiet deals" }).click();
  await old;
  const rename = (from: string, to: string) =>
    database.query("UPDATE deal SET title = $2 WHERE title = $1", [from, to]);
  await rename(GHOSTED, "Renamed meanwhile");
  await service.ask("mutation { requestSync { __typename } }");
  await syncEnds(service);
  await slow.waitForTimeout(2_000);
  deliver();
  await rowOf("Renamed meanwhile", slow).waitFor();
  await slow.unrouteAll({ behavior: "ignoreErrors" });
  await slow.context().close();
  await rename("Renamed meanwhile", GHOSTED);
  await page.reload();
  await rows().first().waitFor();
});

test("a deal takes a line or two: twenty of them are no long way", async () => {
  for (const row of await rows().all()) expect((await row.boundingBox())?.height).toBeLessThan(125);
  const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
  expect(height).toBeLessThan(900 + (await rows().count()) * 110);
});

test("a dot of the picture opens its deal by mouse, by touch and by keyboard, and gives the focus back", async () => {
  const dots = page.getByRole("list", { name: /deals by stage and days of silence/ }).getByRole("button");
  // Drawn a moment after the rows, when the chart knows its width.
  await dots.first().waitFor();
  expect(await dots.count()).toBe(await rows().count());
  await page.getByText(/dashed lines: quiet from .* days on, ghosted from 7 days on/).waitFor();
  const dot = dots.and(page.getByRole("button", { name: `${GHOSTED}: ghosted` }));
  await dot.click();
  const dialog = page.getByRole("dialog", { name: GHOSTED });
  expect(await dialog.getByRole("listitem").count()).toBeGreaterThan(1);
  await screenshot(page, "quiet-deal", dialog);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await until("the focus is given back", () => isFocused(dot));
  await page.keyboard.press("ArrowRight");
  const another = page.locator(".dot button:focus");
  await until("another dot has it", async () => !(await isFocused(dot)) && (await isFocused(another)));
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");

  const phone = await product.signIn("member", { hasTouch: true, viewport: { width: 380, height: 760 } });
  await phone.goto(page.url());
  await phone.getByRole("button", { name: `${GHOSTED}: ghosted` }).tap();
  await phone.getByRole("dialog", { name: GHOSTED }).waitFor();
  expect(await findings(phone)).toEqual([]);
});

/** Where the dots stand in the measure of the chart behind them. */
const DOTS = `(() => {
  const toChart = document.querySelector("svg.chart").getScreenCTM().inverse();
  return [...document.querySelectorAll(".dot")].flatMap((dot) => {
    const { left, top, width, height } = dot.getBoundingClientRect();
    const { x, y } = new DOMPoint(left + width / 2, top + height / 2).matrixTransform(toChart);
    return [x, y];
  });
})()`;
const NO_RESIZE_OBSERVED = "window.ResizeObserver = class { observe() {} disconnect() {} };";

// Seen red with: dots that are so many pixels from the top; so many from the left.
test("dots stand in their lanes before the picture is drawn anew for another width, as on paper", async () => {
  const reader = await product.signIn("member");
  await reader.addInitScript(NO_RESIZE_OBSERVED);
  await reader.goto(page.url());
  await rows(reader).first().waitFor();
  const drawn = await reader.evaluate<number[]>(DOTS);
  expect(drawn.length).toBeGreaterThan(4);
  for (const [media, width] of [
    ["screen", 1600],
    ["screen", 500],
    ["print", 700],
  ] as const) {
    await reader.emulateMedia({ media });
    await reader.setViewportSize({ width, height: 860 });
    const moved = (await reader.evaluate<number[]>(DOTS)).map((at, index) => Math.abs(at - (drawn[index] ?? 0)));
    expect([media, width, Math.round(Math.max(...moved))]).toEqual([media, width, 0]);
  }
  await reader.context().close();
});

// Seen red with: the width taken that is none.
test("a picture that is hidden for a while is not drawn to no width", async () => {
  const box = () => page.locator("svg.chart").getAttribute("viewBox");
  const hide = (hidden: boolean) =>
    page.evaluate(`new Promise((done) => {
      document.querySelector("figure").hidden = ${hidden};
      requestAnimationFrame(() => setTimeout(done, 50));
    })`);
  const before = await box();
  await hide(true);
  expect(await box()).toBe(before);
  await hide(false);
  expect(await box()).toBe(before);
});

test("filters and order stand in the address, and a reload or a sent link shows the same board", async () => {
  const all = await rows().count();
  await page.getByRole("checkbox", { name: "Cooling" }).check();
  await rows().getByText("Cooling").first().waitFor();
  expect(await rows().count()).toBeGreaterThan(all);
  await page.getByRole("checkbox", { name: "Cooling" }).uncheck();
  const owner = await rowOf(GHOSTED).locator("[data-name=Owner]").textContent();
  await page.getByRole("combobox", { name: "Owner" }).selectOption({ label: owner ?? "" });
  await page.getByRole("combobox", { name: "Order" }).selectOption("Highest value");
  await until("the board is that owner's", async () => (await rows().count()) < all && (await rows().count()) > 0);
  const titles = await rows().getByRole("rowheader").allTextContents();
  // Without one there would be nothing to show.
  await page.getByRole("checkbox", { name: "Ghosted" }).uncheck();
  expect(await page.getByRole("checkbox", { name: "Quiet" }).isDisabled()).toBe(true);
  await page.getByRole("checkbox", { name: "Ghosted" }).check();
  const least = page.getByRole("textbox", { name: "Least value" });
  await least.fill("a thousand");
  await page.keyboard.press("Enter");
  await page.getByText("An amount like 1,200.5.").waitFor();
  await least.fill("1,000");
  await page.keyboard.press("Enter");
  await until("the address says all of it", async () =>
    /^\?owner=[^&]+&min=1000&currency=[A-Z]{3}&order=VALUE_DESC$/.test(search()),
  );
  const sent = await product.signIn("member");
  await sent.goto(page.url());
  await rows(sent).first().waitFor();
  const ownerOn = (shown: Page) => shown.getByRole("combobox", { name: "Owner" }).locator("option:checked").innerText();
  // The owners' names come after the deals.
  await until("the sent link's owner is shown", async () => (await ownerOn(sent)) === (await ownerOn(page)));
  expect(titles).toEqual(expect.arrayContaining(await rows(sent).getByRole("rowheader").allTextContents()));
  await least.fill("99999999");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "No deal fits" }).waitFor();
  expect(await findings(page)).toEqual([]);
  await page.getByRole("link", { name: "Show all quiet deals" }).click();
  await rowOf(GHOSTED).waitFor();
  expect([search(), await rows().count(), await least.inputValue()]).toEqual(["", all, ""]);
});

// Seen red: "Everybody", while it was one owner's deals.
test("where what the board can be narrowed by cannot be read, the filters do not say that it is everybody's", async () => {
  const other = await product.signIn("member");
  await other.goto(`${product.service.url}/quiet`);
  const owner = (await rowOf(GHOSTED, other).locator("[data-name=Owner]").textContent()) ?? "";
  const choice = other.getByRole("combobox", { name: "Owner" });
  const chosen = () => choice.locator("option:checked").innerText();
  await choice.selectOption({ label: owner });
  await answerWith(other, "query QuietChoices", () => failed("Not now."));
  const failing = other.waitForResponse(
    (answer) => answer.request().postData()?.includes("query QuietChoices") ?? false,
  );
  await syncAgain(product.service, product.database);
  await (await failing).finished();
  await other.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  expect(await chosen()).toBe(owner);
  await other.reload();
  await rowOf(GHOSTED, other).waitFor();
  expect(await chosen()).toBe("Not known");
  await other.unrouteAll({ behavior: "ignoreErrors" });
});

// Seen red: the part was shown in place of the whole, and nothing was said.
test("a board of which a part could not be read says so, and what was read whole before stays", async () => {
  const other = await product.signIn("member");
  const problem = other.getByRole("alert").filter({ hasText: "Not now." });
  const ownerless = ({ data }: { data: object }) =>
    failed(
      "Not now.",
      JSON.parse(JSON.stringify(data), (key, value) => (key === "owner" ? null : value)),
    );
  await other.goto(`${product.service.url}/quiet`);
  const owner = rowOf(GHOSTED, other).locator("[data-name=Owner]");
  const before = await owner.textContent();
  await answerWith(other, "query QuietDeals", ownerless);
  await syncAgain(product.service, product.database);
  await problem.waitFor();
  expect(await owner.textContent()).toBe(before);
  await other.reload();
  await rowOf(GHOSTED, other).waitFor();
  await problem.waitFor();
  expect(await owner.textContent()).not.toBe(before);
  await other.unrouteAll({ behavior: "ignoreErrors" });
  await problem.getByRole("button", { name: "Try again" }).click();
  await problem.waitFor({ state: "detached" });
  expect(await owner.textContent()).toBe(before);
  await other.context().close();
});

test.each([
  ["ar-EG", "١٢٣٬٤٥٦٫٥"],
  ["en-IN", "12,34,567.5"],
])("a least value is taken as %s writes it, and going through the field changes nothing", async (locale, written) => {
  const reader = await product.signIn("member", { locale });
  await reader.goto(`${product.service.url}/quiet?min=${locale === "ar-EG" ? "123456.5" : "1234567.5"}&currency=EUR`);
  const least = reader.getByRole("textbox", { name: "Least value" });
  await until("it is written so", async () => (await least.inputValue()) === written);
  const before = search(reader);
  await least.focus();
  await reader.keyboard.press("Enter");
  await reader.keyboard.press("Tab");
  expect([await reader.getByText(/^An amount like/).count(), search(reader)]).toEqual([0, before]);
  await reader.context().close();
});

test("amounts that are written from right to left stand in the order in which they are said", async () => {
  const reader = await product.signIn("member", { locale: "ar-EG" });
  await reader.goto(`${product.service.url}/quiet`);
  await reader.getByRole("heading", { level: 2, name: "deals, worth" }).waitFor();
  const lefts = await reader.evaluate<number[]>(`(() => {
    const text = document.querySelector("main h2").firstChild;
    return [...text.data.matchAll(/[٠-٩٬٫]+/g)].map(({ index, 0: { length } }) => {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + length);
      return range.getBoundingClientRect().left;
    });
  })()`);
  expect(lefts.length).toBeGreaterThan(2);
  expect(lefts).toEqual([...lefts].sort((a, b) => a - b));
  await reader.context().close();
});

test("a pipeline, and of it a stage, narrow the board and stand in the address", async () => {
  const { deals, pipelines, stages } = product.simulator.company;
  const deal = [...deals.values()].find(({ title }) => title === GHOSTED);
  const choose = (name: string, label?: string) =>
    page.getByRole("combobox", { name }).selectOption({ label: label ?? "" });
  const all = await rows().count();
  expect(await page.getByRole("combobox", { name: "Stage" }).count()).toBe(0);
  await choose("Pipeline", pipelines.get(deal?.pipeline_id ?? 0)?.name);
  await choose("Stage", stages.get(deal?.stage_id ?? 0)?.name);
  await until("the address says both", async () => /^\?pipeline=[^&]+&stage=[^&]+$/.test(search()));
  await until("the board is that stage's", async () => (await rows().count()) < all);
  await rowOf(GHOSTED).waitFor();
  await choose("Pipeline", "All pipelines");
  await until("all are shown again", async () => (await rows().count()) === all);
  expect([search(), await page.getByRole("combobox", { name: "Stage" }).count()]).toEqual(["", 0]);
});

test("a snooze says why, takes the deal off the board by keyboard alone, and can be taken back", async () => {
  await rowOf(GHOSTED).getByRole("button", { name: "Snooze" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: GHOSTED });
  await tabTo(page, "textbox", "Why it is quiet");
  await page.keyboard.type("ميزانيتهم تُحسم في يناير");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await rowOf(GHOSTED).waitFor({ state: "detached" });
  await page.locator("[aria-live=polite]").filter({ hasText: /deals/ }).waitFor();
  await focusIsKept(page);
  await page.getByRole("checkbox", { name: "Snoozed ones" }).check();
  await rowOf(GHOSTED).getByText("ميزانيتهم تُحسم في يناير").waitFor();
  await rowOf(GHOSTED).getByRole("button", { name: "Wake" }).click();
  await dialog.getByText("Snoozed until").waitFor();
  expect(await findings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Wake it" }).click();
  await page.getByRole("heading", { name: "No deal fits" }).waitFor();
  await page.getByRole("checkbox", { name: "Snoozed ones" }).uncheck();
  await rowOf(GHOSTED).waitFor();
});

test.each([320, 380])(
  "at %i pixels nothing hangs over the edge, dark, without motion and with names from right to left",
  async (width) => {
    const { database } = product;
    await database.query("UPDATE deal SET title = 'مصنع الشمال – تجديد العقد' WHERE title = $1", [
      "Baltic Mills – renewal",
    ]);
    const options = { viewport: { width, height: 760 }, colorScheme: "dark", reducedMotion: "reduce" } as const;
    const phone = await product.signIn("member", options);
    await phone.goto(`${product.service.url}/quiet?verdict=GHOSTED,QUIET,COOLING`);
    await rowOf(GHOSTED, phone).waitFor();
    expect(await overhang(phone)).toBe(0);
    expect(await findings(phone)).toEqual([]);
  },
);

test("12,000 quiet deals: as many as were shown stay shown through a sync, and all of them are counted or not guessed at", async () => {
  const { database, service } = product;
  await multiplyDeal(database, GHOSTED, 12_000);
  await page.goto(`${service.url}/quiet`);
  await page.getByRole("heading", { level: 2, name: "More than 10,000 deals" }).waitFor();
  expect(await rows().count()).toBe(50);
  await page.getByRole("button", { name: "Show more" }).click();
  await until("more is shown", async () => (await rows().count()) === 100);
  await page.getByRole("button", { name: "Show more" }).click();
  await until("more is shown", async () => (await rows().count()) === 150);
  let asked = 0;
  page.on("request", (request) => {
    if (request.postData()?.includes("QuietDeals")) asked += 1;
  });
  await service.ask("mutation { requestSync { __typename } }");
  await until("the board has read anew", async () => asked >= 2);
  await syncEnds(service);
  expect(await rows().count()).toBe(150);
  expect(await findings(page)).toEqual([]);
});

test("without a connection the board shows nothing of before, and the way to connect", async () => {
  await disconnected(product);
  await page.getByRole("heading", { name: "No CRM is connected" }).waitFor();
  expect(await page.getByRole("table").count()).toBe(0);
  expect(await findings(page)).toEqual([]);
});
