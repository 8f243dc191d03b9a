import type { Fault } from "../../simulator";
import { BudgetLowError } from "../../src/crm/errors";
import { loseAuthorization, renewalDuringAuthorization, renewalWithoutLock } from "../support/renewal-encounters";
import { NEEDS_REAUTHORIZATION, REVOKED, useRenewals, WORKS } from "../support/renewals";
import { connect, until } from "../support/stories";
import { startTokens } from "../support/tokens";

// Seen red with: a stored token taken for a proven one; a failed proof that renews again; trouble that ends with the renewal.

const HOUR = 3_600_000;

const on = useRenewals();
afterEach(() => {
  on.simulator.control.clearFaults();
  on.simulator.control.mistake(on.userId, { userId: on.userId }, "living");
});

const WHO = "/api/v1/users/me";
const asked = () => on.simulator.log.all().map(({ path }) => path);
const TROUBLED = { ...WORKS, trouble: { code: "CRM_UNAVAILABLE" } };

test("the token of a connect is proven: nothing asks again whose it is", async () => {
  const acme = await on.connected();
  await acme.source.current();
  expect(asked()).toEqual([]);
});

test("a token that was stored before tokens were proven is proven at its next use, once", async () => {
  const acme = await on.connected();
  await on.database.query(
    "UPDATE credential SET proven_version = NULL WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [acme.tenant],
  );
  await acme.source.current();
  await acme.source.current();
  expect(asked()).toEqual([WHO]);
});

test.each<[what: string, fault: Fault]>([
  ["cuts the connection", { kind: "reset" }],
  ["answers 429", { kind: "throttle" }],
  ["answers 500", { status: 500, body: "" }],
  ["answers with a page", { kind: "html" }],
  ["answers 200 with garbage", { kind: "garbage" }],
  ["answers 402", { status: 402, body: { success: false } }],
  ["answers 403", { status: 403, body: { success: false, error: "You do not have permissions to do this." } }],
  ["names no company", { status: 200, body: { success: true, data: { id: 1 } } }],
])(
  "when the CRM %s instead of saying whose a renewed token is, the token is used for nothing",
  async (_what, fault) => {
    const acme = await on.connected();
    on.later(HOUR);
    const end = on.simulator.control.fail({ match: WHO, with: fault });
    const { version } = await on.stored(acme);
    for (const requests of [["/oauth/token", WHO], [WHO]]) {
      on.simulator.log.clear();
      await expect(on.api(acme.source).users()).rejects.toMatchObject({ name: "OAuthError", code: "OUTAGE" });
      expect(asked()).toEqual(requests);
    }
    const since = on.clock().toISOString();
    expect(await on.shown(acme)).toMatchObject({ ...TROUBLED, trouble: { code: "CRM_UNAVAILABLE", since } });
    expect(await on.stored(acme)).toMatchObject({ version: version + 1, isProven: false });
    end();
    on.simulator.log.clear();
    await on.api(acme.source).users();
    expect(asked()).toEqual([WHO, "/api/v1/users"]);
    expect(await on.shown(acme)).toEqual(WORKS);
    expect(await on.stored(acme)).toMatchObject({ version: version + 1, isProven: true });
  },
);

test("trouble of a renewal goes on until the renewed token is proven", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const end = on.fail({ kind: "throttle" });
  await expect(acme.source.current()).rejects.toThrow();
  const since = on.clock().toISOString();
  end();
  on.simulator.control.fail({ match: WHO, times: 1, with: { kind: "throttle" } });
  on.later(1_000);
  await expect(acme.source.current()).rejects.toThrow();
  expect((await on.shown(acme)).trouble).toMatchObject({ code: "CRM_UNAVAILABLE", since });
  await acme.source.current();
  expect(await on.shown(acme)).toEqual(WORKS);
});

test("a fresh token that is refused is not renewed in the same need, and once in the next", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  on.simulator.control.fail({ match: WHO, times: 2, with: { status: 401, body: { success: false } } });
  await expect(acme.source.current()).rejects.toMatchObject({ name: "CrmError", code: "UNAUTHORIZED" });
  expect(asked()).toEqual(["/oauth/token", WHO]);
  expect(await on.shown(acme)).toEqual(WORKS);
  await acme.source.current();
  expect(asked()).toEqual(["/oauth/token", WHO, WHO, "/oauth/token", WHO]);
});

test("a renewed token of a user who is no longer active ends the authorization as revoked", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  on.simulator.control.change("user", on.userId, { active_flag: false });
  try {
    await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
    expect(await on.shown(acme)).toEqual(REVOKED);
    expect(asked()).toEqual(["/oauth/token", WHO]);
  } finally {
    on.simulator.control.change("user", on.userId, { active_flag: true });
  }
});

