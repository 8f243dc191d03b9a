import type { Page } from "playwright-core";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings } from "./support/browser";
import { startProduct } from "./support/product";
import { disconnected, failed, openMeeting, openNewMeeting, state } from "./support/steps";

const product = useStarted(startProduct);
afterEach(() => disconnected(product));

const DEAL = "Halden Freight A/S – annual licence";

async function openBeforeTheConnect(title: string): Promise<{ page: Page; id: string }> {
  const { service, simulator } = product;
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], { title });
  const page = await product.signIn("member");
  await page.goto(`${service.url}/meetings/${id}`);
  await page.getByRole("heading", { name: "No CRM is connected" }).waitFor();
  return { page, id };
}

async function matched(id: string): Promise<void> {
  const query = "query ($id: ID!) { meeting(id: $id) { match { status } } }";
  await syncEnds(product.service);
  await until("the meeting is matched", async () => {
    const { data } = await product.service.ask<{ meeting: { match: { status: string } } }>(query, { id });
    return data.meeting.match.status === "MATCHED";
  });
}

test("tabs that were open before the CRM was connected show the deal by themselves", async () => {
  const { page, id } = await openBeforeTheConnect("Before the connect");
  const list = await page.context().newPage();
  await list.goto(`${product.service.url}/meetings`);
  const line = list.getByRole("listitem").filter({ hasText: "Before the connect" });
  await line.waitFor();
  await connect(product.service, product.simulator);
  await matched(id);
  await page.getByRole("region", { name: DEAL }).waitFor();
  await line.getByText(DEAL).waitFor();
});

// Seen red with the page as it was, which listened to runs only.
test("a deal that is chosen elsewhere is there in an open tab", async () => {
  const { service, simulator } = product;
  await connect(service, simulator);
  await syncEnds(service);
  const [tab, other] = [await product.signIn("member"), await product.signIn("admin")];
  const title = await openNewMeeting(product, tab, [simulator.company.stories.severalDeals.email]);
  await tab.getByRole("heading", { name: "Which deal is this meeting about?" }).waitFor();
  await openMeeting(other, title);
  await other.getByRole("button", { name: "Choose Baltic Mills – renewal" }).click();
  await tab.getByRole("region", { name: "Baltic Mills – renewal" }).waitFor();
});

// Seen red: with each event one more line, and dots, of contacts that never were.
test("contacts of one moment stay as many as they are while others come", async () => {
  const { service, simulator } = product;
  await connect(service, simulator);
  await syncEnds(service);
  const emails = [simulator.company.stories.singleDeal.email];
  const record = (title: string, hoursAgo: number) =>
    recordMeeting(service, emails, { title, startsAt: new Date(begin - hoursAgo * 3_600_000).toISOString() });
  const begin = Date.now();
  for (const whose of ["Hers", "His"]) await record(whose, 48);
  const page = await product.signIn("member");
  await openNewMeeting(product, page, emails);
  const picture = page.getByRole("img", { name: /^\d+ contacts, / });
  const told = async () => Number.parseInt((await picture.locator("title").first().textContent()) ?? "", 10);
  const shown = async () => [
    await page.getByRole("region", { name: "Timeline" }).getByRole("listitem").count(),
    await picture.locator(".chart-buyer, .chart-us").count(),
  ];
  await picture.waitFor();
  const before = await told();
  for (const later of [1, 2, 3]) {
    await record(`Later ${later}`, 48 - later);
    await until("it is told", async () => (await told()) === before + later);
  }
  const live = await shown();
  await page.reload();
  await picture.waitFor();
  expect(live).toEqual(await shown());
});

