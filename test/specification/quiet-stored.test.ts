import { dealOrder, readDeals, summarizeDeals } from "../../src/briefing/lists/deal-list";
import type { ConnectionFacts, DealFacts, QuietSignal } from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { readKeptFacts, readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { judgeByPresentRules } from "../../src/briefing/quiet/rejudging";
import { judgeChanged, judgeDeals, markHolding } from "../../src/briefing/quiet/stored-silence";
import { DAY_MS } from "../../src/platform/clock";
import fc from "../support/properties";
import { copyFactsIn, dealFacts, NOW, past } from "../support/quiet-facts";
import { COPY, HEALTHY, inMail } from "../support/quiet-lines";
import { type OurWrites, QuietRows, WRITES_APART_MS } from "../support/quiet-rows";
import { useDatabase } from "../support/world";

const COPIES = process.env.DEEP ? 350 : 8;
const DEALS = 60;
const now = new Date(NOW);
let copies = 0;

const database = useDatabase();

interface Case {
  facts: DealFacts;
  ours: OurWrites;
}

/** Our notes anywhere, and our fields where they are told apart from what people changed. */
const oneDeal: fc.Arbitrary<Case> = fc.record({
  facts: dealFacts,
  ours: fc.record({
    notes: fc.array(fc.record({ at: past, answered: fc.boolean() }), { maxLength: 2 }),
    fields: fc.array(past, { maxLength: 2 }),
  }),
});

/** As they are stored: whatever has a place of its own in the copy gets the ids and the times that it has there. */
function stored({ facts, ours }: Case, index: number): Case {
  const apart = (at: number) => facts.updatedAt === null || at > facts.updatedAt + WRITES_APART_MS;
  return {
    facts: {
      ...facts,
      dealId: 1_000_000 + index,
      hasMail: facts.contacts.some(({ kind }) => kind.endsWith("MAIL")),
      inStageSince: facts.inStageSince ?? facts.addedAt,
    },
    ours: { notes: ours.notes.filter(({ at }) => apart(at)), fields: ours.fields.filter(apart) },
  };
}

async function store(copy: ConnectionFacts, cases: readonly Case[]) {
  const copyId = ++copies;
  const tenantId = await database.tenantId(`tenant-${copyId}`);
  const rows = new QuietRows(tenantId, copyId, copy);
  for (const { facts, ours } of cases) rows.deal(facts, ours);
  await rows.insert(database);
  await database.query("ANALYZE");
  return { ...database.scope(tenantId), copyId };
}

const storedAt = (tenantId: number, at: number) =>
  database.query<{ deal_id: number; verdict: string; quiet_since: Date | null }>(
    `SELECT deal_id, verdict, quiet_since FROM deal_silence
     WHERE tenant_id = $1 AND holds_from <= $2 AND holds_until > $2 ORDER BY deal_id`,
    [tenantId, new Date(at)],
  );

/** Every sixth copy is stale. */
const LONG_AGO = { readAt: NOW - 2 * DAY_MS, asOf: NOW - 2 * DAY_MS };

/** All but which of two records of one instant is shown. */
const comparable = ({ reasons, ...signal }: QuietSignal) => ({
  ...signal,
  reasons: reasons.map(({ evidence, message, ...reason }) => reason),
});

test("what is stored for a deal says at each later instant what the judge says of all facts; our own writes change nothing", async () => {
  const verdicts = new Set<string>();
  const later = fc.array(fc.integer({ min: 0, max: 90 * DAY_MS }), { minLength: 6, maxLength: 6 });
  const whole = fc.tuple(
    copyFactsIn(["UTC", "Europe/Tallinn", "America/Santiago"]),
    fc.array(oneDeal, { minLength: DEALS, maxLength: DEALS }),
    later,
  );
  await fc.assert(
    fc.asyncProperty(whole, async ([drawnCopy, drawn, instants]) => {
      const { zone } = drawnCopy.rules.calendar;
      const rules = { ...drawnCopy.rules, calendar: { zone, businessDays: false } };
      const copy = { ...drawnCopy, rules, ...(copies % 6 === 5 ? LONG_AGO : {}) };
      const cases = drawn.map(stored);
      const scope = await store(copy, cases);
      const ids = cases.map(({ facts }) => facts.dealId);
      await judgeByPresentRules(scope, now);
      for (const read of [await readQuietFacts(scope, ids, now), await readKeptFacts(scope, ids, now)]) {
        expect(read?.copy).toEqual(copy);
        for (const { facts } of cases) {
          const deal = read?.deals.find(({ dealId }) => dealId === facts.dealId);
          if (!deal) throw new Error("the deal was not read");
          expect(comparable(judge(deal, copy, now))).toEqual(comparable(judge(facts, copy, now)));
        }
      }
      for (const passed of [0, ...instants]) {
        const at = NOW + passed;
        const found = new Map((await storedAt(scope.tenantId, at)).map((row) => [row.deal_id, row]));
        expect(found.size).toBe(DEALS);
        for (const { facts } of cases) {
          const { verdict, quietSince } = judge(facts, { ...copy, readAt: at }, new Date(at));
          expect(found.get(facts.dealId)).toEqual({ deal_id: facts.dealId, verdict, quiet_since: quietSince });
          verdicts.add(verdict);
        }
      }
      // Judged again, later, nothing is left of what was stored before.
      await judgeDeals(scope, ids, new Date(NOW + 40 * DAY_MS));
      expect((await storedAt(scope.tenantId, NOW + 40 * DAY_MS)).length).toBe(DEALS);
      expect((await storedAt(scope.tenantId, NOW + 400 * DAY_MS)).length).toBe(DEALS);
    }),
    { numRuns: COPIES, endOnFailure: true },
  );
  expect([...verdicts].sort()).toEqual(["ACTIVE", "COOLING", "GHOSTED", "QUIET"]);
});

test("a list shows what holds at the instant of its walk, once each, wherever the marks stand: behind it, or moved on since", async () => {
  const instants = fc.array(fc.integer({ min: 0, max: 90 * DAY_MS }), { minLength: 4, maxLength: 4 });
  const drawn = fc.array(oneDeal, { minLength: DEALS, maxLength: DEALS });
  await fc.assert(
    fc.asyncProperty(copyFactsIn(["UTC"]), drawn, instants, async (drawnCopy, deals, passed) => {
      const rules = { ...drawnCopy.rules, calendar: { zone: "UTC", businessDays: false } };
      const copy = { ...drawnCopy, rules, readAt: NOW + 100 * DAY_MS };
      const cases = deals.map(stored);
      const scope = await store(copy, cases);
      await judgeByPresentRules(scope, now);
      const days = [0, ...passed.sort((a, b) => a - b)];
      for (const marked of days) {
        await markHolding(scope, new Date(NOW + marked));
        for (const at of days.map((day) => NOW + day)) {
          for (const verdict of ["ACTIVE", "COOLING", "QUIET", "GHOSTED"] as const) {
            const filter = { verdict: [verdict] };
            const order = dealOrder("QUIET_DAYS_DESC", filter);
            const page = await readDeals(scope, filter, { order, first: 100, after: null }, new Date(at));
            const fits = cases.filter(
              ({ facts }) => judge(facts, { ...copy, readAt: at }, new Date(at)).verdict === verdict,
            );
            const byId = (ids: number[]) => ids.sort((a, b) => a - b);
            expect(byId(page.rows.map(({ crmId }) => crmId))).toEqual(byId(fits.map(({ facts }) => facts.dealId)));
          }
        }
      }
      // Long after the last read nothing is known of the open ones; they are listed and counted all the same.
      const unknown = { verdict: ["UNKNOWN" as const], snoozed: false };
      const open = cases.filter(({ facts }) => facts.isOpen).length;
      for (const name of ["UPDATED_AT_DESC", "QUIET_DAYS_DESC"] as const) {
        const order = dealOrder(name, unknown);
        const late = new Date(NOW + 200 * DAY_MS);
        for (const filter of [unknown, { verdict: unknown.verdict }]) {
          expect((await readDeals(scope, filter, { order, first: 100, after: null }, late)).rows.length).toBe(open);
          expect((await summarizeDeals(scope, filter, { order, after: null }, late))?.count).toBe(open);
        }
      }
      const marks = "SELECT 1 FROM deal_silence WHERE tenant_id = $1 AND is_listed";
      expect((await database.query(marks, [scope.tenantId])).length).toBe(DEALS);
    }),
    { numRuns: 2, endOnFailure: true },
  );
});

// Seen red: the phase that came next kept the value and the owner of when the deal was judged.
test("a deal that has another value and owner, and is quiet later, is found and summed by those, also where its mark is behind", async () => {
  const facts = { ...HEALTHY, planned: [], contacts: [inMail(NOW - 9 * DAY_MS)] };
  const quietAt = new Date(NOW + 6 * DAY_MS);
  const scope = await store({ ...COPY, readAt: quietAt.getTime() }, [{ facts, ours: { notes: [], fields: [] } }]);
  await judgeByPresentRules(scope, now);
  const becomes = "UPDATE deal SET owner_id = 5, value = 1000, currency = 'EUR' WHERE tenant_id = $1";
  await database.query(becomes, [scope.tenantId]);
  await judgeChanged(scope, "DEALS", [facts.dealId], [], now);
  const filter = { verdict: ["QUIET" as const], ownerId: 5, currency: "EUR", minValue: "1000" };
  const order = dealOrder("VALUE_DESC", filter);
  for (const marked of [now, quietAt]) {
    await markHolding(scope, marked);
    const { rows } = await readDeals(scope, filter, { order, first: 10, after: null }, quietAt);
    expect(rows.map(({ crmId }) => crmId)).toEqual([facts.dealId]);
    expect(await summarizeDeals(scope, filter, { order, after: null }, quietAt)).toEqual({
      count: 1,
      totals: [{ amount: "1000", currency: "EUR" }],
    });
  }
});
