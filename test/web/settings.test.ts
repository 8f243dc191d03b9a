import { fieldOf, setMapping } from "../support/fields";
import { writeNote } from "../support/notes";
import { recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useStarted } from "../support/world";
import { findings, screenshot } from "./support/browser";
import { startProduct } from "./support/product";
import { answerWith, connectThroughConsent, disconnected, failed, listen, state } from "./support/steps";

const product = useStarted(startProduct);
afterEach(async () => {
  product.simulator.control.clearFaults();
  await disconnected(product);
});

test("an admin connects through the consent page, sees who is bound, and disconnects; another browser sees it live", async () => {
  const [admin, member] = [await product.signIn("admin"), await product.signIn("member")];
  await state(member, "Not connected").waitFor();
  await screenshot(admin, "settings-not-connected");
  expect(await findings(admin)).toEqual([]);

  await connectThroughConsent(admin);
  const { company } = product.simulator;
  const bound = company.users.get(company.stories.singleDeal.ownerId);
  await admin.getByText(bound?.email ?? "").waitFor();
  await admin.getByRole("definition").filter({ hasText: company.name }).waitFor();
  expect(admin.url()).toBe(`${product.service.url}/settings`);
  await state(member, "Connected").waitFor();
  await member.getByText(bound?.email ?? "").waitFor();

  await admin.getByText("Succeeded").waitFor();
  await admin.getByText("What the last run read").click();
  await admin
    .getByRole("listitem")
    .filter({ hasText: "Deal participants" })
    .getByText(/\d+ read/)
    .waitFor();
  await screenshot(admin, "settings-connected");

  await admin.getByRole("button", { name: "Disconnect …" }).click();
  const dialog = admin.getByRole("dialog");
  await dialog.getByText("notes and field values that were written to the CRM").waitFor();
  expect(await findings(admin)).toEqual([]);
  await admin.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await state(admin, "Connected").waitFor();
  await admin.getByRole("button", { name: "Disconnect …" }).click();
  await admin.getByRole("button", { name: "Disconnect and delete the copy" }).click();
  await admin.getByText("uninstall the app in the CRM").waitFor();
  await state(admin, "Not connected").waitFor();
  await state(member, "Not connected").waitFor();
});

test("a sync is shown step by step as it goes, and its end too, without loading the page again", async () => {
  const release = product.simulator.control.fail({ match: "/api/v2/deals", times: 1, with: { kind: "hang" } });
  const page = await product.signIn("admin", { reducedMotion: "reduce" });
  await connectThroughConsent(page);
  await page.evaluate("globalThis.loadedOnce = true");
  const progress = page.getByRole("progressbar", { name: "Progress of the sync" });
  await progress.waitFor();
  await page
    .getByRole("listitem")
    .filter({ hasText: "People" })
    .getByText(/\d+ read/)
    .waitFor();
  expect(await page.getByRole("button", { name: "Syncing …" }).isDisabled()).toBe(true);
  await screenshot(page, "settings-syncing");
  // What is under way moves for everybody but those who asked for less of it.
  const moving = "document.getAnimations().length";
  expect(await page.evaluate(moving)).toBe(0);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await until("what is under way moves", async () => Number(await page.evaluate(moving)) > 0);
  release();
  await progress.waitFor({ state: "detached" });
  expect(await page.evaluate("globalThis.loadedOnce")).toBe(true);
});

test("what could not be read is said in words, and why a run failed", async () => {
  product.simulator.control.fail({ match: "/api/v2/stages", with: { status: 500 } });
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  const gap = page.getByRole("alert").filter({ hasText: "Some data is missing" });
  await gap.getByText("Stages").waitFor();
  product.simulator.control.fail({ match: "/api/v2/persons", with: { kind: "throttle" } });
  await page.getByRole("button", { name: "Sync now" }).click();
  await page.getByRole("alert").filter({ hasText: "The last run failed" }).waitFor();
  await page.getByRole("alert").filter({ hasText: "The CRM is in trouble" }).waitFor();
  await state(page, "Connected").waitFor();
  await screenshot(page, "settings-trouble");
});

