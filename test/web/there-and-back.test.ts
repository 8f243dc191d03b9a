import type { Page } from "playwright-core";
import { until } from "../support/stories";
import { useStarted } from "../support/world";
import { startProduct } from "./support/product";
import { answerWith, connectThroughConsent, disconnected, isGuarded, recordPastMeetings, state } from "./support/steps";

/** What holds of what somebody has typed or been told, when they go elsewhere and come back. */

let page: Page;
const product = useStarted(() => startProduct({ crm: { deals: 40 } }));
beforeAll(async () => {
  page = await product.signIn("admin");
});

const isSaved = () => page.locator(".notice").filter({ hasText: "The settings are saved." }).waitFor();
const search = () => new URL(page.url()).search;

/** Such an operation waits on its way to the service. @returns lets it go */
async function holding(on: Page, operation: string): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await on.route("**/graphql", async (route) => {
    if (route.request().postData()?.includes(operation)) await held;
    await route.continue();
  });
  return release;
}

// Seen red: the settings, and not a word of what had become of the connection.
test("who does not wait for what became of the connection reads it when they come back", async () => {
  const other = await product.signIn("admin");
  const answer = await holding(other, "mutation Connect");
  await other.getByRole("button", { name: "Connect Pipedrive" }).click();
  await other.getByRole("button", { name: "Cancel" }).click();
  await other.getByText("The authorization is being checked.").waitFor();
  await other.getByRole("link", { name: "Meetings" }).click();
  await other.getByRole("heading", { level: 1, name: "Meetings" }).waitFor();
  const answered = other.waitForResponse((one) => one.request().postData()?.includes("mutation Connect") ?? false);
  answer();
  await (await answered).finished();
  await other.evaluate("new Promise((done) => setTimeout(done))");
  await other.getByRole("link", { name: "CRM connection", exact: true }).click();
  await other.getByRole("heading", { name: "The CRM was not connected" }).waitFor();
  await other.context().close();
});

// Seen red: the address changed, and the page went on saying that the CRM was not connected.
test("who has read why the CRM was not connected may go anywhere, and comes back to the settings", async () => {
  const late = await product.signIn("admin");
  await late.getByRole("button", { name: "Connect Pipedrive" }).click();
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("heading", { name: "The CRM was not connected" }).waitFor();
  await page.getByRole("link", { name: "Meetings" }).click();
  await page.getByRole("heading", { level: 1, name: "Meetings" }).waitFor();
  await page.getByRole("link", { name: "CRM connection", exact: true }).click();
  await connectThroughConsent(page);
  // Seen red: "The CRM was not connected", over "A CRM is connected already".
  await late.getByRole("button", { name: "Allow and Install" }).click();
  await late.getByRole("heading", { name: "Nothing was changed" }).waitFor();
  await late.getByRole("button", { name: "Back to the CRM connection" }).click();
  await state(late, "Connected").waitFor();
  await late.context().close();
});

test("settings that were not saved are there when one comes back to them, and leaving the page warns", async () => {
  await recordPastMeetings(product);
  await page.getByRole("link", { name: "Quiet deals" }).click();
  await page.getByRole("link", { name: "When is a deal quiet?" }).click();
  await page.getByRole("button", { name: "Add days" }).click();
  await page.getByRole("textbox", { name: "Days" }).fill("33");
  await page.getByRole("link", { name: "Quiet deals", exact: true }).first().click();
  await page.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
  // Seen red: it warned only while the form was there.
  expect(await isGuarded(page)).toBe(true);
  await page.goBack();
  expect(await page.getByRole("textbox", { name: "Days" }).inputValue()).toBe("33");
  expect(await isGuarded(page)).toBe(true);
});

