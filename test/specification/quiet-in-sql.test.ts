import fc from "fast-check";
import type { CopyFacts, DealFacts, QuietSignal } from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { quietCopy, silenceOf } from "../../src/briefing/quiet/silence-sql";
import { Database } from "../../src/database/database";
import { DAY_MS } from "../../src/platform/clock";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { copyFacts, dealFacts, NOW, past } from "../support/quiet-facts";
import { type OurWrites, QuietRows, WRITES_APART_MS } from "../support/quiet-rows";

const COPIES = process.env.DEEP ? 200 : 8;
const DEALS = 60;
const now = new Date(NOW);
let database: TestDatabase;
let copies = 0;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

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
function stored({ facts, ours }: Case, index: number, { hasMail }: CopyFacts): Case {
  const apart = (at: number) => facts.updatedAt === null || at > facts.updatedAt + WRITES_APART_MS;
  return {
    facts: {
      ...facts,
      dealId: 1_000_000 + index,
      contacts: facts.contacts.filter(({ kind }) => hasMail || !kind.endsWith("MAIL")),
    },
    ours: { notes: ours.notes.filter(({ at }) => apart(at)), fields: ours.fields.filter(apart) },
  };
}

async function store(copy: CopyFacts, cases: readonly Case[]) {
  const copyId = ++copies;
  const tenantId = await database.tenantId(`tenant-${copyId}`);
  const rows = new QuietRows(tenantId, copyId, copy);
  for (const { facts, ours } of cases) rows.deal(facts, ours);
  await rows.insert(database);
  await database.query("ANALYZE");
  return { ...new Database(database.dataSource).tenant(tenantId), copyId };
}

const inSql = (tenantId: number, copyId: number) =>
  database.query<{ crm_id: number; verdict: string; quiet_since: Date | null }>(
    `WITH ${quietCopy} SELECT d.crm_id, s.verdict, s.quiet_since
     FROM deal d CROSS JOIN quiet_copy CROSS JOIN LATERAL (${silenceOf("d", "$3::timestamptz")}) s WHERE d.tenant_id = $1 AND d.copy_id = $2`,
    [tenantId, copyId, now],
  );

/** Every sixth copy is stale. */
const LONG_AGO = { readAt: NOW - 2 * DAY_MS, asOf: NOW - 2 * DAY_MS };

/** All but which of two records of one instant is shown. */
const comparable = ({ reasons, ...signal }: QuietSignal) => ({
  ...signal,
  reasons: reasons.map(({ evidence, ...reason }) => reason),
});

test("all facts, those read in one statement, and the verdict in SQL agree; our own writes change nothing", async () => {
  const verdicts = new Set<string>();
  const whole = fc.tuple(copyFacts, fc.array(oneDeal, { minLength: DEALS, maxLength: DEALS }));
  await fc.assert(
    fc.asyncProperty(whole, async ([drawnCopy, drawn]) => {
      const copy = copies % 6 === 5 ? { ...drawnCopy, ...LONG_AGO } : drawnCopy;
      const cases = drawn.map((one, index) => stored(one, index, copy));
      const scope = await store(copy, cases);
      const ids = cases.map(({ facts }) => facts.dealId);
      const read = await readQuietFacts(scope, ids, now);
      expect(read.copy).toEqual(copy);
      const sql = new Map((await inSql(scope.tenantId, scope.copyId)).map((row) => [row.crm_id, row]));
      for (const { facts } of cases) {
        const expected = judge({ ...facts, inStageSince: facts.inStageSince ?? facts.addedAt }, copy, now);
        const deal = read.deals.find(({ dealId }) => dealId === facts.dealId);
        if (!deal) throw new Error("the deal was not read");
        expect(comparable(judge(deal, read.copy, now))).toEqual(comparable(expected));
        expect(sql.get(facts.dealId)).toEqual({
          crm_id: facts.dealId,
          verdict: expected.verdict,
          quiet_since: expected.quietSince,
        });
        verdicts.add(expected.verdict);
      }
    }),
    { numRuns: COPIES, endOnFailure: true },
  );
  expect([...verdicts].sort()).toEqual(["ACTIVE", "COOLING", "GHOSTED", "QUIET", "UNKNOWN"]);
});
