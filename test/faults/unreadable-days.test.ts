import type { Fault, Ledger } from "../../simulator";
import { DAY_MS, HOUR_MS } from "../../src/platform/clock";
import { copiedIds, visibleIds } from "../support/copy";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Days, startDays } from "../support/days";
import { connect, dataOf } from "../support/stories";
import { CHANGING, LISTS, type ListName } from "../support/sync-world";

const { DEEP } = process.env;
const TIMEOUT_MS = DEEP ? 1_800_000 : 240_000;

let database: TestDatabase;
let days: Days;
beforeAll(async () => {
  database = await createTestDatabase();
  days = await startDays(database, { deals: 20, dailyTokens: 30_000 });
  await connect(days.service, days.simulator);
  await days.endDay();
}, TIMEOUT_MS);
afterAll(async () => {
  await days.stop();
  await database.drop();
});

const inMs = (ms: number) => new Date(days.clock().getTime() + ms);
const asked = (list: ListName) =>
  days.simulator.log.of("GET", LISTS[list].path).filter(({ query }) => !query.ids).length;
type Failing = Partial<Record<ListName, Fault>>;
const NAMES = ["USERS", "PIPELINES", "STAGES", ...CHANGING] as const;
const entriesOf = (failing: Failing) =>
  NAMES.flatMap((list): [ListName, Fault][] => (failing[list] ? [[list, failing[list]]] : []));
const besideParticipants = ({ ours, operations }: Ledger) =>
  ours - (operations["GET /api/v1/deals/:id/participants"]?.tokens ?? 0);

interface Told {
  trouble: { code: string } | null;
  sync: { nextRunAt: string; gaps: { resource: string; code: string }[] };
}
const STATUS = "{ connection { trouble { code } sync { nextRunAt gaps { resource code } } } }";
const told = async () => dataOf(await days.service.ask<{ connection: Told }>(STATUS)).connection;

/** How often a day asks for such a list at most, what it costs beside participants asked again in turn, and how soon a mended one is read. */
const CASES: [name: string, code: string, failing: Failing, most: number, mostTokens: number, mendedMs: number][] = [
  [
    "rights are missing, and a list is not there",
    "CRM_REFUSED",
    {
      USERS: { kind: "forbidden" },
      NOTES: { kind: "forbidden" },
      ACTIVITIES: { status: 403 },
      PERSONS: { status: 404 },
    },
    8,
    1_500,
    4.5 * HOUR_MS,
  ],
  [
    "no list can be read",
    "CRM_UNAVAILABLE",
    Object.fromEntries(Object.keys(LISTS).map((list) => [list, { status: 500 }])),
    26,
    3_000,
    1.5 * HOUR_MS,
  ],
];

// Seen red: each was asked at every interval for ever, 95 times a day, whatever it cost.
test.each(CASES)(
  "while %s (%s), it is asked for ever more rarely, the second day and the eighth cost no more than an unchanged one, and it is told",
  async (_name, code, failing, most, mostTokens, mendedMs) => {
    const { simulator } = days;
    for (const [list, fault] of entriesOf(failing)) simulator.control.fail({ match: LISTS[list].path, with: fault });
    for (let day = 1; day <= 8; day += 1) {
      if (day > 2 && day < 8 && !DEEP) {
        days.away(DAY_MS);
        continue;
      }
      simulator.log.clear();
      const spent = await days.endDay();
      const { trouble, sync } = await told();
      expect(trouble).toEqual({ code });
      for (const [resource] of entriesOf(failing)) expect(sync.gaps).toContainEqual({ resource, code });
      if (day === 1) continue;
      for (const [list] of entriesOf(failing)) {
        expect([list, asked(list) > 0, asked(list) <= most]).toEqual([list, true, true]);
      }
      expect(besideParticipants(spent)).toBeLessThanOrEqual(mostTokens);
    }
    simulator.control.clearFaults();
    await days.until(inMs(mendedMs));
    expect(await told()).toMatchObject({ trouble: null, sync: { gaps: [] } });
    expect(await copiedIds(database)).toEqual(visibleIds(simulator, simulator.company.stories.singleDeal.ownerId));
  },
  TIMEOUT_MS,
);
