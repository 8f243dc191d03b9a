import type { Locator, Page } from "playwright-core";
import { pastMeetings } from "../../../demo/meetings";
import { dataOf, recordMeeting } from "../../support/stories";
import type { Product } from "./product";

/** The state of the connection as the page's head says it. */
export const state = (page: Page, text: string): Locator =>
  page.getByRole("status").filter({ hasText: new RegExp(`${text}$`) });

/** Through the CRM's consent page and back, as a person clicks. */
export async function connectThroughConsent(page: Page, button = "Connect Pipedrive"): Promise<void> {
  await page.getByRole("button", { name: button }).click();
  await page.getByRole("button", { name: "Allow and Install" }).click();
  await page.getByText(/^Connected as /).waitFor();
}

const DISCONNECT = "mutation { disconnect { ... on DisconnectSuccess { connection { state } } } }";

/** Beside the browser, so that the next story begins where nothing is connected. */
export async function disconnected({ service }: Product): Promise<void> {
  dataOf(await service.ask(DISCONNECT));
}

/** Parts of the form that writes to the CRM. */
export function noteForm(page: Page) {
  const form = page.getByRole("region", { name: "Note to the CRM" });
  return {
    form,
    text: form.getByRole("textbox", { name: "Note" }),
    write: form.getByRole("button", { name: "Write to the CRM" }),
  };
}

export function fieldForm(page: Page) {
  const form = page.getByRole("form", { name: "Nominated fields" });
  return { form, write: form.getByRole("button", { name: "Write the fields" }) };
}

let recorded = 0;

/** Records a meeting of a story's own, so that no receipt of another one shows, and opens it. @returns its title */
export async function openNewMeeting(product: Product, page: Page, emails: string[], meeting = {}): Promise<string> {
  recorded += 1;
  const title = `Story ${recorded}`;
  // Each before those of the stories before it: a page of the list has twenty.
  const startsAt = new Date(Date.now() + (120 - recorded) * 60_000).toISOString();
  await recordMeeting(product.service, emails, { title, startsAt, ...meeting });
  await openMeeting(page, title);
  product.simulator.log.clear();
  return title;
}

export async function openMeeting(page: Page, title: string): Promise<void> {
  await page.getByRole("link", { name: "Meetings" }).first().click();
  await page.getByRole("link", { name: title, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: title }).waitFor();
}

/** Presses Tab until the focus is on what is named. @throws after more stops than a page has */
export async function tabTo(page: Page, role: "link" | "button" | "textbox", name: string): Promise<void> {
  const reached = page.getByRole(role, { name, exact: true }).and(page.locator(":focus"));
  for (let stop = 0; stop < 60; stop += 1) {
    await page.keyboard.press("Tab");
    if ((await reached.count()) > 0) return;
  }
  throw new Error(`the keyboard did not reach the ${role} "${name}"`);
}

/**
 * The page takes the focus back a frame or two after what had it went. `waitForFunction` cannot wait for it: from its
 * second look on it compiles a text in the page, which the page's policy of content forbids.
 */
export const focusIsKept = (page: Page): Promise<void> => page.locator("body :focus").waitFor();

/** Meetings of the last months with the people of open deals: then there are deals to judge. */
export async function recordPastMeetings({ service, simulator }: Product): Promise<void> {
  for (const { attendees, ...input } of pastMeetings(simulator.company, Date.now())) {
    await recordMeeting(
      service,
      attendees.map(({ email }) => email),
      input,
    );
  }
}

/** Whether the browser would ask before the page goes. */
export const isGuarded = (page: Page): Promise<boolean> =>
  page.evaluate("!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))");

/** By how many pixels the page is wider than its window. */
export async function overhang(page: Page): Promise<number> {
  const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  return Number(await page.evaluate(beyond));
}

/** An answer as of a service that could read nothing, or not all. */
export const failed = (message: string, data: object | null = null) => ({ data, errors: [{ message }] });

/** What the service answers to such a query comes to the page as something else. */
export const answerWith = (page: Page, query: string, change: (answer: { data: never }) => object) =>
  page.route("**/graphql", async (route) => {
    if (!route.request().postData()?.includes(query)) return route.fallback();
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json()) });
  });

/** Notes what a screen reader is told to read out: of texts that change, and of what is new where `childList` says so. */
export const listen = (page: Page, { childList }: { childList: boolean }) =>
  page.evaluate(`window.readOut = [];
new MutationObserver((changes) => changes.forEach(({ type, target, addedNodes }) => {
  for (const node of type === "childList" ? addedNodes : [target]) {
    const place = (node.localName ? node : node.parentElement)?.closest("[aria-live], [role=alert], [role=status]");
    if (place && place.ariaLive !== "off") readOut.push(node.textContent);
  }
})).observe(document.body, { subtree: true, characterData: true, childList: ${childList} })`);
