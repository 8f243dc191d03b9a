import type { Fault } from "../../simulator";
import { RenewalHeldUpError } from "../../src/connections/renewal";
import { CrmStoppedError } from "../../src/crm/errors";
import { CrmHttp } from "../../src/crm/http";
import { NEEDS_REAUTHORIZATION, REVOKED, refusal, UNCONFIRMED, useRenewals, WORKS } from "../support/renewals";
import { startTokens } from "../support/tokens";

// Seen red with: renewing at 58 or at 60 minutes; an age that counts from the answer; a lost old refresh token;
// invalid_grant under 500 or 403 taken for a revocation; trouble that a success does not end, or whose since moves;
// an attempt that stays open after a settled failure; asking on while re-authorization is needed.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const on = useRenewals();

test("an access token is used while it is under 59 minutes old, and renewed at 59", async () => {
  const acme = await on.connected();
  const first = (await acme.source.current()).reveal();
  on.later(59 * MINUTE - 1);
  expect((await acme.source.current()).reveal()).toBe(first);
  expect(on.asked()).toBe(0);
  on.later(1);
  const renewed = await acme.source.current();
  expect(renewed.reveal()).not.toBe(first);
  await on.use(renewed);
  expect(on.simulator.log.of("POST", "/oauth/token")).toMatchObject([{ grantType: "refresh_token", status: 200 }]);
});

test("the 59 minutes count from when the request was sent, not from its answer", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const sentAt = on.clock();
  const end = on.fail({ kind: "hang" });
  const renewal = acme.source.current();
  await on.isSent();
  on.later(20 * MINUTE);
  end();
  // Who waited for so long may have lost the lock: the pair stands, and the next need asks whose it is.
  await expect(renewal).rejects.toThrow(RenewalHeldUpError);
  expect((await on.stored(acme)).accessTokenAskedAt).toEqual(sentAt);
  on.later(39 * MINUTE);
  await acme.source.current();
  expect(on.asked()).toBe(2);
});

test("the new pair is stored sealed as the next version, and both of its tokens work", async () => {
  const acme = await on.connected();
  const old = await on.stored(acme);
  on.later(HOUR);
  const handedOut = await acme.source.current();
  const stored = await on.stored(acme);
  expect(stored.version).toBe(old.version + 1);
  expect(stored.accessToken.reveal()).toBe(handedOut.reveal());
  expect(stored.refreshToken.reveal()).not.toBe(old.refreshToken.reveal());
  const [row] = await on.database.query<{ bytes: Buffer }>(
    "SELECT access_token || refresh_token AS bytes FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [acme.tenant],
  );
  for (const plain of ["v1u:", handedOut.reveal(), stored.refreshToken.reveal()]) {
    expect(row?.bytes.includes(plain)).toBe(false);
  }
  on.later(HOUR);
  await on.use(await acme.source.current());
});

test("an answer without a refresh token keeps the old one", async () => {
  const acme = await on.connected();
  const old = await on.stored(acme);
  on.later(HOUR);
  on.fail({ status: 200, body: { access_token: "v1u:alone", token_type: "bearer", expires_in: "3600" } });
  on.simulator.control.fail({ match: "/api/v1/users/me", with: on.sameUser() });
  expect((await acme.source.current()).reveal()).toBe("v1u:alone");
  on.simulator.control.clearFaults();
  const stored = await on.stored(acme);
  expect([stored.version, stored.refreshToken.reveal()]).toEqual([old.version + 1, old.refreshToken.reveal()]);
  on.later(HOUR);
  await on.use(await acme.source.current());
});

const WARN = 40;
const ERROR = 50;