test("an admin sees whose deals are seen, and is told of whom nothing is; a member is not shown it", async () => {
  const { control, company } = product.simulator;
  const { ownerId } = company.stories.singleDeal;
  control.narrow(ownerId, "own");
  const [admin, member] = [await product.signIn("admin"), await product.signIn("member")];
  await connectThroughConsent(admin);
  const seen = admin.getByRole("region", { name: "What is seen of the CRM" });
  const owner = seen.getByRole("row").filter({ hasText: company.users.get(ownerId)?.name ?? "" });
  const deals = control.visibleTo(ownerId).deals.length;
  await owner
    .getByRole("cell", { name: String(deals), exact: true })
    .first()
    .waitFor();
  expect(await seen.getByRole("row").count()).toBe(2);
  const others = [...company.users.values()].filter(({ id, active_flag }) => active_flag && id !== ownerId);
  const advice = seen.getByRole("status").filter({ hasText: `Nothing is seen of ${others.length} active users` });
  await advice.getByText("let somebody authorize who sees it").waitFor();
  await advice.getByText(others[0]?.name ?? "").waitFor();
  expect(await findings(admin)).toEqual([]);
  await member.getByRole("region", { name: "Fields the service may write" }).waitFor();
  expect(await member.getByText("What is seen of the CRM").count()).toBe(0);
  // Seen red: all of it was gone.
  await answerWith(admin, "query Visibility", () => failed("Not now."));
  await syncAgain(product.service, product.database);
  await seen.getByText("Not now.").waitFor();
  expect(await owner.count()).toBe(1);
  control.narrow(ownerId, "everything");
});

test("what the service takes of the company's tokens is a bar with words, and when the CRM's day ends once that was seen", async () => {
  const { control } = product.simulator;
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  await syncEnds(product.service);
  const words = /^This service has used [\d,]+ of its 525,000 tokens today; your company has [\d,]+ left\.$/;
  await page.getByText(words).waitFor();
  await page.getByRole("progressbar", { name: words }).waitFor();
  await page.getByText("gives your company 2,100,000 tokens a day").waitFor();
  await page.getByText("When its next day begins is not known yet.").waitFor();
  control.otherAppsSpend(900_000);
  await page.getByRole("button", { name: "Sync now" }).click();
  await page.getByText(/your company has 1,1\d\d,\d\d\d left/).waitFor();
  control.endDay();
  await page.getByRole("button", { name: "Sync now" }).click();
  await page.getByText(/Its next day begins (in 1 day|in 24 hours|in 23 hours)/).waitFor();
  await screenshot(page, "settings-budget", page.getByRole("region", { name: "Tokens of the CRM's day" }));
});

test("when the CRM ends the grant, the page says so and why, and one button leads back", async () => {
  const page = await product.signIn("admin");
  const member = await product.signIn("member");
  await connectThroughConsent(page);
  await syncEnds(product.service);
  product.simulator.control.revoke(product.simulator.company.stories.singleDeal.ownerId);
  await page.getByRole("button", { name: "Sync now" }).click();
  await state(page, "Needs re-authorization").waitFor();
  await page.getByRole("alert").filter({ hasText: "no longer accepts the authorization" }).waitFor();
  await screenshot(page, "settings-reauthorize");
  await state(member, "Needs re-authorization").waitFor();
  expect(await member.getByRole("button", { name: "Authorize again" }).isDisabled()).toBe(true);
  await connectThroughConsent(page, "Authorize again");
  await state(page, "Connected").waitFor();
  await state(member, "Connected").waitFor();
});

test("when the CRM's access turns out to be somebody else's, the page says that nothing was done with it", async () => {
  const { control, company } = product.simulator;
  const { ownerId } = company.stories.singleDeal;
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  await syncEnds(product.service);
  control.mistake(ownerId, { userId: ownerId, company: { id: 99, name: "Other", domain: "other" } }, "living");
  await page.getByRole("button", { name: "Sync now" }).click();
  await state(page, "Needs re-authorization").waitFor();
  await page.getByRole("alert").filter({ hasText: "belongs to another user or company" }).waitFor();
  control.mistake(ownerId, { userId: ownerId });
  await connectThroughConsent(page, "Authorize again");
  await state(page, "Connected").waitFor();
});

test("who cancels in the CRM is told that nothing was connected, and the address bar keeps nothing of the answer", async () => {
  const page = await product.signIn("admin");
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("heading", { name: "The CRM was not connected" }).waitFor();
  expect(page.url()).toBe(`${product.service.url}/settings`);
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Back to the CRM connection" }).click();
  await page.getByRole("button", { name: "Connect Pipedrive" }).waitFor();
});

test("a made-up answer of the CRM connects nothing: the page only hands it to the service", async () => {
  product.simulator.log.clear();
  const page = await product.signIn("admin");
  await page.goto(`${product.service.url}/crm/callback?code=stolen&state=made-up`);
  await page.getByRole("heading", { name: "The CRM was not connected" }).waitFor();
  expect(page.url()).toBe(`${product.service.url}/settings`);
  expect(product.simulator.log.of("POST", "/oauth/token")).toEqual([]);
});

