import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../../simulator";
import { RenewalHeldUpError } from "../../src/connections/renewal";
import { CrmError } from "../../src/crm/errors";
import { CrmHttp } from "../../src/crm/http";
import { OAuthError } from "../../src/crm/oauth";
import { inWork, limitWork } from "../../src/platform/work";
import { withTransactions } from "../support/database";
import {
  disconnect,
  endLockSessions,
  lockRow,
  loseAuthorization,
  renewalDuringAuthorization,
  renewalHeldBack,
  renewalInFlight,
  renewalWithoutLock,
  waiting,
} from "../support/renewal-encounters";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED, refusal, UNCONFIRMED, useRenewals, WORKS } from "../support/renewals";
import { connect, until } from "../support/stories";
import { copyOf, startTokens } from "../support/tokens";

const HOUR = 3_600_000;
const MINUTE = 60_000;

const on = useRenewals();

test.each<[what: string, answer: Fault | null, table: string, failure: string]>([
  ["a new pair", null, "credential", "ConnectionGoneError"],
  ["a refusal", refusal(400, "invalid_grant"), "connection", "ConnectionGoneError"],
  ["trouble", refusal(400, "invalid_client"), "connection", "OAuthError"],
])("disconnecting in the instant in which %s is stored succeeds, and nothing is left", async (...row) => {
  const [, answer, table, failure] = row;
  const acme = await on.connected();
  on.later(HOUR);
  if (answer) on.fail(answer);
  const locker = await lockRow(on, table, acme);
  const disconnected = disconnect(on, acme);
  await waiting(on, 1);
  const renewal = acme.source.current();
  renewal.catch(() => undefined);
  await waiting(on, 2);
  await locker.release();
  await disconnected;
  await expect(renewal).rejects.toMatchObject({ name: failure });
  expect(await on.shown(acme)).toEqual({ ...WORKS, state: "NOT_CONNECTED" });
  expect(await on.attempts(acme)).toEqual([]);
});

// Seen red: that it had been begun was noted for ever.
test.each<[what: string, answer: Fault | null]>([
  ["a new pair", null],
  ["a refusal", refusal(400, "invalid_grant")],
  ["nothing", { kind: "lostAfter" }],
])("a renewal that a disconnect overtakes as it begins brings %s, and leaves nothing", async (_what, answer) => {
  const acme = await on.connected();
  on.later(HOUR);
  if (answer) on.fail(answer);
  const overtaken = await startTokens(on.config, ({ credentials }) => {
    const read = credentials.read.bind(credentials);
    const overtakenRead = async (...of: Parameters<typeof read>) => {
      const found = await read(...of);
      await disconnect(on, acme);
      return found;
    };
    return { clock: on.clock, credentials: Object.assign(credentials, { read: overtakenRead }) };
  });
  const renewal = overtaken.tokens.of(acme.tenantId, acme.copyId).current();
  await expect(renewal).rejects.toMatchObject({ name: "ConnectionGoneError" });
  await overtaken.close();
  expect([on.asked(), await on.attempts(acme)]).toEqual([1, []]);
});

// Seen red: it stayed for as long as there was the tenant.
test("what a renewal that was killed then has left goes with the next connect", async () => {
  const acme = await on.connected();
  await disconnect(on, acme);
  await on.database.query("INSERT INTO renewal_attempt VALUES ($1, $2, 1, now())", [acme.tenantId, acme.copyId]);
  await connect(on.service, on.simulator, { tenant: acme.tenant });
  expect(await on.attempts(acme)).toEqual([]);
});

test("a lock session that is ended from outside holds up no later renewal", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalInFlight(on, acme);
  await endLockSessions(on);
  await sleep(50);
  end();
  const token = await renewal;
  expect((await acme.source.current()).reveal()).toBe(token.reveal());
  on.later(HOUR);
  await on.use(await acme.source.current());
  expect(on.asked()).toBe(2);
});

test("a pair that comes after a person has authorized anew is dropped, and its callers get the new token", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const { renewal, end } = await renewalDuringAuthorization(on, acme);
  const present = await on.stored(acme);
  end();
  expect((await renewal).reveal()).toBe(present.accessToken.reveal());
});

// Seen red without a look at the copy: each new connection's credential is of version 1.
test.each<[what: string, before: () => void]>([
  ["a pair", () => undefined],
  ["a refusal", () => on.simulator.control.revoke(on.userId)],
])(
  "%s that comes after a disconnect and a new connect changes nothing of the new connection",
  async (_what, before) => {
    const acme = await on.connected();
    on.later(HOUR);
    const { renewal, end } = await renewalHeldBack(on, acme);
    await disconnect(on, acme);
    await connect(on.service, on.simulator, { tenant: acme.tenant });
    const present = { ...acme, copyId: await copyOf(on.database, acme.tenant) };
    const { version, accessToken } = await on.stored(present);
    expect(version).toBe(1);
    before();
    end();
    await expect(renewal).rejects.toMatchObject(NOT_CONNECTED);
    expect(await on.shown(present)).toEqual(WORKS);
    expect((await on.stored(present)).accessToken.reveal()).toBe(accessToken.reveal());
  },
);

