import type { Page } from "playwright-core";
import { noJobIsDue, syncAgain, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { startProduct } from "./support/product";
import {
  answerWith,
  connectThroughConsent,
  disconnected,
  failed,
  focusIsKept,
  overhang,
  recordPastMeetings,
  tabTo,
} from "./support/steps";

let page: Page;
const product = useStarted(() => startProduct({ crm: { deals: 40 } }));
beforeAll(async () => {
  const { database } = product;
  page = await product.signIn("admin");
  product.simulator.control.add("activity", { type: "site_visit", done: true });
  await connectThroughConsent(page);
  await recordPastMeetings(product);
  await noJobIsDue(database);
});

const saved = (on: Page) => on.locator(".notice").filter({ hasText: "The settings are saved." });
const isSaved = (on: Page) => saved(on).waitFor();
const stored = () =>
  product.database.query("SELECT business_days, two_way_types, thresholds, time_zone FROM quiet_settings");

test("an admin sees what a change would do before it is made, and saving makes it", async () => {
  await page.getByRole("link", { name: "Quiet deals" }).click();
  await page.getByRole("link", { name: "When is a deal quiet?" }).click();
  await page.getByText(/^Nothing is set/).waitFor();
  await page.getByText("Nothing is changed.").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Add days" }).click();
  await page.getByRole("textbox", { name: "Days" }).fill("3000");
  await page.getByText(/^0 deals would become quiet, \d+ deals? would stop being quiet\.$/).waitFor();
  expect(await stored()).toEqual([]);
  await page.getByRole("textbox", { name: "Days" }).fill("none");
  await page.getByText("Days from 1 to 3650.").waitFor();
  expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  expect(await findings(page)).toEqual([]);
  await page.getByRole("textbox", { name: "Days" }).fill("5");
  await page.getByRole("combobox", { name: "Of" }).selectOption({ label: "Negotiation" });
  await page.getByRole("checkbox", { name: "Saturdays and Sundays do not count" }).check();
  await page.getByRole("textbox", { name: "Keys of activity types in the CRM" }).fill("demo");
  await page.getByText("None of the CRM's newest activities has the key “demo”.").waitFor();
  await page.getByRole("checkbox", { name: "site_visit 1 lately" }).check();
  await page.getByText(/would become quiet/).waitFor();
  await screenshot(page, "quiet-settings");
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved(page);
  await focusIsKept(page);
  // Nobody has chosen a zone: who authorizes next brings another one.
  const saved = { business_days: true, two_way_types: ["demo", "site_visit"], time_zone: null };
  expect(await stored()).toMatchObject([saved]);
  const zone = page.getByRole("combobox", { name: "Days begin at midnight in" });
  expect(await zone.locator("option:checked").innerText()).toMatch(/^The zone of the user who authorized \(.+\)$/);
  await page.reload();
  expect(await page.getByRole("textbox", { name: "Days" }).inputValue()).toBe("5");
});

test("what was saved stays shown while the settings cannot be read again", async () => {
  const other = await product.signIn("admin");
  await other.goto(`${product.service.url}/quiet/settings`);
  const days = other.getByRole("textbox", { name: "Days" });
  await days.fill("6");
  await other.getByText(/would become quiet/).waitFor();
  await other.route("**/graphql", (route) =>
    route.request().postData()?.includes("query Silence {") ? route.abort() : route.continue(),
  );
  await other.getByRole("button", { name: "Save" }).click();
  await other.getByText("The service cannot be reached").waitFor();
  expect([await days.inputValue(), await saved(other).count()]).toEqual(["6", 1]);
  await other.context().close();
});

// Seen red: the form was gone, and what was typed with it.
test("what is typed stays where the settings are answered with nothing but an error", async () => {
  const other = await product.signIn("admin");
  await other.goto(`${product.service.url}/quiet/settings`);
  const days = other.getByRole("textbox", { name: "Days" });
  await days.fill("77");
  await other.getByText(/would become quiet/).waitFor();
  await answerWith(other, "query Silence {", () => failed("Not now."));
  await syncAgain(product.service, product.database);
  await other.getByText("Not now.").waitFor();
  expect(await days.inputValue()).toBe("77");
  await other.unrouteAll({ behavior: "ignoreErrors" });
  await other.context().close();
});

test("a keyboard is enough: each change takes the focus where the next one is made, and saving says so", async () => {
  await page.getByRole("link", { name: "Quiet deals", exact: true }).first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
  await tabTo(page, "link", "When is a deal quiet?");
  await page.keyboard.press("Enter");
  // The settings that the page has read before may be shown for a moment.
  await page.getByRole("button", { name: "Remove: No contact for 6 days" }).waitFor();
  await tabTo(page, "button", "Add days");
  await page.keyboard.press("Enter");
  const added = page.getByRole("combobox", { name: "When" }).last();
  await added.and(page.locator(":focus")).waitFor();
  await page.keyboard.type("In its stage");
  await page.keyboard.press("Tab");
  await page.keyboard.type("3000");
  await page.getByText(/^\d+ deals? would become quiet, \d+ deals? would stop being quiet\.$/).waitFor();
  await tabTo(page, "button", "Remove: No contact for 6 days");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Add days" }).and(page.locator(":focus")).waitFor();
  await tabTo(page, "button", "Save");
  await page.keyboard.press("Enter");
  await isSaved(page);
  // Once: seen red with a notice beside it that reads itself out.
  const readOut = page.locator("[aria-live=polite], [role=status]").filter({ hasText: "The settings are saved" });
  expect(await readOut.count()).toBe(1);
  await page.getByRole("region", { name: "What the change would do" }).and(page.locator(":focus")).waitFor();
  expect(await stored()).toMatchObject([{ thresholds: [{ code: "STALLED_IN_STAGE", days: 3_000 }] }]);
});

// Seen red: it was shown as "No contact for", and saving changed that.
test("times are shown as times, and a code of a later service as itself, which saving leaves as it is", async () => {
  const { service } = product;
  await service.ask(`mutation { setQuietSettings(input: { businessDays: true, twoWayActivityTypes: [], thresholds: [
    { code: CLOSE_DATE_PUSHED, days: 3 }, { code: GHOSTED, days: 9 }] }) { __typename } }`);
  const other = await product.signIn("admin");
  await other.goto(`${service.url}/quiet/settings`);
  const when = other.getByRole("combobox", { name: "When" }).first();
  const times = other.getByRole("textbox", { name: "Times" });
  await times.waitFor();
  expect(await when.locator("option:checked").innerText()).toBe("The close date was moved later");
  await times.fill("101");
  await other.getByText("Times from 1 to 100.").waitFor();
  await times.fill("4");
  await other.getByRole("button", { name: "Save" }).click();
  await isSaved(other);
  const pushed = { code: "CLOSE_DATE_PUSHED", days: 4 };
  expect(await stored()).toMatchObject([{ thresholds: [pushed, { code: "GHOSTED", days: 9 }] }]);

  const sent: string[] = [];
  await other.route("**/graphql", async (route) => {
    sent.push(route.request().postData() ?? "");
    if (!sent.at(-1)?.includes("query Silence {")) return route.continue();
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replaceAll("GHOSTED", "OF_TOMORROW") });
  });
  await other.reload();
  await times.fill("5");
  const last = other.getByRole("combobox", { name: "When" }).last();
  expect(await last.locator("option:checked").innerText()).toBe("OF_TOMORROW");
  await until("it is sent as it came", async () => sent.some((body) => body.includes('"code":"OF_TOMORROW","days":9')));
  await other.unrouteAll({ behavior: "wait" });
  await other.context().close();
});

