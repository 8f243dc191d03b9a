import type { Page, Route } from "playwright-core";
import { fieldOf, fieldsIn, heldIn, patches, setMapping, showFields } from "../support/fields";
import { syncAgain, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startConnected } from "./support/product";
import { fieldForm, focusIsKept, openNewMeeting } from "./support/steps";

let page: Page;

const product = useStarted(startConnected);
beforeEach(async () => {
  product.simulator.control.clearFaults();
  page = await product.signIn("admin");
});

const form = () => fieldForm(page).form;
const write = () => fieldForm(page).write;
const results = () => form().getByRole("status").getByRole("listitem");
const story = () => product.simulator.company.stories.singleDeal;
const held = (entity: "DEAL" | "PERSON", type: string) =>
  heldIn(
    product.simulator,
    entity,
    entity === "DEAL" ? story().dealId : story().personId,
    fieldOf(product.simulator, entity, type).field_code,
  );

async function openWith(deal: string, person: string): Promise<void> {
  const { service, simulator } = product;
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", deal).field_code);
  await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", person).field_code);
  await openNewMeeting(product, page, [story().email]);
}

const failed = (route: Route) => route.fulfill({ status: 200, json: { errors: [{ message: "Not now." }] } });

/** Whatever one operation asks for is answered with an error, until that is over. @returns what ends it */
async function failing(operation: string): Promise<() => Promise<void>> {
  await page.route("**/graphql", (route) =>
    route.request().postData()?.includes(operation) ? failed(route) : route.continue(),
  );
  return () => page.unrouteAll({ behavior: "ignoreErrors" });
}