test("a hundred callers of two processes wait for one proof, and one that comes later is told nothing new", async () => {
  const acme = await on.connected();
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  try {
    on.later(HOUR);
    const end = on.simulator.control.fail({ match: WHO, with: { kind: "hang" } });
    const sources = [acme.source, other.tokens.of(acme.tenantId, acme.copyId)];
    const callers = sources.flatMap((source) => Array.from({ length: 50 }, () => source.current()));
    await until("the CRM is asked", async () => asked().includes(WHO));
    expect((await on.stored(acme)).isProven).toBe(false);
    end();
    const tokens = await Promise.all(callers);
    expect(new Set(tokens.map((token) => token.reveal())).size).toBe(1);
    expect(asked()).toEqual(["/oauth/token", WHO]);
  } finally {
    await other.close();
  }
});

test("an answer whose it is that comes after a person has authorized anew changes nothing", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  on.simulator.control.mistake(on.userId, { userId: on.userId, company: { id: 99, name: "Other", domain: "other" } });
  const end = on.simulator.control.fail({ match: WHO, times: 1, with: { kind: "hangAfter" } });
  const renewal = acme.source.current();
  renewal.catch(() => undefined);
  await until("the CRM is asked", async () => asked().includes(WHO));
  on.simulator.control.mistake(on.userId, { userId: on.userId });
  await loseAuthorization(on, acme);
  await connect(on.service, on.simulator, { tenant: acme.tenant });
  end();
  expect((await renewal).reveal()).toBe((await on.stored(acme)).accessToken.reveal());
  expect(await on.shown(acme)).toEqual(WORKS);
});

test("a renewal that comes back late hands out no token that was found to be another's meanwhile", async () => {
  const acme = await on.connected();
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  try {
    on.later(HOUR);
    const { renewal, end } = await renewalDuringAuthorization(on, acme);
    on.simulator.control.mistake(
      on.userId,
      { userId: on.userId, company: { id: 99, name: "Other", domain: "other" } },
      "living",
    );
    await expect(other.tokens.of(acme.tenantId, acme.copyId).verify()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
    end();
    await expect(renewal).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  } finally {
    await other.close();
  }
});

// Seen red: the pair that a person had just given was renewed once more.
test("a stored token that a person replaces while the CRM is asked for its owner costs no renewal", async () => {
  const acme = await on.connected();
  await on.database.query("UPDATE credential SET proven_version = NULL WHERE tenant_id = $1", [acme.tenantId]);
  const end = on.simulator.control.fail({ match: WHO, times: 1, with: { kind: "hangAfter" } });
  const current = acme.source.current();
  current.catch(() => undefined);
  await until("the CRM is asked", async () => asked().includes(WHO));
  await loseAuthorization(on, acme);
  await connect(on.service, on.simulator, { tenant: acme.tenant });
  end();
  expect((await current).reveal()).toBe((await on.stored(acme)).accessToken.reveal());
  expect(on.simulator.log.of("POST", "/oauth/token").map(({ grantType }) => grantType)).toEqual(["authorization_code"]);
});

// Seen red with a look that takes the refusal of a proven token for no answer.
test("a look at a token that the CRM refuses finds that the grant was withdrawn", async () => {
  const acme = await on.connected();
  on.simulator.control.revoke(on.userId);
  const { verify } = on.access.tokens.of(acme.tenantId, acme.copyId);
  await expect(verify()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(REVOKED);
});

// Planted and seen red: it was renewed though there was nothing to pay a look from, or was paid for twice.
test("a look at a token that has to be renewed asks whether a look may be paid, and is paid by the proof alone", async () => {
  const acme = await on.connected();
  const { verify } = on.access.tokens.of(acme.tenantId, acme.copyId);
  on.later(HOUR);
  const low = new BudgetLowError(null);
  await expect(verify({ reservation: { spend: () => Promise.reject(low) } })).rejects.toBe(low);
  expect(asked()).toEqual([]);
  const told: unknown[] = [];
  const spend = async (price: number) => {
    told.push(price);
    return { answered: () => told.push("answered"), unsent: () => told.push("unsent") };
  };
  await verify({ reservation: { spend } });
  expect([told, asked()]).toEqual([
    [2, "unsent"],
    ["/oauth/token", WHO],
  ]);
});

// Seen red with: whatever stands handed out.
test("a renewal that comes back late hands out no token that another process could not prove", async () => {
  const acme = await on.connected();
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  try {
    const { renewal, end } = await renewalWithoutLock(on, acme);
    on.simulator.control.fail({ match: WHO, with: { status: 503, body: "" } });
    const theirs = other.tokens.of(acme.tenantId, acme.copyId).current();
    await expect(theirs).rejects.toMatchObject({ name: "OAuthError", code: "OUTAGE" });
    end();
    await expect(renewal).rejects.toMatchObject({ name: "OAuthError", code: "OUTAGE" });
  } finally {
    await other.close();
  }
});
