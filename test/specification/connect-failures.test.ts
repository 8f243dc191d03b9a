import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault, FaultRule } from "../../simulator";
import { readConfig } from "../../src/platform/config";
import { dumpDatabase, leaked } from "../support/dump";
import { environmentFor, type Service, startService } from "../support/service";
import { completeConsent, dataOf, startConsent } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: a copy made, or the code stored, before users/me was asked; the token endpoint's answer in a refusal's
// message; a deactivated user bound; a grant without a refresh token taken.

const { simulator, database, service } = useService({ deals: 10, roles: ["api"] });
afterEach(() => simulator.control.clearFaults());

/** Recognisable text in place of every secret of one attempt; all of them are looked for at the end. */
const canaries: string[] = [];
let attempts = 0;
interface Canaries {
  code: string;
  access: string;
  refresh: string;
}
function newCanaries(): Canaries {
  attempts += 1;
  const made = {
    code: `canary-code-${attempts}-x`,
    access: `canary-access-${attempts}-x`,
    refresh: `canary-refresh-${attempts}-x`,
  };
  canaries.push(...Object.values(made));
  return made;
}

const TOKEN = "/oauth/token";
const ME = "/api/v1/users/me";
const granted = ({ access, refresh }: Canaries) => ({
  access_token: access,
  refresh_token: refresh,
  token_type: "Bearer",
  expires_in: 3599,
  scope: "base",
});
const user = () => simulator.company.users.get(simulator.company.stories.singleDeal.ownerId);
const me = (change: object = {}) => ({
  success: true,
  data: { ...user(), company_id: 7_654_321, company_name: "Northwind", company_domain: "northwind", ...change },
});

