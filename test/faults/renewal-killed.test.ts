import { setTimeout as sleep } from "node:timers/promises";
import { type Simulator, startSimulator } from "../../simulator";
import { readConfig } from "../../src/platform/config";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { startProgram } from "../support/processes";
import type { Death } from "../support/programs/renewal-victim";
import { environmentFor, type Service, startService } from "../support/service";
import { connect, until } from "../support/stories";
import { makeStale, startTokens, type TokenParts } from "../support/tokens";

// Seen red with: the attempt row written after the request; the token handed out before the commit; a grant that was
// lost in a crash taken for a revocation; a stored token taken for a proven one.

const SEEDS = process.env.DEEP ? 40 : 3;
const TIMEOUT_MS = process.env.DEEP ? 900_000 : 60_000;
/** Longer than any kill takes: whoever dies with its request sent never reads the answer. */
const ANSWER_AFTER_MS = 5_000;
const QUIET_MS = 150;

/** One CRM that forgets a refresh token once it is used, and one that still takes it until its successor is used. */
const RULES = ["strict", "grace"] as const;
type Rule = (typeof RULES)[number];

interface Crm {
  simulator: Simulator;
  service: Service;
  healthy: TokenParts;
  environment: Record<string, string>;
}

let database: TestDatabase;
const crms = new Map<Rule, Crm>();

beforeAll(async () => {
  database = await createTestDatabase();
  for (const refreshTokens of RULES) {
    const simulator = await startSimulator({ deals: 10, refreshTokens });
    const environment = { ...environmentFor(simulator), DATABASE_URL: database.url.reveal() };
    const service = await startService(simulator, database, { roles: new Set(["api"]) });
    const healthy = await startTokens(readConfig(environment));
    crms.set(refreshTokens, { simulator, service, healthy, environment });
  }
});
afterAll(async () => {
  for (const { service, healthy, simulator } of crms.values()) {
    await Promise.all([service.stop(), healthy.close()]);
    await simulator.stop();
  }
  await database.drop();
});

const proofs = ({ simulator }: Crm) => simulator.log.of("GET", "/api/v1/users/me").length;
const tokenRequests = ({ simulator }: Crm) => simulator.log.of("POST", "/oauth/token").length;

/** A process renews the tenant's token and is killed. @returns how many requests for tokens it had sent */
async function renewAndDie(crm: Crm, tenant: string, copyId: number, death: Death, jitterMs: number): Promise<number> {
  const { simulator, environment } = crm;
  const before = tokenRequests(crm);
  if (death === "REQUEST_SENT") {
    simulator.control.fail({ match: "/oauth/token", times: 1, with: { kind: "delay", ms: ANSWER_AFTER_MS } });
  }
  const victim = startProgram("test/support/programs/renewal-victim.js", {
    ...environment,
    TENANT: String(await database.tenantId(tenant)),
    COPY_ID: String(copyId),
    DEATH: death,
    JITTER_MS: String(jitterMs),
  });
  if (death === "REQUEST_SENT") {
    await until("the request is sent", async () => tokenRequests(crm) > before);
    await sleep(jitterMs);
    victim.child.kill("SIGKILL");
  }
  const ended = await victim.ended;
  if (ended !== "SIGKILL") throw new Error(`the victim was not killed but ended (${ended}):\n${victim.output()}`);
  return tokenRequests(crm) - before;
}

interface Ending {
  /** What became of the need for a token, and of the same need once more. */
  needs: string[];
  connection: object;
  requestsOfTheDead: number;
  requestsAfter: number;
  /** How often the two needs after it asked whose the token is. */
  proofsAfter: number;
}

const SHOWN = "{ connection { state reauthorizationReason trouble { code } } }";

/** Kills a renewal of a fresh tenant, and lets a healthy process need the same token. */
async function endingOf(rule: Rule, death: Death, seed: number): Promise<Ending> {
  const crm = crms.get(rule);
  if (!crm) throw new Error(`there is no CRM with the rule ${rule}`);
  const tenant = `${death}-${rule}-${seed}`;
  await connect(crm.service, crm.simulator, { tenant });
  const copyId = await makeStale(database, tenant);
  const requestsOfTheDead = await renewAndDie(crm, tenant, copyId, death, (seed * 37) % 150);

  const before = { tokens: tokenRequests(crm), proofs: proofs(crm) };
  const source = crm.healthy.tokens.of(await database.tenantId(tenant), copyId);
  const needs: string[] = [];
  for (const _ of [1, 2]) {
    needs.push(
      await source.current().then(
        async (token) => `token:${await statusWith(crm, token.reveal())}`,
        (error: Error) => error.name,
      ),
    );
  }
  const { data } = await crm.service.ask<{ connection: object }>(SHOWN, {}, { tenant });
  const requestsAfter = tokenRequests(crm) - before.tokens;
  const proofsAfter = proofs(crm) - before.proofs;
  return { needs, connection: data.connection, requestsOfTheDead, requestsAfter, proofsAfter };
}

