import { enqueueRun } from "../../src/sync/schedule-rows";
import { createTestDatabase } from "../support/database";
import {
  disconnect,
  lockRow,
  renewalDuringAuthorization,
  renewalInFlight,
  waiting,
} from "../support/renewal-encounters";
import { NOT_CONNECTED, REVOKED, useRenewals, WORKS } from "../support/renewals";
import { startService } from "../support/service";
import { connect, dataOf, type EndedRun, syncEnds } from "../support/stories";
import { copyOf } from "../support/tokens";

// Seen red with: the attempt row written after the request, or left open by a success; the token handed out before the
// commit; no single flight; no second look under the lock; no version check on a refusal, or on a pair.

const HOUR = 3_600_000;

const on = useRenewals();

test("that a renewal begins is committed before its request is sent, and is gone with its answer", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalInFlight(on, acme);
  expect(await on.attempts(acme)).toEqual([{ version: 1 }]);
  end();
  await renewal;
  expect(await on.attempts(acme)).toEqual([]);
});

test("a new token is handed out only once it is committed", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const locker = await lockRow(on, "credential", acme);
  let handedOut = false;
  const renewal = acme.source.current().finally(() => {
    handedOut = true;
  });
  await waiting(on, 1);
  expect([on.simulator.log.of("POST", "/oauth/token")[0]?.status, handedOut]).toEqual([200, false]);
  await locker.release();
  expect((await renewal).reveal()).toBe((await on.stored(acme)).accessToken.reveal());
});

test("fifty callers of one connection ask the CRM once, and hold up no other connection", async () => {
  const [acme, other] = [await on.connected(), await on.connected()];
  on.later(HOUR);
  const end = on.simulator.control.fail({ match: "/oauth/token", times: 1, with: { kind: "hang" } });
  const { accessToken } = await on.stored(acme);
  const callers = Array.from({ length: 50 }, (_, caller) =>
    caller % 2 ? acme.source.current() : acme.source.renewed(accessToken),
  );
  await on.isSent();
  await on.use(await other.source.current());
  end();
  const tokens = await Promise.all(callers);
  expect(new Set(tokens.map((token) => token.reveal())).size).toBe(1);
  expect(on.asked()).toBe(2);
});

test("fifty callers of a failing renewal fail together after one request", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const end = on.fail({ kind: "hang" });
  const callers = Array.from({ length: 50 }, () => acme.source.current());
  await on.isSent();
  on.fail({ status: 503, body: "" });
  on.simulator.control.revoke(on.userId);
  end();
  const outcomes = await Promise.allSettled(callers);
  expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(50);
  expect(on.asked()).toBe(1);
});

test("a call that the CRM answers with 401 is renewed once and repeated once", async () => {
  const acme = await on.connected();
  on.simulator.control.killAccessTokens(on.userId);
  expect((await on.api(acme.source).users()).records).toContainEqual(expect.objectContaining({ id: on.userId }));
  expect(on.simulator.log.all().map(({ path, status }) => [path, status])).toEqual([
    ["/api/v1/users", 401],
    ["/oauth/token", 200],
    ["/api/v1/users/me", 200],
    ["/api/v1/users", 200],
  ]);
});

test("a call that is answered with 401 again after the renewal fails, without a third try", async () => {
  const acme = await on.connected();
  on.simulator.control.fail({ match: "/api/v1/users/me", with: { status: 401, body: { success: false } } });
  await expect(on.api(acme.source).currentUser()).rejects.toMatchObject({ name: "CrmError", code: "UNAUTHORIZED" });
  expect(on.simulator.log.all().map(({ path }) => path)).toEqual([
    "/api/v1/users/me",
    "/oauth/token",
    "/api/v1/users/me",
  ]);
  expect(await on.shown(acme)).toEqual(WORKS);
});

// Planted and seen red: each call of a list that refuses its user cost a renewal, or was said to be refused for the token; and no later token was renewed.
test("what an address refuses to a token that was renewed for it costs no second renewal, and a later token its own", async () => {
  const acme = await on.connected();
  const [api, { control, log }] = [on.api(acme.source), on.simulator];
  const refuses = control.fail({ match: "/api/v2/persons", with: { status: 401, body: { success: false } } });
  for (let calls = 0; calls < 3; calls += 1)
    await expect(api.persons({ cursor: null })).rejects.toMatchObject({ code: "REFUSED" });
  expect([on.asked(), log.of("GET", "/api/v2/persons").length]).toEqual([1, 4]);
  refuses();
  on.later(HOUR);
  await api.users();
  control.killAccessTokens(on.userId);
  await api.persons({ cursor: null });
  expect(on.asked()).toBe(3);
  on.later(HOUR);
  await api.users();
  for (const fault of [{ times: 1, with: { status: 401, body: { success: false } } }, { with: { status: 500 } }])
    control.fail({ match: "/api/v2/persons", ...fault });
  await expect(api.persons({ cursor: null })).rejects.toMatchObject({ code: "UNAVAILABLE" });
});

// Planted and seen red: the note was said to be refused for itself.
test("a write that is answered with 401 is no refusal of what is written, were its token renewed just before", async () => {
  const acme = await on.connected();
  const [api, { control, company }] = [on.api(acme.source), on.simulator];
  const { dealId: id } = company.stories.singleDeal;
  for (const call of [() => api.users(), () => api.createNote({ entity: "DEAL", id }, "<p>Said once</p>")]) {
    control.killAccessTokens(on.userId);
    await call();
  }
  expect(on.asked()).toBe(2);
  expect(control.notesOf("deal", id).filter(({ content }) => content.includes("Said once"))).toHaveLength(1);
});