/** Completes a consent that must be refused, and shows that nothing of it is stored. */
async function refusedWith(code: string, expected: string, at: Service = service): Promise<void> {
  const as = { tenant: `tenant-${attempts}` };
  const state = await startConsent(at, as);
  const answer = await completeConsent(at, { code, state }, as);
  expect(answer).toMatchObject({ code: expected, message: expect.stringMatching(/^[A-Z].*\.$/s) });
  expect(leaked(canaries, [JSON.stringify(answer)])).toEqual([]);
  const stored = await database.query(
    `SELECT tenant_id FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) UNION ALL SELECT tenant_id FROM synced_copy WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)
     UNION ALL SELECT tenant_id FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
    [as.tenant],
  );
  expect(stored).toEqual([]);
  const { connection } = dataOf(
    await at.ask<{ connection: object }>("{ connection { state boundEmail crm } }", {}, as),
  );
  expect(connection).toEqual({ state: "NOT_CONNECTED", boundEmail: null, crm: null });
}

type TokenFault = (made: Canaries) => Fault;
const answers =
  (status: number, change: object = {}): TokenFault =>
  (made) => ({ status, body: { ...granted(made), ...change } });
const refusal =
  (status: number, error?: string): TokenFault =>
  (made) => ({
    status,
    body: { success: false, error, message: `not ${made.code}`, access_token: made.access },
  });
const text =
  (status: number, contentType: string, write: (made: Canaries) => string): TokenFault =>
  (made) => ({ status, contentType, body: write(made) });
const page = (made: Canaries) => `<html><body>${made.access} ${made.refresh}</body></html>`;

const TOKEN_FAULTS: [string, TokenFault, string][] = [
  ["400 invalid_grant", refusal(400, "invalid_grant"), "AUTHORIZATION_REJECTED"],
  ["401 invalid_grant", refusal(401, "invalid_grant"), "AUTHORIZATION_REJECTED"],
  ...["invalid_client", "invalid_request", "invalid_scope", "unauthorized_client", "unsupported_grant_type"].map(
    (error): [string, TokenFault, string] => [`400 ${error}`, refusal(400, error), "AUTHORIZATION_REJECTED"],
  ),
  ["401 invalid_client", refusal(401, "invalid_client"), "AUTHORIZATION_REJECTED"],
  ...[404, 405, 410, 415].map((status): [string, TokenFault, string] => [
    `${status}`,
    refusal(status),
    "AUTHORIZATION_REJECTED",
  ]),
  ...[301, 302, 303, 307, 308].map((status): [string, TokenFault, string] => [
    `${status} to elsewhere`,
    (made) => ({
      status,
      body: granted(made),
      headers: { location: `${simulator.url}${ME}?api_token=${made.access}` },
    }),
    "AUTHORIZATION_REJECTED",
  ]),
  ...[400, 401, 402, 403, 408, 409, 418, 422, 429, 500, 501, 502, 503, 504, 520, 599].map(
    (status): [string, TokenFault, string] => [`${status} of no known kind`, refusal(status), "CRM_UNAVAILABLE"],
  ),
  ["503 with invalid_grant", refusal(503, "invalid_grant"), "CRM_UNAVAILABLE"],
  ["400 with an HTML page", text(400, "text/html", page), "CRM_UNAVAILABLE"],
  ["403 with an HTML page", text(403, "text/html; charset=utf-8", page), "CRM_UNAVAILABLE"],
  ["503 with an HTML page", text(503, "text/html", page), "CRM_UNAVAILABLE"],
  ["201 with tokens", answers(201), "CRM_UNAVAILABLE"],
  ["204 with nothing", text(204, "", () => ""), "CRM_UNAVAILABLE"],
  ["200 with an HTML page", text(200, "text/html", page), "CRM_UNAVAILABLE"],
  ["200 with nothing", text(200, "application/json", () => ""), "CRM_UNAVAILABLE"],
  ["200 with a form", text(200, "text/plain", (made) => `access_token=${made.access}`), "CRM_UNAVAILABLE"],
  [
    "200 with half a JSON",
    text(200, "application/json", (made) => JSON.stringify(granted(made)).slice(0, -1)),
    "CRM_UNAVAILABLE",
  ],
  ["200 with a text", text(200, "application/json", (made) => JSON.stringify(made.access)), "CRM_UNAVAILABLE"],
  ["200 with a list", text(200, "application/json", (made) => JSON.stringify([granted(made)])), "CRM_UNAVAILABLE"],
  ["200 with an error", () => ({ status: 200, body: { success: false, error: "invalid_grant" } }), "CRM_UNAVAILABLE"],
  ["200 with an empty access token", answers(200, { access_token: "" }), "CRM_UNAVAILABLE"],
  ["200 with a number for a token", answers(200, { access_token: 17 }), "CRM_UNAVAILABLE"],
  ["200 without an access token", answers(200, { access_token: undefined }), "CRM_UNAVAILABLE"],
  ["200 with an empty refresh token", answers(200, { refresh_token: "" }), "CRM_UNAVAILABLE"],
  ["200 with an object for a refresh token", answers(200, { refresh_token: {} }), "CRM_UNAVAILABLE"],
  ["garbage", () => ({ kind: "garbage" }), "CRM_UNAVAILABLE"],
  ["null", () => ({ kind: "null" }), "CRM_UNAVAILABLE"],
  ["a front door's page", () => ({ kind: "html" }), "CRM_UNAVAILABLE"],
  ["its rate limit", () => ({ kind: "throttle" }), "CRM_UNAVAILABLE"],
  ["a reset", () => ({ kind: "reset" }), "CRM_UNAVAILABLE"],
];

test.each(TOKEN_FAULTS)(
  "when the token endpoint answers %s, nothing is asked further and nothing stored",
  async (...[, fault, code]) => {
    const made = newCanaries();
    simulator.log.clear();
    simulator.control.fail({ match: TOKEN, with: fault(made) });
    await refusedWith(made.code, code);
    expect(simulator.log.all().map(({ path }) => path)).toEqual([TOKEN]);
  },
);

test.each([
  ["was never issued", () => newCanaries().code],
  [
    "is too old",
    () => {
      const code = simulator.control.approve();
      simulator.control.expireCodes();
      return code;
    },
  ],
])("a code that %s is refused", async (_which, make) => {
  attempts += 1;
  await refusedWith(make(), "AUTHORIZATION_REJECTED");
});

test.each(["cut", "lostAfter"] as const)(
  "a true grant that is lost on its way (%s) is not waited for",
  async (kind) => {
    newCanaries();
    const code = simulator.control.approve();
    canaries.push(code);
    simulator.control.fail({ match: TOKEN, with: { kind } });
    await refusedWith(code, "CRM_UNAVAILABLE");
  },
);

type MeFault = [string, (made: Canaries) => Fault, string];
const changed = (change: object) => () => ({ status: 200, body: me(change) });
const echo =
  (status: number, contentType = "application/json") =>
  (made: Canaries) => ({
    status,
    contentType,
    body: contentType.includes("html") ? page(made) : JSON.stringify({ success: false, error: `bad ${made.access}` }),
  });
const ME_FAULTS: MeFault[] = [
  ...[400, 401, 403, 404, 410, 422].map((status): MeFault => [`${status}`, echo(status), "AUTHORIZATION_REJECTED"]),
  ["402: the account is closed", echo(402), "AUTHORIZATION_REJECTED"],
  [
    "302 to elsewhere",
    (made) => ({ ...echo(302)(made), headers: { location: `${simulator.url}${ME}` } }),
    "CRM_UNAVAILABLE",
  ],
  ["403 with an HTML page", echo(403, "text/html"), "CRM_UNAVAILABLE"],
  ...[408, 429, 500, 502, 503, 504].map((status): MeFault => [`${status}`, echo(status), "CRM_UNAVAILABLE"]),
  ["200 with an HTML page", echo(200, "text/html"), "CRM_UNAVAILABLE"],
  ["200 without success", echo(200), "CRM_UNAVAILABLE"],
  ["garbage", () => ({ kind: "garbage" }), "CRM_UNAVAILABLE"],
  ["null", () => ({ kind: "null" }), "CRM_UNAVAILABLE"],
  ["a reset", () => ({ kind: "reset" }), "CRM_UNAVAILABLE"],
  ["no user", () => ({ status: 200, body: { success: true, data: null } }), "CRM_UNAVAILABLE"],
  ["a list of users", () => ({ status: 200, body: { success: true, data: [me().data] } }), "CRM_UNAVAILABLE"],
  ["a user whose id is a token", (made) => ({ status: 200, body: me({ id: made.access }) }), "CRM_UNAVAILABLE"],
  ["a user without e-mail", changed({ email: "" }), "CRM_UNAVAILABLE"],
  ["a user of no company", changed({ company_id: null }), "CRM_UNAVAILABLE"],
  ["a user of company 0", changed({ company_id: 0 }), "CRM_UNAVAILABLE"],
  ["a user without a domain", changed({ company_domain: undefined }), "CRM_UNAVAILABLE"],
  ...["", "evil.example", "evil.example/", "a@evil", "https://evil", "evil\n", "évil", "../x"].map(
    (domain): MeFault => [
      `the domain ${JSON.stringify(domain)}`,
      changed({ company_domain: domain }),
      "CRM_UNAVAILABLE",
    ],
  ),
  ["a deactivated user", changed({ active_flag: false }), "AUTHORIZATION_REJECTED"],
  ["a deleted user", changed({ is_deleted: true }), "AUTHORIZATION_REJECTED"],
];

test.each(ME_FAULTS)(
  "when users/me answers %s, the grant is dropped and nothing stored",
  async (...[, fault, code]) => {
    const made = newCanaries();
    simulator.log.clear();
    const rules: FaultRule[] = [
      { match: TOKEN, with: answers(200)(made) },
      { match: ME, with: fault(made) },
    ];
    for (const rule of rules) simulator.control.fail(rule);
    await refusedWith(made.code, code);
    expect(simulator.log.all().map(({ path }) => path)).toEqual([TOKEN, ME]);
  },
);

test("when users/me is cut in the body of a true answer, the grant is dropped and nothing stored", async () => {
  newCanaries();
  simulator.control.fail({ match: ME, with: { kind: "cut" } });
  await refusedWith(simulator.control.approve(), "CRM_UNAVAILABLE");
});

test.each([
  ["no refresh token", { refresh_token: undefined }],
  ["null for a refresh token", { refresh_token: null }],
])("a grant with %s cannot be kept up and is not taken", async (_what, change) => {
  const made = newCanaries();
  simulator.control.fail({ match: TOKEN, with: answers(200, change)(made) });
  simulator.control.fail({ match: ME, with: { status: 200, body: me() } });
  await refusedWith(made.code, "AUTHORIZATION_REJECTED");
});

test("an access token that fits in no header is never sent", async () => {
  const made = newCanaries();
  simulator.log.clear();
  simulator.control.fail({ match: TOKEN, with: answers(200, { access_token: `${made.access}\r\nx: y` })(made) });
  await refusedWith(made.code, "CRM_UNAVAILABLE");
  expect(simulator.log.of("GET", "/")).toEqual([]);
});

test("a user whom the CRM has deactivated since the consent cannot be bound", async () => {
  newCanaries();
  const { ownerId } = simulator.company.stories.singleDeal;
  const code = simulator.control.approve();
  simulator.control.change("user", ownerId, { active_flag: false });
  try {
    await refusedWith(code, "AUTHORIZATION_REJECTED");
  } finally {
    simulator.control.change("user", ownerId, { active_flag: true });
  }
});

/** Answers on the wire that no rule of the simulator gives. */
type Raw = (response: ServerResponse, made: Canaries) => Promise<void> | void;
const RAW: [string, Raw][] = [
  [
    "drips and is cut",
    async (response, made) => {
      const body = JSON.stringify(granted(made));
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
      for (const part of [body.slice(0, 20), body.slice(20, 60)]) {
        response.write(part);
        await sleep(30);
      }
      response.destroy();
    },
  ],
  [
    "is larger than any answer may be",
    (response, made) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...granted(made), padding: "x".repeat(17 * 1024 * 1024) }));
    },
  ],
  [
    "is not HTTP at all",
    (response, made) => {
      response.socket?.end(`${made.access} ${made.refresh}\r\n\r\n`);
    },
  ],
  [
    "has broken chunks",
    (response, made) => {
      response.socket?.end(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n${made.access}\r\n`);
    },
  ],
];

