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

/** Presses Tab until the focus is on what is named. @throws after more stops than a page has */
export async function tabTo(page: Page, role: "link" | "button" | "textbox", name: string): Promise<void> {
  const reached = page.getByRole(role, { name, exact: true }).and(page.locator(":focus"));
  for (let stop = 0; stop < 60; stop += 1) {
    await page.keyboard.press("Tab");
    if ((await reached.count()) > 0) return;
  }
  throw new Error(`the keyboard did not reach the ${role} "${name}"`);
}

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

/** By how many pixels the page is wider than its window. */
export async function overhang(page: Page): Promise<number> {
  const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  return Number(await page.evaluate(beyond));
}