describe("Of a field with options", () => {
  const choice = () => form().getByLabel(/\(One of several options\)/);
  const chosen = () => choice().locator("option:checked").textContent();

  // Seen red: nothing told of it.
  test("nothing is sent while its options cannot be read, and trying again shows what was chosen", async () => {
    await openWith("enum", "varchar");
    await choice().selectOption({ label: "Enterprise" });
    const heal = await failing("query NominatedField");
    await page.reload();
    await form().getByRole("alert").filter({ hasText: "Not now." }).waitFor();
    expect(await chosen()).toBe("What can be chosen is not known yet");
    expect([await choice().isEnabled(), await write().isEnabled()]).toEqual([false, false]);
    expect(await findings(page)).toEqual([]);
    await form()
      .getByLabel(/\(Text\)/)
      .fill("Decides");
    await write().click();
    await results().filter({ hasText: "Marta" }).getByText("Written", { exact: true }).waitFor();
    expect([held("DEAL", "enum"), held("PERSON", "varchar")]).toEqual([null, "Decides"]);
    await heal();
    await form().getByRole("button", { name: "Try again" }).click();
    await choice().and(page.locator(":enabled")).waitFor();
    expect(await chosen()).toBe("Enterprise");
    await write().click();
    await results().filter({ hasText: "Halden" }).getByText("Written", { exact: true }).waitFor();
    expect(held("DEAL", "enum")).not.toBeNull();
  });

  // Seen red: "Nothing chosen" was shown.
  test("what was chosen and is gone from the CRM's list is shown as that, and can be unchosen", async () => {
    const { service, simulator } = product;
    await openWith("enum", "set");
    await choice().selectOption({ label: "Consumer" });
    await form().getByLabel("Analytics").check();
    await form().getByLabel("Compliance").check();
    for (const entity of ["DEAL", "PERSON"] as const) {
      const left = fieldsIn(simulator, entity).map((field) => ({ ...field, options: field.options?.slice(1) ?? null }));
      showFields(simulator, entity, left);
      // Else the list that was read within this minute is shown.
      await setMapping(service, entity, fieldOf(simulator, entity, entity === "DEAL" ? "enum" : "set").field_code);
    }
    await page.reload();
    await form().getByLabel("Compliance").waitFor();
    expect(await chosen()).toMatch(/^Not in the CRM's list: \d+$/);
    const gone = form().getByRole("checkbox", { name: "Not in the CRM's list" });
    expect([await gone.isChecked(), await form().getByLabel("Compliance").isChecked()]).toEqual([true, true]);
    expect(await findings(page)).toEqual([]);
    await gone.click();
    await gone.waitFor({ state: "detached" });
    await focusIsKept(page);
    await choice().selectOption("Nothing chosen");
    await write().click();
    await results().filter({ hasText: "Marta" }).getByText("Written", { exact: true }).waitFor();
    expect(patches(simulator)).toHaveLength(1);
    expect(held("PERSON", "set")).toHaveLength(1);
  });

  // Seen red: "Nothing chosen" was shown, and the button would have sent the other field's option.
  test("what was chosen for it is not that of another field that is nominated by now", async () => {
    const { service, simulator } = product;
    await openWith("enum", "varchar");
    await choice().selectOption({ label: "Enterprise" });
    const other = simulator.control.addCustomField("deal", { name: "Mood", type: "enum", options: ["good", "bad"] });
    await setMapping(service, "DEAL", other);
    await page.reload();
    await form().getByLabel(/^Mood/).and(page.locator(":enabled")).waitFor();
    expect(await chosen()).toBe("Nothing chosen");
    expect(await write().isEnabled()).toBe(false);
  });

  // Seen red: "Nothing chosen" was all that could be, until the page was loaded anew.
  test("one that is made and nominated while the page is open has its options", async () => {
    const { service, simulator, database } = product;
    await openWith("enum", "varchar");
    await choice().selectOption({ label: "Enterprise" });
    const made = simulator.control.addCustomField("deal", { name: "Warmth", type: "enum", options: ["warm", "cold"] });
    await setMapping(service, "DEAL", made);
    await syncAgain(service, database);
    await form()
      .getByLabel(/^Warmth/)
      .selectOption({ label: "cold" });
    await write().click();
    await results().filter({ hasText: "Halden" }).getByText("Written", { exact: true }).waitFor();
  });
});

describe("Where the answer to a write is an error", () => {
  const text = () => form().getByLabel(/\(Long text\)/);
  const button = (name: string | RegExp) => form().getByRole("button", { name });
  const isWritten = () => results().filter({ hasText: "Halden" }).getByText("Written", { exact: true }).waitFor();

  /** What is sent first is answered with an error. @returns what lets it reach the service */
  async function sendAndHoldBack(words: string): Promise<() => Promise<unknown>> {
    let arrive: (() => Promise<unknown>) | undefined;
    await openWith("text", "varchar");
    await page.route("**/graphql", async (route) => {
      if (arrive || !route.request().postData()?.includes("mutation WriteFields")) return route.continue();
      arrive = () => route.fetch();
      await failed(route);
    });
    await text().fill(words);
    await write().click();
    await form().getByRole("alert").filter({ hasText: "Not now." }).waitFor();
    return async () => arrive?.();
  }

  // Seen red: the field could be edited, what it had held before was written, and what it held by then was gone.
  test("what is sent again is what is shown", async () => {
    await sendAndHoldBack("As it was sent.");
    if (await text().isEnabled()) await text().fill("As it is by now.");
    const shown = await text().inputValue();
    expect(await findings(page)).toEqual([]);
    await button(/again$/).click();
    await isWritten();
    expect([held("DEAL", "text"), await text().inputValue()]).toEqual([shown, ""]);
    expect(patches(product.simulator)).toHaveLength(1);
  });

  // Seen red: with a key of its own, what came late was written over it; and with the first one's, it was refused.
  test.each([
    ["has not arrived, it is written alone, also where the first one comes late", false, 1],
    ["has arrived all the same, it is written after that one", true, 2],
  ])("an edit comes in place of what was sent: where that %s", async (_, arrives, writes) => {
    const arrive = await sendAndHoldBack("As it was sent.");
    if (arrives) await arrive();
    await button("Edit").click();
    await text().fill("As it is by now.");
    await write().click();
    await isWritten();
    if (!arrives) await arrive();
    expect([held("DEAL", "text"), await text().inputValue()]).toEqual(["As it is by now.", ""]);
    expect(patches(product.simulator)).toHaveLength(writes);
  });

  /** An admin nominates another field for deals, and the page has read it. @returns what that one holds */
  async function nominateAnother(name: string): Promise<() => unknown> {
    const { service, simulator, database } = product;
    const other = simulator.control.addCustomField("deal", { name, type: "text" });
    await setMapping(service, "DEAL", other);
    await syncAgain(service, database);
    await form().getByLabel(name).waitFor();
    return () => heldIn(simulator, "DEAL", story().dealId, other);
  }
  const isTold = () => form().getByText("Another field, or none, has been nominated since.").waitFor();

  // Seen red: "Send again" wrote it into the other field; and what had arrived was told of as if that field had been written.
  test.each([
    ["has not arrived", false],
    ["has arrived all the same", true],
  ])("what was for a field that is nominated no more, and %s, can only be edited", async (title, arrives) => {
    const arrive = await sendAndHoldBack(title);
    if (arrives) await arrive();
    const before = held("DEAL", "text");
    const inOther = await nominateAnother(`Plan, where it ${title}`);
    await isTold();
    expect(await button(/again$|^Writ/).count()).toBe(0);
    expect(await findings(page)).toEqual([]);
    await button("Edit").click();
    await text().fill(title);
    expect(inOther()).toBeNull();
    await write().click();
    await isWritten();
    expect([held("DEAL", "text"), inOther()]).toEqual([before, title]);
  });

  // Seen red: it arrived in the other field by itself.
  test("what has no answer is not asked again once another field is nominated", async () => {
    await openWith("text", "varchar");
    await page.route("**/graphql", (route) =>
      route.request().postData()?.includes("mutation WriteFields") ? route.abort() : route.continue(),
    );
    await text().fill("For the first one.");
    await write().click();
    await form().getByText("We do not know yet").waitFor();
    const inOther = await nominateAnother("Plan meanwhile");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await button("Edit").or(results()).first().waitFor();
    expect([inOther(), patches(product.simulator)]).toEqual([null, []]);
    await isTold();
  });
});

// Seen red: the report of the form that was gone emptied the one that followed it, also for a reload; and was unknown to it.
test.each([
  ["what is typed while an older form's answer is on its way stays", "Later, and longer"],
  ["what an older form has written leaves the one that followed it", ""],
])("%s, and what was sent is known by its receipt", async (_, later) => {
  await openWith("text", "varchar");
  const text = () => form().getByLabel(/\(Long text\)/);
  let deliver: () => void = () => undefined;
  const delivered = new Promise<void>((release) => {
    deliver = release;
  });
  await page.route("**/graphql", async (route) => {
    if (!route.request().postData()?.includes("mutation WriteFields")) return route.continue();
    const response = await route.fetch();
    await delivered;
    await route.fulfill({ response });
  });
  const reported = page.waitForResponse(
    (answer) => answer.request().postData()?.includes("mutation WriteFields") ?? false,
  );
  await text().fill("Sooner");
  await write().click();
  await form().getByRole("button", { name: "Writing …" }).waitFor();
  const back = page.url();
  await page.getByRole("link", { name: "Meetings" }).first().click();
  await page.getByRole("heading", { level: 1, name: "Meetings" }).waitFor();
  await page.goBack();
  expect(page.url()).toBe(back);
  if (later) await text().fill(later);
  deliver();
  await (await reported).finished();
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  await until("it is written", async () => held("DEAL", "text") === "Sooner");
  await until("the form has what is left", async () => (await text().inputValue()) === later);
  await page.reload();
  await text().and(page.locator(":enabled")).waitFor();
  expect(await text().inputValue()).toBe(later);
});

describe("What is half filled in is not written, and it is said what is missing", () => {
  /** @returns how much names that sentence as its description */
  const describedBy = async (sentence: string): Promise<number> => {
    const id = await form().getByText(sentence).getAttribute("id");
    return form().locator(`[aria-describedby~="${id}"]`).count();
  };

  // Seen red: "Written", and nothing of the other field.
  test("of two parts, beside a field that is whole", async () => {
    await openWith("daterange", "monetary");
    await form()
      .getByLabel(/\(From one date to another\)/)
      .fill("2026-03-01");
    const currency = form().getByLabel(/: currency$/);
    await currency.fill("eur");
    expect(await write().isEnabled()).toBe(false);
    // Both parts, and the button.
    expect([await describedBy("The second date is missing"), await describedBy("The amount is missing")]).toEqual([
      3, 3,
    ]);
    expect(await findings(page)).toEqual([]);
    await form()
      .getByLabel(/\(Amount of money\)/)
      .fill("1200");
    await form().getByText("The amount is missing").waitFor({ state: "detached" });
    await write().click();
    await results().getByText("Written", { exact: true }).waitFor();
    expect([await results().count(), patches(product.simulator).length, held("DEAL", "daterange")]).toEqual([
      1,
      1,
      null,
    ]);
    await form().getByText("The second date is missing: until then it is not written.").waitFor();
  });

  // Seen red: the button could not be pressed, and nothing said why.
  test("of a record", async () => {
    const { service, simulator } = product;
    const { singleDeal, severalDeals } = simulator.company.stories;
    await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", "varchar").field_code);
    await openNewMeeting(product, page, [singleDeal.email, severalDeals.email]);
    await form()
      .getByLabel(/\(Text\)/)
      .fill("Decides");
    expect([await describedBy("Choose the person:"), await write().isEnabled()]).toEqual([3, false]);
    expect(await findings(page)).toEqual([]);
    await form().getByLabel("Which person gets").selectOption({ label: "Marta Lindqvist" });
    await form().getByText("Choose the person:").waitFor({ state: "detached" });
    expect(await write().isEnabled()).toBe(true);
  });
});

test("a number is read as the browser's language writes it, and what is written is said before", async () => {
  await page.context().close();
  page = await product.signIn("member", { locale: "de-DE" });
  await openWith("monetary", "double");
  await form()
    .getByLabel(/\(Amount of money\)/)
    .fill("1.200");
  await form().getByText("Written as 1200", { exact: true }).waitFor();
  await form()
    .getByLabel(/: currency$/)
    .fill("eur");
  await form()
    .getByLabel(/\(Number\)/)
    .fill("-12,5");
  await form().getByText("Written as -12.5", { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
  await write().click();
  await results().last().getByText("Written", { exact: true }).waitFor();
  expect(held("DEAL", "monetary")).toMatchObject({ value: 1_200, currency: "EUR" });
  expect(held("PERSON", "double")).toBe(-12.5);
});