test.each(RAW)("a token answer that %s grants nothing", async (_which, raw) => {
  const made = newCanaries();
  const server = createServer((_request, response) => void raw(response, made));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const authUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { crm } = readConfig(environmentFor(simulator));
  const other = await startService(simulator, database, { roles: new Set(["api"]), crm: { ...crm, authUrl } });
  try {
    await refusedWith(made.code, "CRM_UNAVAILABLE", other);
  } finally {
    await other.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

// Seen red: it was told after a minute.
test("whoever repeats a connect that failed by a fault of ours is told at once", async () => {
  const as = { tenant: "repeats" };
  const state = await startConsent(service, as);
  const complete = () => completeConsent(service, { code: simulator.control.approve(), state }, as);
  await database.query("ALTER TABLE credential RENAME COLUMN version TO away");
  await expect(complete()).rejects.toThrow("INTERNAL_SERVER_ERROR");
  await database.query("ALTER TABLE credential RENAME COLUMN away TO version");
  const asked = Date.now();
  expect((await complete()).code).toBe("AUTHORIZATION_STATE_INVALID");
  expect(Date.now() - asked).toBeLessThan(10_000);
});

test("after all of them no byte of a code or token is anywhere in the database, and no job was made", async () => {
  expect(attempts).toBeGreaterThan(100);
  await startConsent(service, { sub: "canary-in-sight" });
  const rows = await dumpDatabase(database);
  const texts = rows.map(({ text }) => text);
  expect(leaked([...canaries, "canary-in-sight"], texts)).toEqual(["canary-in-sight"]);
  expect(rows.filter(({ table }) => /credential|copy|sync|jobs/.test(table))).toEqual([]);
});