// Seen red: the later save undid the other's, and the draft of a page that was shown from the cache brought back old settings.
test("what another admin saves meanwhile is not undone, and what was typed stays until one goes on from it", async () => {
  const { service } = product;
  const setMeanwhile = (days: number) =>
    service.ask(`mutation { setQuietSettings(input: { businessDays: false, twoWayActivityTypes: [], thresholds: [
      { code: GHOSTED, days: ${days} }] }) { __typename } }`);
  await setMeanwhile(7);
  const other = await product.signIn("admin");
  await other.goto(`${service.url}/quiet/settings`);
  const days = other.getByRole("textbox", { name: "Days" });
  const overtaken = other.getByRole("alert").filter({ hasText: "Other settings have been saved meanwhile" });
  const goOn = other.getByRole("button", { name: "Go on from the present settings" });
  const removal = (count: number) =>
    other.getByRole("button", { name: `Remove: The buyer has not answered for ${count} days` });
  await removal(7).waitFor();
  /** The page hears of no settings until the end of this. */
  const unheard = async (during: () => Promise<void>) => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    await other.route("**/graphql", async (route) => {
      if (route.request().postData()?.includes("query Silence {")) await ended;
      await route.continue();
    });
    await during();
    end();
    await other.unrouteAll({ behavior: "wait" });
  };
  await unheard(async () => {
    await setMeanwhile(8);
    await days.fill("70");
    await other.getByText(/would become quiet/).waitFor();
    await tabTo(other, "button", "Save");
    await other.keyboard.press("Enter");
    await overtaken.waitFor();
  });
  await other.getByRole("region", { name: "What the change would do" }).and(other.locator(":focus")).waitFor();
  expect(await days.inputValue()).toBe("70");
  expect(await other.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  expect(await stored()).toMatchObject([{ thresholds: [{ code: "GHOSTED", days: 8 }] }]);
  expect(await findings(other)).toEqual([]);
  await tabTo(other, "button", "Go on from the present settings");
  await other.keyboard.press("Enter");
  await other.locator("[aria-live=polite]").filter({ hasText: "The present settings are shown" }).waitFor();
  await removal(8).waitFor();
  await focusIsKept(other);
  await other.getByText("Nothing is changed.").waitFor();
  expect(await overtaken.count()).toBe(0);

  // A draft that is begun from what the page has read before.
  await other.getByRole("link", { name: "Quiet deals", exact: true }).first().click();
  await other.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
  await setMeanwhile(9);
  await unheard(async () => {
    await other.getByRole("link", { name: "When is a deal quiet?" }).click();
    await removal(8).waitFor();
    await other.getByRole("checkbox", { name: "Saturdays and Sundays do not count" }).check();
  });
  await overtaken.waitFor();
  expect(await days.inputValue()).toBe("8");
  await goOn.click();
  await removal(9).waitFor();
  await days.fill("90");
  await other.getByRole("button", { name: "Save" }).click();
  await isSaved(other);
  expect(await stored()).toMatchObject([{ business_days: false, thresholds: [{ code: "GHOSTED", days: 90 }] }]);
  await other.context().close();
});

test("a member sees what holds, and why it is not theirs to change; on a small screen, too", async () => {
  const member = await product.signIn("member", { viewport: { width: 320, height: 760 }, colorScheme: "dark" });
  await member.goto(`${product.service.url}/quiet/settings`);
  await member.getByText("Only an owner or admin of your organization may change this").waitFor();
  expect(await member.getByRole("textbox", { name: "Days" }).isDisabled()).toBe(true);
  expect(await member.getByRole("button", { name: "Save" }).count()).toBe(0);
  expect(await overhang(member)).toBe(0);
  expect(await findings(member)).toEqual([]);
});

test("without a CRM nothing seems to be without days, and nothing can be saved that would forget them", async () => {
  await disconnected(product);
  await page.getByText("No CRM is connected, so no deal is judged").waitFor();
  expect(await page.getByText(/^Nothing is set/).count()).toBe(0);
  expect(await page.getByRole("button", { name: "Add days" }).isDisabled()).toBe(true);
  expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0);
  expect(await findings(page)).toEqual([]);
});