// Seen red: "There is no such page", the code still in the address, and from a page of that address in what the product was told.
test("an install in the CRM's marketplace, which has no state, leads to the settings, and its code to nobody", async () => {
  product.simulator.log.clear();
  const page = await product.openSignedOut();
  await page.goto(`${product.service.url}/crm/callback?code=of-somebody`);
  const signIn = page.getByRole("link", { name: "Sign in" });
  expect(await signIn.getAttribute("href")).toBe(`${product.host.url}/?return_to=%2Fsettings`);
  await signIn.click();
  await page.getByRole("button", { name: "Anna Admin" }).click();
  await page.getByRole("button", { name: "Connect Pipedrive" }).waitFor();
  expect(page.url()).toBe(`${product.service.url}/settings`);
  expect(product.simulator.log.of("POST", "/oauth/token")).toEqual([]);
});

test.each([
  ["member", "Only an owner or admin of your organization may do this."],
  ["starter", "plan does not include the CRM connection"],
] as const)("a %s sees what is not allowed, and why", async (person, reason) => {
  const page = await product.signIn(person);
  await page.getByText(reason).waitFor();
  expect(await page.getByRole("button", { name: "Connect Pipedrive" }).isDisabled()).toBe(true);
  expect(await findings(page)).toEqual([]);
  const admin = await product.signIn("admin");
  await connectThroughConsent(admin);
  await state(page, "Connected").waitFor();
  expect(await page.getByRole("button", { name: "Choose a field for Deals" }).isDisabled()).toBe(true);
  expect(await page.getByRole("button", { name: "Disconnect …" }).isDisabled()).toBe(person === "member");
  if (person === "member") await page.getByText("Only an owner or admin of your organization may disconnect").waitFor();
  await setMapping(product.service, "DEAL", fieldOf(product.simulator, "DEAL", "varchar").field_code);
  await page.reload();
  // Seen red: closed to whose plan had lapsed, too.
  const clear = page.getByRole("button", { name: "Clear the field for Deals" });
  expect(await clear.isDisabled()).toBe(person === "member");
  if (person === "member") return;
  await clear.click();
  await clear.waitFor({ state: "detached" });
});

test("a field is chosen from the CRM's own list, with its type and options, changed and cleared", async () => {
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  await page.getByRole("button", { name: "Choose a field for Deals" }).click();
  const search = page.getByRole("textbox", { name: "Search the custom fields" });
  await search.and(page.locator(":focus")).waitFor();
  await search.fill("segm");
  await page.getByText("1 field", { exact: true }).waitFor();
  await page.getByRole("radio", { name: "Segment One of several options" }).check();
  await page.getByText("3 options: Consumer, Small business, Enterprise").waitFor();
  expect(await findings(page)).toEqual([]);
  await search.fill("");
  await page.getByRole("radio", { name: "Meeting summary Long text" }).check();
  const sent: string[] = [];
  page.on("request", (request) => void sent.push(request.postData() ?? ""));
  await page.getByRole("button", { name: "Use this field" }).dblclick();
  const deals = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Deals" }) });
  await deals.getByText("Meeting summary").waitFor();
  await deals.getByText("In order").waitFor();
  // Seen red: as often as it was pressed, each for ten of the company's tokens.
  expect(sent.filter((body) => body.includes("mutation SetFieldMapping"))).toHaveLength(1);
  await screenshot(page, "settings-fields", page.getByRole("region", { name: "Fields the service may write" }));
  // Who cannot read which are nominated does not say that none is.
  await page.route("**/graphql", (route) =>
    route.request().postData()?.includes("query FieldMappings") ? route.abort() : route.continue(),
  );
  await page.reload();
  const fields = page.getByRole("region", { name: "Fields the service may write" });
  await fields.getByRole("button", { name: "Try again" }).waitFor();
  expect(await fields.getByText("No field nominated.").count()).toBe(0);
  await page.unroute("**/graphql");
  await fields.getByRole("button", { name: "Try again" }).click();
  await deals.getByText("Meeting summary").waitFor();
  await page.getByRole("button", { name: "Clear the field for Deals" }).click();
  await deals.getByText("No field nominated.").waitFor();
});