// Seen red: the numbers of the settings before stood there, with Save beside them.
test("a preview of other settings is not shown as one of these", async () => {
  await page.getByText(/would become quiet/).waitFor();
  const answer = await holding(page, "query SilencePreview");
  await page.getByRole("textbox", { name: "Days" }).fill("3000");
  await page.getByText("Looking …").waitFor();
  expect(await page.getByText(/would become quiet/).count()).toBe(0);
  answer();
  await page.getByText(/^0 deals would become quiet/).waitFor();
  await page.getByRole("region", { name: "Would stop being quiet" }).getByRole("listitem").first().waitFor();
  expect(await page.getByRole("region", { name: "Would become quiet" }).count()).toBe(0);
  await page.unrouteAll({ behavior: "wait" });
});

// Seen red: it stood among those that would stop being quiet.
test("a deal whose snooze other settings would end is said to become quiet", async () => {
  const snooze = { __typename: "Snooze", until: new Date(Date.now() + 86_400_000).toISOString() };
  interface Answer {
    data: { previewQuietSettings: { deals: object[] } };
  }
  await answerWith(page, "query SilencePreview", ({ data: { previewQuietSettings: found } }: Answer) => {
    const deals = found.deals.slice(0, 1).map((deal) => ({ ...deal, snooze }));
    return { data: { previewQuietSettings: { ...found, becomeQuiet: 1, stopBeingQuiet: 0, deals } } };
  });
  await page.getByRole("textbox", { name: "Days" }).fill("3001");
  await page.getByText(/^1 deal would become quiet/).waitFor();
  expect(await page.getByRole("region", { name: /^Would/ }).all()).toHaveLength(1);
  await page.getByRole("region", { name: "Would become quiet" }).waitFor();
  await page.unrouteAll({ behavior: "wait" });
});

// Seen red: "Site visit" was saved as the keys Site and visit, which no activity has.
test("a name is no key of an activity type, and says so before it is saved", async () => {
  const types = page.getByRole("textbox", { name: "Keys of activity types in the CRM" });
  await types.fill("demo, Site visit");
  await page.getByText("“Site visit” is a name").waitFor();
  expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  await types.fill("demo, site_visit");
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved();
  expect(await product.database.query("SELECT two_way_types FROM quiet_settings")).toEqual([
    { two_way_types: ["demo", "site_visit"] },
  ]);
});

// Seen red: "Other settings have been saved meanwhile", which were their own, and what they typed could not be saved.
test("who goes elsewhere while their settings are saved may change them again", async () => {
  const days = page.getByRole("textbox", { name: "Days" });
  await days.fill("34");
  const answer = await holding(page, "mutation SetSilence");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("link", { name: "Quiet deals", exact: true }).first().click();
  await page.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
  answer();
  await until("they are saved", async () => {
    const [stored] = await product.database.query<{ days: string }>(
      "SELECT thresholds #>> '{0,days}' AS days FROM quiet_settings",
    );
    return stored?.days === "34";
  });
  await until("it is known", async () => (await isGuarded(page)) === false);
  await page.goBack();
  await page.getByText("Nothing is changed.").waitFor();
  expect(await days.inputValue()).toBe("34");
  await days.fill("35");
  await page.getByText(/would become quiet/).waitFor();
  expect(await page.getByText("Other settings have been saved meanwhile").count()).toBe(0);
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved();
  await page.unrouteAll({ behavior: "wait" });
});