async function statusWith({ simulator, healthy }: Crm, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await healthy.http.send({ method: "GET", url: `${simulator.url}/api/v1/users`, headers })).status;
}

const WORKS = { state: "CONNECTED", reauthorizationReason: null, trouble: null };
const OTHER_COMPANY = (userId: number) => ({ userId, company: { id: 99, name: "Other", domain: "other" } });
const LOST = { state: "NEEDS_REAUTHORIZATION", reauthorizationReason: "RENEWAL_UNCONFIRMED", trouble: null };
const recovered = (requestsOfTheDead: number, requestsAfter: number, proofsAfter = 1): Ending => ({
  needs: ["token:200", "token:200"],
  connection: WORKS,
  requestsOfTheDead,
  requestsAfter,
  proofsAfter,
});
const lost: Ending = {
  needs: ["NeedsReauthorizationError", "NeedsReauthorizationError"],
  connection: LOST,
  requestsOfTheDead: 1,
  requestsAfter: 1,
  proofsAfter: 0,
};

test.each<[Death, Record<Rule, Ending>]>([
  ["BEFORE_THE_ATTEMPT", { strict: recovered(0, 1), grace: recovered(0, 1) }],
  ["BEFORE_THE_REQUEST", { strict: recovered(0, 1), grace: recovered(0, 1) }],
  ["REQUEST_SENT", { strict: lost, grace: recovered(1, 1) }],
  ["ANSWER_READ", { strict: lost, grace: recovered(1, 1) }],
  ["BEFORE_THE_COMMIT", { strict: lost, grace: recovered(1, 1) }],
  ["COMMITTED", { strict: recovered(1, 0), grace: recovered(1, 0) }],
  ["PROOF_READ", { strict: recovered(1, 0), grace: recovered(1, 0) }],
  ["BEFORE_THE_PROOF", { strict: recovered(1, 0), grace: recovered(1, 0) }],
  ["PROVEN", { strict: recovered(1, 0, 0), grace: recovered(1, 0, 0) }],
])(
  "a renewal killed at %s: the next need finds out with at most one request, and then nobody asks again",
  async (death, expected) => {
    // Each CRM goes through its own seeds, so that a request in its log belongs to one of them.
    const seedsOf = (rule: Rule) =>
      Array.from({ length: SEEDS }, (_, seed) => seed).filter((seed) => RULES[seed % 2] === rule);
    const endings = await Promise.all(
      RULES.map(async (rule) => {
        const ends: Ending[] = [];
        for (const seed of seedsOf(rule)) ends.push(await endingOf(rule, death, seed));
        return ends;
      }),
    );
    expect(endings).toEqual(RULES.map((rule) => seedsOf(rule).map(() => expected[rule])));
    const requests = () => [...crms.values()].map(tokenRequests);
    const asked = requests();
    await sleep(QUIET_MS);
    expect(requests()).toEqual(asked);
  },
  TIMEOUT_MS,
);

test.each<Death>(["COMMITTED", "PROOF_READ", "BEFORE_THE_PROOF"])(
  "a renewal killed at %s whose token is another company's: the next need finds that out and uses it for nothing else",
  async (death) => {
    const crm = crms.get("strict");
    if (!crm) throw new Error("there is no CRM");
    const { simulator, service, healthy } = crm;
    const userId = simulator.company.stories.singleDeal.ownerId;
    const tenant = `another-${death}`;
    await connect(service, simulator, { tenant });
    const copyId = await makeStale(database, tenant);
    // What the dying one is told does not matter where it is not committed.
    if (death === "COMMITTED") simulator.control.mistake(userId, OTHER_COMPANY(userId));
    await renewAndDie(crm, tenant, copyId, death, 0);
    simulator.control.mistake(userId, OTHER_COMPANY(userId), "living");
    simulator.log.clear();
    const source = healthy.tokens.of(await database.tenantId(tenant), copyId);
    for (const _ of [1, 2]) await expect(source.current()).rejects.toMatchObject({ code: "NEEDS_REAUTHORIZATION" });
    expect(simulator.log.all().map(({ path, companyId }) => [path, companyId])).toEqual([["/api/v1/users/me", 99]]);
    const { data } = await service.ask<{ connection: object }>(SHOWN, {}, { tenant });
    expect(data.connection).toEqual({ ...LOST, reauthorizationReason: "IDENTITY_CHANGED" });
    simulator.control.mistake(userId, { userId }, "living");
  },
);