test("after a connect the page says what comes next, and how many meetings are matched", async () => {
  const { service, database } = product;
  for (let more = 0; more < 3; more += 1) await recordMeeting(service, ["curious.newcomer@somewhere-new.example"]);
  const release = product.simulator.control.fail({ match: "/api/v2/deals", times: 1, with: { kind: "hang" } });
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  const next = page.getByRole("region", { name: "What comes next" });
  // Seen red: "0 %" beside the sync's own "27 %": only one of the two was told how far it has come.
  const [said, isAt] = await until("the sync has come somewhere", async () => {
    const [inSteps, inSync] = (await page.locator("main").innerText()).match(/\d+ %/g) ?? [];
    return inSync && inSync !== "0 %" && [inSteps, inSync];
  });
  expect(said).toBe(isAt);
  expect(await findings(page)).toEqual([]);
  release();
  await next.getByText("The CRM was read").waitFor();
  await next.getByText("Your meetings are matched to deals and people").waitFor();
  // What the service tells while it matches a thousand of them.
  await database.query(`UPDATE synced_copy SET rematch = '{"done": 23, "total": 40}'`);
  await page.reload();
  await next.getByText("Matching your meetings: 23 of 40").waitFor();
  await screenshot(page, "settings-next-steps", next);
  await database.query("UPDATE synced_copy SET rematch = NULL");
  await next.waitFor({ state: "detached" });
});

// Seen red: "Matching your meetings: 31 of 40", and over whatever was being read "Deal participants (13 records)", at each look.
test("how far something has come is shown and not read out", async () => {
  const { database, service } = product;
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  await syncEnds(service);
  await database.query("UPDATE deal SET participants_due = true, participants_known = false");
  await database.query(`UPDATE synced_copy SET rematch = '{"done": 23, "total": 40}'`);
  await page.reload();
  await page.getByText("Matching your meetings: 23 of 40").last().waitFor();
  const gap = page.getByRole("alert").filter({ hasText: "Some data is missing" });
  const missing = async () => Number(/Deal participants \((\d+) records\)/.exec((await gap.textContent()) ?? "")?.[1]);
  const all = await missing();
  await listen(page, { childList: true });
  await database.query("UPDATE deal SET participants_known = true WHERE crm_id % 2 = 0");
  await database.query(`UPDATE synced_copy SET rematch = '{"done": 31, "total": 40}'`);
  await page.getByText("Matching your meetings: 31 of 40").last().waitFor();
  await until("fewer are missing", async () => (await missing()) < all);
  expect(await page.evaluate("readOut")).toEqual([]);
});

test("an admin looks through runs, writes and security events; a member sees their own writes only", async () => {
  const { service, simulator } = product;
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  await syncEnds(service);
  const title = "Written about";
  const meeting = await recordMeeting(service, [simulator.company.stories.singleDeal.email], { title });
  await writeNote(service, { meetingId: meeting.id });
  const key = fieldOf(simulator, "DEAL", "varchar").field_code;
  await setMapping(service, "DEAL", key);
  simulator.control.fail({ match: "/api/v2/persons", with: { kind: "throttle" } });
  await page.getByRole("button", { name: "Sync now" }).click();
  await page.getByRole("alert").filter({ hasText: "The last run failed" }).waitFor();

  const runs = page.getByRole("region", { name: "Syncs so far" });
  await runs.getByText("Show the latest runs").click();
  const failed = runs.getByRole("listitem").filter({ hasText: "Failed" }).first();
  await failed.getByText("request limit is used up").waitFor();
  const succeeded = runs.getByRole("listitem").filter({ hasText: "Succeeded" }).first();
  await succeeded.getByText(/took (less than a second|\d+ seconds?), .* records? changed/).waitFor();
  const written = page.getByRole("region", { name: "What was written to the CRM" });
  await written.getByText("Show notes and field values").click();
  await written.getByRole("link", { name: title }).waitFor();
  await written.getByRole("link", { name: "Halden Freight A/S – annual licence" }).waitFor();
  const events = page.getByRole("region", { name: "Security events" });
  await events.getByText("Show who did what").click();
  await events.getByText("Connected the CRM", { exact: true }).first().waitFor();
  const nominated = events.getByRole("listitem").filter({ hasText: "Nominated a field" });
  await nominated.getByText("From what to what").click();
  await nominated.getByText(`From nothing to ${key}`).waitFor();
  await screenshot(page, "settings-history", runs);

  const member = await product.signIn("member");
  const own = member.getByRole("region", { name: "What you wrote to the CRM" });
  await own.getByText("Show notes and field values").click();
  await own.getByText("Nothing was written yet.").waitFor();
  expect(await member.getByRole("region", { name: "Security events" }).count()).toBe(0);
  expect(await member.getByText("Check everything for what is gone").count()).toBe(0);
});

test("a full check is explained, asked for and shown as it runs", async () => {
  const page = await product.signIn("admin");
  await connectThroughConsent(page);
  await syncEnds(product.service);
  await page.getByText("Deals or people are shown that the CRM no longer has?").click();
  await page.getByText("reads everything once more and takes out what is gone").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Check everything for what is gone" }).click();
  await page.getByRole("definition").filter({ hasText: "Full check for what is gone" }).waitFor();
});
