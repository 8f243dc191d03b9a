import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { lookedAtBriefly } from "../../src/connections/access-tokens";
import { CONNECTION_CHANGED, Notifications } from "../../src/database/between-processes";
import type { Secret } from "../../src/platform/keyring";
import { disconnect } from "../support/renewal-encounters";
import { type Connected, NOT_CONNECTED, useRenewals } from "../support/renewals";
import { until } from "../support/stories";

// Seen red with: a look for each request; one that is kept without end, through a freeze, after a change was told, while it was under way,
// after a failure, or after a renewal; subscriptions that stay. That a run goes by what is told: `faults/disconnect-any-moment`.

const on = useRenewals();

/** Well over the tenth of a second that one look serves. */
const LATER_MS = 150;
const EACH_MS = 100;

/** As a run asks, with a count of its looks; `tell` is a change of the connection, told. */
function asRun({ tenantId, copyId }: Connected) {
  const told = new Set<() => void>();
  const tokens = on.access.tokens.of(tenantId, copyId);
  const count = { looks: 0 };
  const counted = {
    ...tokens,
    current: () => {
      count.looks += 1;
      return tokens.current();
    },
  };
  const source = lookedAtBriefly(counted, (forget) => {
    told.add(forget);
    return () => told.delete(forget);
  });
  return { source, count, told, tell: () => told.forEach((forget) => void forget()) };
}

test("one look at the credential serves a tenth of a second of a run's requests", async () => {
  const { source, count } = asRun(await on.connected());
  const began = performance.now();
  const tokens: Secret[] = [];
  for (let request = 0; request < 500; request += 1) tokens.push(await source.current());
  expect(count.looks).toBeLessThanOrEqual(1 + (performance.now() - began) / EACH_MS);
  expect(new Set(tokens.map((token) => token.reveal())).size).toBe(1);
  const { looks } = count;
  await sleep(LATER_MS);
  await source.current();
  expect(count.looks).toBe(looks + 1);
});

test("a look that a freeze has made old serves no request, be its timer not heard yet", async () => {
  const { source, count } = asRun(await on.connected());
  await source.current();
  const frozenAt = performance.now();
  while (performance.now() - frozenAt < LATER_MS);
  await source.current();
  expect(count.looks).toBe(2);
});

test("a change that is told ends it, also while it is under way, and nothing of it stays behind", async () => {
  const { source, count, told, tell } = asRun(await on.connected());
  await source.current();
  tell();
  const underWay = source.current();
  tell();
  await Promise.all([underWay, source.current()]);
  expect(count.looks).toBe(3);
  await until("no look is kept", async () => told.size === 0);
});

test("a look that failed serves nobody else, and a renewal is seen at once", async () => {
  const acme = await on.connected();
  const { source, count } = asRun(acme);
  const old = await source.current();
  const renewed = await source.renewed(old);
  expect(renewed.reveal()).not.toBe(old.reveal());
  expect((await source.current()).reveal()).toBe(renewed.reveal());
  await disconnect(on, acme);
  const { looks } = count;
  await until("the look is over", () =>
    source.current().then(
      () => false,
      () => true,
    ),
  );
  await expect(source.current()).rejects.toMatchObject(NOT_CONNECTED);
  expect(count.looks).toBeGreaterThanOrEqual(looks + 2);
});

test("a disconnect is told to its own tenant's runs, in every process, and to no other's", async () => {
  const acme = await on.connected();
  const other = await on.connected();
  const notifications = new Notifications(on.database.url, pino({ level: "silent" }));
  await notifications.start();
  try {
    const heard: string[] = [];
    notifications.subscribe(CONNECTION_CHANGED, acme.tenantId, () => heard.push("acme"));
    notifications.subscribe(CONNECTION_CHANGED, other.tenantId, () => heard.push("other"));
    await disconnect(on, acme);
    await until("it is told", async () => heard.length > 0);
    expect(heard).toEqual(["acme"]);
  } finally {
    await notifications.stop();
  }
});
