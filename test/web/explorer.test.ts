import type { Page } from "playwright-core";
import { tokenFor } from "../support/actors";
import { until } from "../support/stories";
import { useService, useStarted } from "../support/world";
import { launchBrowser, openBrowser } from "./support/browser";

const { service, world } = useService({ deals: 10, connected: ["acme"] });
const browser = useStarted(async () => {
  const started = await launchBrowser();
  return { open: () => openBrowser(started), stop: () => started.close() };
});

/** GraphiQL's editors, in the order of the page. */
const EDITORS = { operation: 0, headers: 2 };

async function write(page: Page, editor: keyof typeof EDITORS, text: string): Promise<void> {
  await page.locator(".CodeMirror").nth(EDITORS[editor]).waitFor({ state: "attached" });
  await page.evaluate(
    `document.querySelectorAll(".CodeMirror")[${EDITORS[editor]}].CodeMirror.setValue(${JSON.stringify(text)})`,
  );
}

const shows = (page: Page, text: string) =>
  until(`it shows ${text}`, async () => (await page.locator(".result-window").innerText()).includes(text));

test("GraphiQL asks the service itself, shows its schema and hears its subscriptions, under the page's policy", async () => {
  const page = await (await browser.open()).newPage();
  const complaints: string[] = [];
  const hosts = new Set<string>();
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  const answer = await page.goto(`${service.url}/graphiql`);
  expect(answer?.headers()["content-security-policy"]).toMatch(
    /default-src 'none'; script-src 'self'; style-src 'self'/,
  );

  await write(page, "headers", JSON.stringify({ authorization: `Bearer ${await tokenFor()}` }));
  await page.getByLabel("Re-fetch GraphQL schema").click();
  await page.getByLabel("Execute query").click();
  await shows(page, '"userId": "anna"');

  await page.getByLabel("Show Documentation Explorer").click();
  await page.getByRole("link", { name: "Query", exact: true }).click();
  await page.getByText("all of it is of the viewer's tenant alone").waitFor();

  await write(page, "operation", "subscription Status { connectionStatusChanged { companyName } }");
  // Until it has read the operation, it would ask for the one before.
  await page.getByRole("button", { name: "Status", exact: true }).waitFor();
  await page.getByLabel("Execute query").click();
  await shows(page, '"connectionStatusChanged"');
  // Before it has a token, the schema is refused.
  expect(complaints.filter((text) => !text.includes("401"))).toEqual([]);
  expect([...hosts]).toEqual([new URL(service.url).host]);
});

test("in production there is none, and GET / names it only where it is", async () => {
  const closed = await world.startService({ roles: ["api"], config: { production: true } });
  const read = async (url: string) => {
    const answer = await fetch(url);
    return [answer.status, (await answer.text()).includes("/graphiql")];
  };
  expect([await read(service.url), await read(closed.url)]).toEqual([
    [200, true],
    [200, false],
  ]);
  expect((await fetch(`${closed.url}/graphiql`)).status).toBe(404);
});