test.each<[what: string, fault: Fault, trouble: string, level: number]>([
  ["cuts the connection", { kind: "reset" }, "CRM_UNAVAILABLE", WARN],
  ["answers 408", { status: 408, body: "" }, "CRM_UNAVAILABLE", WARN],
  ["answers 429", { kind: "throttle" }, "CRM_UNAVAILABLE", WARN],
  ["answers 500", { status: 500, body: "" }, "CRM_UNAVAILABLE", WARN],
  ["answers 503 with a page", { kind: "html", status: 503 }, "CRM_UNAVAILABLE", WARN],
  ["answers 403 with a page", { kind: "html" }, "CRM_UNAVAILABLE", WARN],
  ["answers 200 with a page", { kind: "html", status: 200 }, "CRM_UNAVAILABLE", WARN],
  ["answers 200 with garbage", { kind: "garbage" }, "CRM_UNAVAILABLE", WARN],
  ["answers 200 with null", { kind: "null" }, "CRM_UNAVAILABLE", WARN],
  ["says invalid_grant under 500", refusal(500, "invalid_grant"), "CRM_UNAVAILABLE", WARN],
  ["says invalid_grant under 403", refusal(403, "invalid_grant"), "CRM_UNAVAILABLE", WARN],
  ["says what nobody knows", refusal(400, "slow_down"), "CRM_UNAVAILABLE", WARN],
  ["says invalid_client", refusal(400, "invalid_client"), "SERVICE_MISCONFIGURED", ERROR],
  ["says invalid_client under 401", refusal(401, "invalid_client"), "SERVICE_MISCONFIGURED", ERROR],
  ["says unsupported_grant_type", refusal(400, "unsupported_grant_type"), "SERVICE_MISCONFIGURED", ERROR],
  ["is not at its address", { status: 404, body: "" }, "SERVICE_MISCONFIGURED", ERROR],
  ["has moved", { status: 302, headers: { location: "/" }, body: "" }, "SERVICE_MISCONFIGURED", ERROR],
])("when the token endpoint %s, the CRM stays connected with trouble and the next need asks again", async (...row) => {
  const [, fault, code, level] = row;
  const acme = await on.connected();
  const old = await on.stored(acme);
  on.later(HOUR);
  on.fail(fault);
  await expect(acme.source.current()).rejects.toMatchObject({ name: "OAuthError" });
  expect(on.asked()).toBe(1);
  const seen = { since: on.clock().toISOString(), lastSeenAt: on.clock().toISOString() };
  const trouble = { code, message: expect.stringMatching(/^The .+\.$/), ...seen };
  expect(await on.shown(acme)).toEqual({ ...WORKS, trouble });
  expect((await on.stored(acme)).version).toBe(old.version);
  expect(on.logged.map((line) => line.level)).toEqual([level]);
  expect(JSON.stringify(on.logged)).not.toContain(old.refreshToken.reveal());
  on.simulator.control.clearFaults();
  await on.use(await acme.source.current());
  expect(on.asked()).toBe(2);
  expect(await on.shown(acme)).toEqual(WORKS);
});

test("a CRM that cannot be reached is trouble that ends with the next renewal", async () => {
  const nowhere = { ...on.config, crm: { ...on.config.crm, authUrl: "http://127.0.0.1:9" } };
  const cutOff = await startTokens(nowhere, () => ({ clock: on.clock }));
  try {
    const acme = await on.connected(cutOff);
    on.later(HOUR);
    await expect(acme.source.current()).rejects.toMatchObject({ name: "OAuthError" });
    expect(await on.shown(acme)).toMatchObject({ ...WORKS, trouble: { code: "CRM_UNAVAILABLE" } });
    await on.access.tokens.of(acme.tenantId, acme.copyId).current();
    expect(await on.shown(acme)).toEqual(WORKS);
  } finally {
    await cutOff.close();
  }
});

test("trouble of one kind keeps its since while lastSeenAt moves; another kind begins anew", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const meet = async (fault: Fault) => {
    const end = on.fail(fault);
    await expect(acme.source.current()).rejects.toThrow();
    end();
    return on.clock().toISOString();
  };
  const first = await meet({ status: 503, body: "" });
  on.later(30_000);
  const second = await meet({ kind: "throttle" });
  expect((await on.shown(acme)).trouble).toMatchObject({ code: "CRM_UNAVAILABLE", since: first, lastSeenAt: second });
  on.later(30_000);
  const third = await meet(refusal(401, "invalid_client"));
  expect((await on.shown(acme)).trouble).toMatchObject({
    code: "SERVICE_MISCONFIGURED",
    since: third,
    lastSeenAt: third,
  });
  await acme.source.current();
  expect(await on.shown(acme)).toEqual(WORKS);
});

