import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { until } from "../../support/stories";

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const PATIENCE_MS = 30_000;
jest.setTimeout(180_000);
/** Where screenshots go; absent: none are made, and a test run changes no file. */
const SCREENS = process.env.SCREENS;
/** Pixels: what is below adds nothing but size. */
const TALLEST_SCREEN = 1_100;
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** The system's Chromium without a window. CHROMIUM names another one. */
export function launchBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? INSTALLED.find((path) => existsSync(path));
  if (!executablePath) {
    throw new Error(
      "No Chromium was found. Install it (Debian: apt-get install chromium), or set CHROMIUM to its path.",
    );
  }
  // Root may not use Chromium's sandbox; the pages opened here are the project's own, on loopback.
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Opened within a test. It ends with the test: each page that stays is told of everything, and paints it, beside those of the next ones. */
const ofTest: BrowserContext[] = [];
beforeEach(() => ofTest.splice(0));
afterEach(() => Promise.all(ofTest.splice(0).map((context) => context.close())));

/** A browser of one person's own: no cookie and no storage is shared with another. What `beforeAll` opens stays. */
export async function openBrowser(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, locale: "en-GB", ...options });
  ofTest.push(context);
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript({ content: AXE });
  return context;
}

interface Finding {
  id: string;
  help: string;
  nodes: { html: string; failureSummary: string }[];
}

/** Half-way through a change of colour nothing is as people see it. (Of an animation that is gone, `finished` may never come.) */
const IS_CHANGING =
  "document.getAnimations().some(({ effect, playState }) => playState === 'running' && effect.getTiming().iterations === 1)";

/** Whatever axe-core finds on the page as it is now. */
export async function findings(page: Page): Promise<object[]> {
  await until("nothing changes its colour", async () => !(await page.evaluate(IS_CHANGING)));
  const { violations } = (await page.evaluate("axe.run()")) as { violations: Finding[] };
  return violations.map(({ id, help, nodes }) => ({
    id,
    help,
    nodes: nodes.map(({ html, failureSummary }) => [html, failureSummary]),
  }));
}

/**
 * A state of the page that people are shown: axe-core finds nothing in it, and where SCREENS names a folder there is a picture.
 * @param part of the page; absent: the page from its top
 */
export async function screenshot(page: Page, name: string, part?: Locator): Promise<void> {
  expect([name, await findings(page)]).toEqual([name, []]);
  if (!SCREENS) return;
  mkdirSync(SCREENS, { recursive: true });
  await page.evaluate("document.activeElement?.blur()");
  const path = join(SCREENS, `${name}.png`);
  if (part) return void (await part.screenshot({ path, animations: "disabled" }));
  const [width, height] = (await page.evaluate(
    "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]",
  )) as [number, number];
  const clip = { x: 0, y: 0, width, height: Math.min(height, TALLEST_SCREEN) };
  await page.screenshot({ path, fullPage: true, animations: "disabled", clip });
}