// Seen red: the form showed what had been saved, and what was typed since was gone.
test.each([
  ["stays in the form", async () => undefined],
  [
    "is there for who goes elsewhere until then",
    async () => {
      await page.getByRole("link", { name: "Quiet deals", exact: true }).first().click();
      await page.getByRole("heading", { level: 1, name: "Quiet deals" }).waitFor();
    },
  ],
])("what is typed while settings are saved %s, and can be saved after them", async (_, go) => {
  const days = page.getByRole("textbox", { name: "Days" });
  await days.fill("44");
  await page.getByText(/would become quiet/).waitFor();
  const answer = await holding(page, "mutation SetSilence");
  const answered = page.waitForResponse((one) => one.request().postData()?.includes("mutation SetSilence") ?? false);
  await page.getByRole("button", { name: "Save" }).click();
  await days.fill("35");
  await go();
  answer();
  await (await answered).finished();
  await page.evaluate("new Promise((done) => setTimeout(done, 100))");
  expect(await isGuarded(page)).toBe(true);
  if ((await days.count()) === 0) await page.goBack();
  await page.getByText(/would become quiet/).waitFor();
  expect([await days.inputValue(), await page.getByText("Other settings have been saved").count()]).toEqual(["35", 0]);
  await page.getByRole("button", { name: "Save" }).click();
  await isSaved();
  expect(await isGuarded(page)).toBe(false);
  await page.unrouteAll({ behavior: "wait" });
});

// Seen red: what was typed was taken for what somebody had gone back from.
test("the link to the content moves the focus alone: what is typed stays, and the address", async () => {
  await page.goto(`${product.service.url}/quiet?verdict=GHOSTED,QUIET,COOLING,UNKNOWN`);
  const least = page.getByRole("textbox", { name: "Least value" });
  await least.fill("some");
  await page.getByRole("link", { name: "Skip to the content" }).press("Enter");
  await page.getByRole("main").and(page.locator(":focus")).waitFor();
  await page.getByText("An amount like").waitFor();
  expect([await least.inputValue(), new URL(page.url()).hash]).toEqual(["some", ""]);
});

// Seen red: the choice went back to the first one at once, and the board was asked for in that.
test("the currency of a least value may be chosen before the value", async () => {
  await page.goto(`${product.service.url}/quiet?verdict=GHOSTED,QUIET,COOLING,UNKNOWN&order=VALUE_DESC`);
  const currency = page.getByRole("combobox", { name: "Currency of the least value" });
  await currency.waitFor();
  const last = await currency.locator("option").last().innerText();
  await currency.selectOption(last);
  expect(await currency.inputValue()).toBe(last);
  await page.getByRole("textbox", { name: "Least value" }).fill("1");
  await page.getByRole("textbox", { name: "Least value" }).press("Enter");
  expect(new URLSearchParams(search()).get("currency")).toBe(last);
});

// Seen red: the field said a word that the list was not searched for.
test("the search says what is searched for, also after going back with the cursor in it", async () => {
  await page.goto(`${product.service.url}/meetings?show=none`);
  await page.getByRole("link", { name: /^All / }).click();
  const field = page.getByRole("searchbox", { name: "Search" });
  await field.fill("Aurora");
  await page.waitForURL(/q=Aurora/);
  await page.evaluate("history.back()");
  await page.waitForURL(/show=none/);
  await until("it says so", async () => (await field.inputValue()) === "");
});

// Seen red: a field that had gone out of sight was taken.
test("only a field that is in sight is nominated", async () => {
  await page.goto(`${product.service.url}/settings`);
  await page.getByRole("button", { name: "Choose a field for Deals" }).click();
  await page.getByRole("radio", { name: "Meeting summary Long text" }).check();
  await page.getByRole("textbox", { name: "Search the custom fields" }).fill("segm");
  await page.getByText("1 field", { exact: true }).waitFor();
  const use = page.getByRole("button", { name: "Use this field" });
  expect(await use.isDisabled()).toBe(true);
  await page.getByRole("radio", { name: "Segment One of several options" }).check();
  expect(await use.isDisabled()).toBe(false);
  await page.getByRole("button", { name: "Cancel" }).click();
});

// Seen red: it stood there as what holds, with no button to be rid of it.
test("what was typed is not shown as what holds where it cannot be saved any more", async () => {
  await page.goto(`${product.service.url}/quiet/settings`);
  const days = page.getByRole("textbox", { name: "Days" });
  await days.fill("36");
  await disconnected(product);
  await page.getByText("No CRM is connected, so no deal is judged").waitFor();
  expect(await days.inputValue()).toBe("35");
});