test("a revoked grant needs re-authorization at once, and after that no need reaches the CRM", async () => {
  const acme = await on.connected();
  const { accessToken } = await on.stored(acme);
  on.simulator.control.revoke(on.userId);
  await expect(on.api(acme.source).currentUser()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(on.asked()).toBe(1);
  expect(await on.shown(acme)).toEqual(REVOKED);
  expect(await on.attempts(acme)).toEqual([]);
  on.simulator.log.clear();
  on.later(HOUR);
  await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  await expect(acme.source.renewed(accessToken)).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  await expect(on.api(acme.source).currentUser()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(on.simulator.log.all()).toEqual([]);
});

test.each<[what: string, fault: Fault]>([
  ["lost after the CRM had acted", { kind: "lostAfter" }],
  ["cut in its middle", { kind: "cut" }],
])("a refresh token that was used up by an answer %s needs re-authorization, as unconfirmed", async (_what, fault) => {
  const acme = await on.connected();
  on.later(HOUR);
  const end = on.fail(fault);
  await expect(acme.source.current()).rejects.toMatchObject({ code: "UNKNOWN" });
  end();
  await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(UNCONFIRMED);
  await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(on.asked()).toBe(2);
});

test.each<[what: string, before: Fault[], reason: object]>([
  ["after a refusal that used nothing up", [{ kind: "throttle" }], REVOKED],
  ["after our own misconfiguration", [refusal(400, "invalid_client")], REVOKED],
  ["after a server error", [{ status: 502, body: "" }], UNCONFIRMED],
  ["after a server error and then a refusal", [{ status: 502, body: "" }, { kind: "throttle" }], UNCONFIRMED],
])("%s, invalid_grant says whether it may be the lost answer's fault", async (_what, before, expected) => {
  const acme = await on.connected();
  on.later(HOUR);
  for (const fault of before) {
    const end = on.fail(fault);
    await expect(acme.source.current()).rejects.toMatchObject({ name: "OAuthError" });
    end();
  }
  on.simulator.control.revoke(on.userId);
  await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(expected);
});

test("a renewal that was begun with an earlier pair puts no doubt on the present one", async () => {
  const acme = await on.connected();
  await on.database.query("INSERT INTO renewal_attempt VALUES ($1, $2, 0, now())", [acme.tenantId, acme.copyId]);
  on.simulator.control.revoke(on.userId);
  await expect(on.api(acme.source).currentUser()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(REVOKED);
});

// Seen red: the stop took the doubt away, and an admin was told that somebody had withdrawn the access in the CRM.
test("a stop between a lost renewal and the next one leaves the doubt", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const end = on.fail({ kind: "lostAfter" });
  await expect(acme.source.current()).rejects.toMatchObject({ code: "UNKNOWN" });
  end();
  const isStopped = new CrmHttp(undefined, undefined, async () => {
    throw new CrmStoppedError("an incident");
  });
  const stopped = await startTokens(on.config, () => ({ clock: on.clock }), isStopped);
  const renewal = stopped.tokens.of(acme.tenantId, acme.copyId).current();
  await expect(renewal).rejects.toMatchObject({ cause: { reason: "an incident" } });
  await stopped.close();
  await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(UNCONFIRMED);
});

test("a renewal that succeeds after a lost one leaves no doubt behind", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const end = on.fail({ kind: "reset" });
  await expect(acme.source.current()).rejects.toMatchObject({ code: "UNKNOWN" });
  end();
  await acme.source.current();
  on.simulator.control.revoke(on.userId);
  on.later(HOUR);
  await expect(acme.source.current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(REVOKED);
});
