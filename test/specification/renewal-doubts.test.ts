import { CrmStoppedError } from "../../src/crm/errors";
import { OAuthError } from "../../src/crm/oauth";
import {
  endLockSessions,
  lockRow,
  renewalDuringAuthorization,
  renewalWithoutLock,
  waiting,
} from "../support/renewal-encounters";
import { NEEDS_REAUTHORIZATION, refusal, UNCONFIRMED, useRenewals, WORKS } from "../support/renewals";
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
