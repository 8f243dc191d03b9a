import { endTrouble, noteTrouble } from "../../src/connections/connection";
import { CrmStoppedError } from "../../src/crm/errors";
import { OAuthError } from "../../src/crm/oauth";
import {
  endLockSessions,
  lockRow,
  loseAuthorization,
  renewalDuringAuthorization,
  renewalWithoutLock,
  waiting,
} from "../support/renewal-encounters";
import { NEEDS_REAUTHORIZATION, REVOKED, refusal, UNCONFIRMED, useRenewals, WORKS } from "../support/renewals";
import { startTokens } from "../support/tokens";

const HOUR = 3_600_000;

const on = useRenewals();

// Seen red with: CONNECTED, with a pair that is used up.
test("a pair that comes after a person's newer one was lost takes nothing back, and leaves the doubt about that", async () => {
  const acme = await on.connected();
  on.later(HOUR);
  const { renewal, end } = await renewalDuringAuthorization(on, acme);
  await endLockSessions(on);
  on.later(HOUR);
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  const { current } = other.tokens.of(acme.tenantId, acme.copyId);
  const calm = on.fail({ kind: "lostAfter" });
  await expect(current()).rejects.toMatchObject({ code: "UNKNOWN" });
  calm();
  await expect(current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  await other.close();
  end();
  await expect(renewal).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(UNCONFIRMED);
});

// Seen red: it was moved by the version that its statement had begun with, and a person had to authorize again.
test("a refusal that comes while the pair that has used the token up is being stored changes nothing", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalWithoutLock(on, acme);
  const locker = await lockRow(on, "credential", acme);
  end();
  await waiting(on, 1);
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  on.fail(refusal(400, "invalid_grant"));
  const theirs = other.tokens.of(acme.tenantId, acme.copyId).current();
  theirs.catch(() => undefined);
  await waiting(on, 2);
  await locker.release();
  await on.use(await renewal);
  expect(await on.shown(acme)).toEqual(WORKS);
  await other.close();
});

// Seen red with an end from any state: it was said to be withdrawn, and noted twice.
test("a second refusal of the token that is used up leaves the doubt, and is no second end", async () => {
  const acme = await on.connected();
  const { renewal, end } = await renewalWithoutLock(on, acme);
  on.simulator.control.revoke(on.userId);
  const other = await startTokens(on.config, () => ({ clock: on.clock }));
  await expect(other.tokens.of(acme.tenantId, acme.copyId).current()).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  await other.close();
  end();
  await expect(renewal).rejects.toMatchObject(NEEDS_REAUTHORIZATION);
  expect(await on.shown(acme)).toEqual(UNCONFIRMED);
  const events = "SELECT code FROM audit_event WHERE tenant_id = $1 AND action = 'NEEDS_REAUTHORIZATION'";
  expect(await on.database.query(events, [acme.tenantId])).toEqual([{ code: "RENEWAL_UNCONFIRMED" }]);
});

// Seen red: the next refusal was said to be the user's, who had withdrawn nothing.
test("the operator's stop leaves the doubt about an earlier renewal", async () => {
  const stop = new OAuthError("OUTAGE", "stopped", { cause: new CrmStoppedError("We look into it.") });
  const refresh = () => Promise.reject(stop);
  const stopped = await startTokens(on.config, () => ({ clock: on.clock, oauth: { refresh } }));
  const acme = await on.connected();
  on.later(HOUR);
  on.fail({ kind: "lostAfter" });
  await expect(acme.source.current()).rejects.toMatchObject({ code: "UNKNOWN" });
  await expect(stopped.tokens.of(acme.tenantId, acme.copyId).current()).rejects.toBe(stop);
  await stopped.close();
  expect(await on.attempts(acme)).toHaveLength(1);
});

// Seen red: it was told as ended while a page was still to come.
test("an authorization ends behind the page that is being written", async () => {
  const acme = await on.connected();
  const page = await lockRow(on, "synced_copy", acme);
  const ended = loseAuthorization(on, acme);
  await waiting(on, 1);
  expect(await on.shown(acme)).toEqual(WORKS);
  await page.release();
  await ended;
  expect(await on.shown(acme)).toEqual(REVOKED);
});

// As of a run whose page was refused for want of tokens while another call was refused the grant.
test("trouble that comes after the authorization has ended is none of it, nor is that of an earlier copy", async () => {
  const acme = await on.connected();
  const tenant = on.access.database.tenant(acme.tenantId);
  const note = (copyId: number) =>
    tenant.transaction((scope) => noteTrouble(scope, copyId, { code: "RATE_LIMITED", message: "Later." }, on.clock()));
  await note(acme.copyId - 1);
  expect(await on.shown(acme)).toEqual(WORKS);
  await note(acme.copyId);
  // Planted and seen red: what an earlier copy's last run had done without was over.
  await tenant.transaction((scope) => endTrouble(scope, acme.copyId - 1));
  expect(await on.shown(acme)).toMatchObject({ trouble: { code: "RATE_LIMITED" } });
  await loseAuthorization(on, acme);
  await note(acme.copyId);
  expect(await on.shown(acme)).toEqual(REVOKED);
});