test("what is told while an older answer is still on its way is not missed", async () => {
  const { page, id } = await openBeforeTheConnect("A slow answer");
  let isHeld = false;
  let deliver: () => void = () => undefined;
  const delivered = new Promise<void>((release) => {
    deliver = release;
  });
  await page.route("**/graphql", async (route) => {
    if (!route.request().postData()?.includes("query Briefing")) return route.continue();
    const response = await route.fetch();
    isHeld = true;
    await delivered;
    await route.fulfill({ response });
  });
  await connect(product.service, product.simulator);
  // It may be one from before the connect, which the page asks once its subscription stands.
  await until("an answer is held", async () => isHeld);
  await matched(id);
  // The page has been told all there is to tell by now, and has nothing but the old answer to come.
  await page.evaluate("new Promise((done) => setTimeout(done, 2_000))");
  deliver();
  await page.getByRole("region", { name: DEAL }).waitFor();
  // The page may ask once more while the test ends.
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

// Seen red: the page was told nothing until it was loaded again.
test("a subscription that a process of another version does not understand is asked of the next one", async () => {
  const page = await product.signIn("member");
  let refusals = 3;
  await page.routeWebSocket(/graphql/, (near) => {
    const far = near.connectToServer();
    near.onMessage((text) => {
      const { id, type } = JSON.parse(String(text));
      if (type !== "subscribe" || refusals === 0) return far.send(text);
      refusals -= 1;
      const payload = [{ message: "Cannot query field.", extensions: { code: "GRAPHQL_VALIDATION_FAILED" } }];
      near.send(JSON.stringify({ id, type: "error", payload }));
    });
  });
  await page.reload();
  await state(page, "Not connected").waitFor();
  await until("the page has been refused", async () => refusals === 0);
  await connect(product.service, product.simulator);
  await state(page, "Connected").waitFor();
});

// Seen red: the page went on saying "Connected".
test.each(["ConnectionChanged", "SyncProgressed"])("an event of %s that is an error is heard as well", async (told) => {
  const { service, simulator } = product;
  await connect(service, simulator);
  await syncEnds(service);
  const page = await product.signIn("member");
  let isFailing = false;
  await page.routeWebSocket(/graphql/, (near) => {
    const far = near.connectToServer();
    const names = new Map<string, string>();
    near.onMessage((text) => {
      const { id, payload } = JSON.parse(String(text));
      if (payload?.operationName) names.set(id, payload.operationName);
      far.send(text);
    });
    far.onMessage((text) => {
      const { id, type } = JSON.parse(String(text));
      if (type !== "next" || !isFailing) return near.send(text);
      // Nothing but this tells of it.
      if (names.get(id) === told) near.send(JSON.stringify({ id, type, payload: failed("Not now.") }));
    });
  });
  await page.reload();
  await state(page, "Connected").waitFor();
  await page.getByRole("button", { name: "Sync now" }).waitFor();
  isFailing = true;
  simulator.control.revoke(simulator.company.stories.singleDeal.ownerId);
  dataOf(await service.ask("mutation { requestSync(kind: INCREMENTAL) { __typename } }"));
  await state(page, "Needs re-authorization").waitFor();
});

// Seen red: the button was busy until the page was loaded again.
test("who stops the browser on its way to the CRM may set out again", async () => {
  const page = await product.signIn("admin");
  await page.clock.install();
  await page.route(`${product.simulator.url}/**`, (route) => route.abort("aborted"));
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  const leaving = page.getByRole("button", { name: "Opening the CRM …" });
  await leaving.waitFor();
  await page.clock.fastForward(10_000);
  await page.getByRole("button", { name: "Connect Pipedrive" }).waitFor();
});

// Seen red: "It is not known whether the CRM was connected", and signing in lost the CRM's answer.
test("who is signed out by the time that the CRM sends them back signs in beside, and connects", async () => {
  const page = await product.signIn("admin");
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  const allow = page.getByRole("button", { name: "Allow and Install" });
  await allow.waitFor();
  await page.context().clearCookies();
  await allow.click();
  await page.getByRole("heading", { name: "Sign in to complete the connection" }).waitFor();
  expect(await findings(page)).toEqual([]);
  const opened = page.context().waitForEvent("page");
  await page.getByRole("link", { name: "Sign in" }).click();
  const tab = await opened;
  await tab.getByRole("button", { name: "Anna Admin" }).click();
  await tab.getByRole("button", { name: "Connect Pipedrive" }).waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Connected account").waitFor();
});

// Seen red: whoever had lost the answer could not ask again why it was refused.
test("a connect that was refused and whose answer is lost says why when it is tried again", async () => {
  const page = await product.signIn("admin");
  let lost = 0;
  await page.route("**/graphql", async (route) => {
    if (lost > 0 || !route.request().postData()?.includes("mutation Connect")) return route.continue();
    lost += 1;
    await route.fetch();
    await route.abort();
  });
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("The authorization was cancelled in the CRM.").waitFor();
});

// Seen red: "The CRM was not connected", while it was.
test("a connect whose answer is lost is not said to have failed, and the way back shows what is", async () => {
  const page = await product.signIn("admin");
  await page.route("**/graphql", async (route) => {
    if (!route.request().postData()?.includes("mutation Connect")) return route.continue();
    await route.fetch();
    await route.abort();
  });
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  await page.getByRole("button", { name: "Allow and Install" }).click();
  await page.getByRole("heading", { name: "It is not known whether the CRM was connected" }).waitFor();
  await page.getByRole("button", { name: "Back to the CRM connection" }).click();
  await page.getByText("Connected account").waitFor();
});
