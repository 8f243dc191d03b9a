import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import type { ActorClaims } from "../support/actors";
import { dumpState } from "../support/dump";
import { completeConsent, connect, dataOf, startConsent, until } from "../support/stories";
import { useService } from "../support/world";

// One that connected is in callback-matrix.
// Seen red: whoever had lost the first answer was told AUTHORIZATION_STATE_INVALID, and not why it was refused.

let now = new Date();
const { world, simulator, database, service } = useService({ deals: 10, clock: () => now, roles: ["api"] });
beforeEach(() => world.beginAnew());

const TOKEN = "/oauth/token";
const tokenRequests = () => simulator.log.of("POST", TOKEN).length;

let refusals = 0;
/** @returns what was told, and a repeat that asks the CRM nothing and leaves every row as it was */
async function refusedWith(input: object, expected: string) {
  refusals += 1;
  const as = { tenant: `refused-${refusals}` };
  const state = await startConsent(service, as);
  const first = await completeConsent(service, { ...input, state }, as);
  expect(first.code).toBe(expected);
  simulator.control.clearFaults();
  const repeat = async (claims: ActorClaims = {}, other: object = {}) => {
    const [asked, rows] = [tokenRequests(), await dumpState(database)];
    const answer = await completeConsent(service, { ...input, ...other, state }, { ...as, ...claims });
    expect([tokenRequests(), await dumpState(database)]).toEqual([asked, rows]);
    return answer;
  };
  return { as, first, repeat };
}

const whileDown = () => {
  simulator.control.fail({ match: TOKEN, with: { status: 503, body: {} } });
  return { code: simulator.control.approve() };
};

test.each([
  ["by the CRM", () => ({ code: "1.2.x" }), "AUTHORIZATION_REJECTED"],
  ["while the CRM was down", whileDown, "CRM_UNAVAILABLE"],
  ["by its user", () => ({ error: "user_denied" }), "AUTHORIZATION_DENIED_BY_USER"],
])("a connect that was refused %s is told again to who repeats it, for as long as the state lives", async (...of) => {
  const [, input, code] = of;
  const { first, repeat } = await refusedWith(input(), code);
  for (let times = 0; times < 2; times += 1) expect(await repeat()).toEqual(first);
  now = new Date(now.getTime() + 600_000);
  expect((await repeat()).code).toBe("AUTHORIZATION_STATE_INVALID");
});

test("why a connect was refused is told to nobody else, nor to who brings another answer of the CRM, nor after a disconnect", async () => {
  const { as, repeat } = await refusedWith({ code: "1.2.x" }, "AUTHORIZATION_REJECTED");
  expect((await repeat({ sub: "another-admin" })).code).toBe("AUTHORIZATION_STATE_INVALID");
  expect((await repeat({ role: "member" })).code).toBe("NOT_ALLOWED_FOR_ROLE");
  // Whoever went back to the consent page and allowed it now.
  expect((await repeat({}, { code: simulator.control.approve() })).code).toBe("AUTHORIZATION_STATE_INVALID");
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
  expect((await repeat()).code).toBe("AUTHORIZATION_STATE_INVALID");
});

test("a refusal does not outlive that somebody else has connected since", async () => {
  const { as, repeat } = await refusedWith({ code: "1.2.x" }, "AUTHORIZATION_REJECTED");
  await connect(service, simulator, { ...as, sub: "another-admin" });
  expect((await repeat()).code).toBe("ANOTHER_CRM_CONNECTED");
});

// Seen red: it was told after a minute.
test("whoever repeats a connect whose process was killed is told within seconds; one that takes its time is waited for", async () => {
  const as = { tenant: "killed" };
  const [slow, killed] = [await startConsent(service, as), await startConsent(service, as)];
  const { service: other, program } = await world.startProcess({ ROLES: "api" });
  const complete = (at: typeof service, state: string) => completeConsent(at, { code: "1.2.x", state }, as);
  simulator.control.fail({ match: TOKEN, times: 2, with: { kind: "delay", ms: 9_000 } });
  const first = complete(service, slow);
  const cut = complete(other, killed).catch(() => "no answer");
  await until("both have asked the CRM", async () => tokenRequests() === 2);
  program.child.kill("SIGKILL");
  expect(await cut).toBe("no answer");
  const asked = performance.now();
  const waiting = complete(service, slow);
  expect((await complete(service, killed)).code).toBe("AUTHORIZATION_STATE_INVALID");
  expect(performance.now() - asked).toBeLessThan(8_000);
  expect((await first).code).toBe("AUTHORIZATION_REJECTED");
  expect(await waiting).toEqual(await first);
}, 60_000);

// Seen red: the consent's own row was locked first, so nobody could be told that it was under way, and all who said so waited.
test("a connect that a lock holds up in the database is waited for too", async () => {
  const as = { tenant: "held up" };
  const state = await startConsent(service, as);
  const complete = (at: typeof service) => completeConsent(at, { code, state }, as);
  const code = simulator.control.approve();
  const { service: other } = await world.startProcess({ ROLES: "api" });
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("BEGIN; LOCK TABLE credential IN SHARE MODE"); // reads pass, a pair of tokens waits
  const first = complete(service);
  await until("it waits for the lock", async () => (await database.lockWaits()).length > 0);
  const repeat = complete(other);
  await sleep(6_500);
  await holder.end();
  expect([await first, await repeat]).toMatchObject([
    { connection: { state: "CONNECTED" } },
    { connection: { state: "CONNECTED" } },
  ]);
}, 60_000);