// Seen red with any 401: each page of a proxy that blocks cost a renewal and a second call.
test("a page of a proxy under 401 says nothing of the token: nothing is renewed or repeated", async () => {
  const acme = await on.connected();
  on.simulator.control.fail({ match: "/api/v1/users", with: { kind: "html", status: 401 } });
  await expect(on.api(acme.source).users()).rejects.toMatchObject({ name: "CrmError", code: "UNAVAILABLE" });
  expect(on.simulator.log.all().map(({ path }) => path)).toEqual(["/api/v1/users"]);
});

test("a refused token that another process has replaced meanwhile is not renewed again", async () => {
  const acme = await on.connected();
  const { accessToken } = await on.stored(acme);
  const renewed = await acme.source.renewed(accessToken);
  expect((await acme.source.renewed(accessToken)).reveal()).toBe(renewed.reveal());
  expect(on.asked()).toBe(1);
});

test("a refusal that comes after a person has authorized anew changes nothing: the new token is used", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  on.simulator.control.revoke(on.userId);
  const { renewal, end } = await renewalDuringAuthorization(on, acme);
  end();
  const present = await on.stored(acme);
  expect((await renewal).reveal()).toBe(present.accessToken.reveal());
  await on.use(present.accessToken);
  expect(await on.shown(acme)).toEqual(WORKS);
});

test("a pair that comes after a person has authorized anew is dropped: the new pair stays", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const { renewal, end } = await renewalDuringAuthorization(on, acme);
  const present = await on.stored(acme);
  end();
  await renewal.catch(() => undefined);
  expect((await on.stored(acme)).refreshToken.reveal()).toBe(present.refreshToken.reveal());
  expect(await on.shown(acme)).toEqual(WORKS);
});

test("disconnecting does not wait for a renewal, and its answer revives nothing", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalInFlight(on, acme);
  await disconnect(on, acme);
  end();
  await expect(renewal).rejects.toMatchObject(NOT_CONNECTED);
  expect(await on.shown(acme)).toEqual({ ...WORKS, state: "NOT_CONNECTED" });
  expect(
    await on.database.query(
      "SELECT 1 FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
      [acme.tenant],
    ),
  ).toEqual([]);
  expect(await on.attempts(acme)).toEqual([]);
  await expect(acme.source.current()).rejects.toMatchObject(NOT_CONNECTED);
  expect(on.asked()).toBe(1);
});

/** Runs syncs of a tenant of its own with a worker; each begins with an empty log of the CRM. */
async function withWorker(use: (run: () => Promise<EndedRun>, state: () => Promise<object>) => Promise<void>) {
  const database = await createTestDatabase();
  const { clock, simulator } = on;
  const worker = await startService(simulator, database, { clock });
  const tenant = "worker";
  try {
    await connect(worker, simulator, { tenant });
    await syncEnds(worker, { tenant });
    const copyId = await copyOf(database, tenant);
    const run = async () => {
      on.later(1);
      simulator.log.clear();
      await enqueueRun(database.scope(await database.tenantId(tenant)), copyId, "FULL", clock());
      return syncEnds(worker, { tenant });
    };
    const query = "{ connection { state reauthorizationReason trouble { code } } }";
    await use(run, async () => dataOf(await worker.ask<{ connection: object }>(query, {}, { tenant })).connection);
  } finally {
    await worker.stop();
    await database.drop();
  }
}

test("a sync run that meets a revoked grant asks for a token once, and a later run sends nothing at all", async () => {
  await withWorker(async (run, state) => {
    on.later(HOUR);
    on.simulator.control.revoke(on.userId);
    expect(await run()).toMatchObject({ state: "FAILED", error: { code: "NEEDS_REAUTHORIZATION" } });
    expect(on.simulator.log.all().map(({ path }) => path)).toEqual(["/oauth/token"]);
    expect(await state()).toEqual(REVOKED);
    expect(await run()).toMatchObject({ state: "FAILED", error: { code: "NEEDS_REAUTHORIZATION" } });
    expect(on.simulator.log.all()).toEqual([]);
  });
});

test("a sync run goes through an hour's end and a refused token, with one renewal for each", async () => {
  await withWorker(async (run, state) => {
    on.later(HOUR);
    expect((await run()).state).toBe("SUCCEEDED");
    expect(on.asked()).toBe(1);
    on.simulator.control.killAccessTokens(on.userId);
    expect((await run()).state).toBe("SUCCEEDED");
    expect(on.asked()).toBe(1);
    expect(await state()).toEqual(WORKS);
  });
});

test("a list that refuses even a renewed token fails the run as refused, and the CRM stays connected", async () => {
  await withWorker(async (run, state) => {
    on.simulator.control.fail({ match: "/api/v2/persons", with: { status: 401, body: { success: false } } });
    expect(await run()).toMatchObject({ state: "FAILED", error: { code: "CRM_REFUSED" } });
    expect([on.asked(), on.simulator.log.of("GET", "/api/v2/persons").length]).toEqual([1, 2]);
    expect(await state()).toEqual({ ...WORKS, trouble: { code: "CRM_REFUSED" } });
  });
});