// Seen red: it stayed, with a pair that works, until a person authorized again.
test("a pair that comes after another process was refused the token that it has used up takes that back", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalWithoutLock(on, acme);
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  on.fail(refusal(400, "invalid_grant"));
  await expect(other.tokens.of(acme.tenantId, acme.copyId).current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  await other.close();
  expect(await on.shown(acme)).toEqual(UNCONFIRMED);
  end();
  await on.use(await renewal);
  expect(await on.shown(acme)).toEqual(WORKS);
  const events =
    "SELECT code FROM audit_event WHERE tenant_id = $1 AND action = 'NEEDS_REAUTHORIZATION' ORDER BY at, id";
  expect(await on.database.query(events, [acme.tenantId])).toEqual([
    { code: "RENEWAL_UNCONFIRMED" },
    { code: "TAKEN_BACK" },
  ]);
});

// Seen red: whatever had ended it, the connection worked again.
test("a pair that comes after the grant was withdrawn takes nothing back", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalInFlight(on, acme);
  await loseAuthorization(on, acme);
  end();
  await expect(renewal).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toMatchObject({ state: "NEEDS_REAUTHORIZATION" });
});

// Seen red with: the pair thrown away, and the next need told that somebody has withdrawn the grant.
test("what the CRM has granted is stored also where the caller's time is over by then", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const token = await inWork({}, () => {
    limitWork(() => on.asked() > 0);
    return acme.source.current();
  });
  expect((await on.stored(acme)).accessToken.reveal()).toBe(token.reveal());
});

test("trouble that comes after a person has authorized anew is not of the new pair", async () => {
  let answer = () => {};
  let isAsked = false;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const slow = await startTokens(on.config, () => ({
    clock: on.clock,
    oauth: {
      refresh: async () => {
        isAsked = true;
        await answered;
        throw new OAuthError("OUTAGE", "The CRM's token endpoint answered 429 (OUTAGE).");
      },
    },
  }));
  try {
    const acme = await on.connected(slow);
    on.later(HOUR);
    const renewal = acme.source.current();
    renewal.catch(() => undefined);
    await until("the CRM is asked", async () => isAsked);
    await loseAuthorization(on, acme);
    await connect(on.service, on.simulator, { tenant: acme.tenant });
    answer();
    await renewal.catch(() => undefined);
    expect(await on.shown(acme)).toEqual(WORKS);
  } finally {
    await slow.close();
  }
});

// Planted and seen red: it was sent, though another process may have had the lock by then, and the same token in its hands.
test("a renewal that was held up for half a minute since it asked for its lock is not sent any more", async () => {
  let heldUpMs = 30_000;
  const held = new CrmHttp(undefined, undefined, async () => on.later(heldUpMs));
  const late = await startTokens(on.config, () => ({ clock: on.clock }), held);
  try {
    const acme = await on.connected(late);
    on.later(HOUR);
    await expect(acme.source.current()).rejects.toThrow(RenewalHeldUpError);
    expect(on.asked()).toBe(0);
    heldUpMs -= 1;
    await acme.source.current();
    expect(on.asked()).toBe(1);
  } finally {
    await late.close();
  }
});

// Seen red with trouble of whatever token: a connection that worked said that it did not.
test("that the CRM did not say whose a token is comes too late for a new one", async () => {
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  let calls = 0;
  const silent = new CrmHttp(undefined, undefined, async () => {
    calls += 1;
    if (calls === 1) return;
    await answered;
    throw new CrmError("UNAVAILABLE", "The CRM answered 503.");
  });
  const slow = await startTokens(on.config, () => ({ clock: on.clock }), silent);
  try {
    const acme = await on.connected(slow);
    on.later(HOUR);
    const renewal = acme.source.current();
    renewal.catch(() => undefined);
    await until("the CRM is asked whose it is", async () => calls === 2);
    await loseAuthorization(on, acme);
    await connect(on.service, on.simulator, { tenant: acme.tenant });
    answer();
    await expect(renewal).rejects.toMatchObject({ code: "OUTAGE" });
    expect(await on.shown(acme)).toEqual(WORKS);
  } finally {
    await slow.close();
  }
});

test("a caller whose token is refused is not given that same token by a renewal that it joins", async () => {
  const acme = await on.connected();
  const first = (await on.stored(acme)).accessToken;
  const second = await acme.source.renewed(first);
  const locker = on.database.dataSource.createQueryRunner();
  await locker.startTransaction();
  await locker.query("SELECT pg_advisory_xact_lock(7302519, hashtext($1))", [String(acme.copyId)]);
  const late = acme.source.renewed(first);
  const refused = acme.source.renewed(second);
  await locker.commitTransaction();
  await locker.release();
  expect((await late).reveal()).not.toBe(first.reveal());
  expect((await refused).reveal()).not.toBe(second.reveal());
});

// Seen red with a minute.
test("a pair that came before the database was away for twenty minutes is stored when it is back", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  let minutes = 20;
  const patient = await startTokens(on.config, ({ database }) => ({
    clock: on.clock,
    database: withTransactions(database, (transaction, work) => {
      if (minutes === 0) return transaction(work);
      minutes -= 1;
      on.later(MINUTE);
      throw Object.assign(new Error("connect ECONNREFUSED 127.0.0.1"), { code: "ECONNREFUSED" });
    }),
  }));
  // Its proof is left to the next need: this one's time is over.
  await expect(patient.tokens.of(acme.tenantId, acme.copyId).current()).rejects.toBeInstanceOf(OAuthError);
  await patient.close();
  await on.use(await acme.source.current());
  expect(on.asked()).toBe(1);
}, 30_000);
