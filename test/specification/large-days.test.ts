import { DAY_MS } from "../../src/platform/clock";
import { copiedIds, visibleIds } from "../support/copy";
import { createTestDatabase } from "../support/database";
import { startDays } from "../support/days";
import { connect, dataOf, recordMeeting } from "../support/stories";

const { DEEP } = process.env;
const TIMEOUT_MS = DEEP ? 1_800_000 : 120_000;
const DAILY_TOKENS = 30_000;
/** The smaller company has a share so small that its lists take more than that. */
const COMPANY = DEEP ? { deals: 100_000, share: 0.25 } : { deals: 600, share: 0.002 };

interface Gap {
  resource: string;
  code: string;
  count: number;
  expectedBy: string | null;
}
const GAPS = "gaps { resource code count expectedBy }";

test(
  "a company whose lists take more than a day's share has all of them on the first day, and its meetings before what matters less",
  async () => {
    const database = await createTestDatabase();
    const company = { deals: COMPANY.deals, openPercent: 10, dailyTokens: DAILY_TOKENS };
    const days = await startDays(database, { ...company, config: { budgetShare: COMPANY.share } });
    const { service, simulator, clock } = days;
    try {
      const { ownerId, email } = simulator.company.stories.singleDeal;
      await connect(service, simulator);
      const startsAt = new Date(clock().getTime() + 30 * DAY_MS).toISOString();
      const { id } = await recordMeeting(service, [email], { startsAt });
      const first = await days.endDay();
      expect(await copiedIds(database)).toEqual(visibleIds(simulator, ownerId));
      expect(first.ours).toBeGreaterThan(DAILY_TOKENS * COMPANY.share);
      expect(first.ours).toBeLessThanOrEqual(DAILY_TOKENS / 2);
      const [run] = await database.query("SELECT kind, state FROM sync_run ORDER BY queued_at LIMIT 1");
      expect(run).toEqual({ kind: "FULL", state: "SUCCEEDED" });
      const asked = `query ($id: ID!) { briefing(meetingId: $id) { deal { participantsKnown } ${GAPS} } connection { sync { ${GAPS} } } }`;
      interface Answer {
        briefing: { deal: { participantsKnown: boolean } | null; gaps: Gap[] };
        connection: { sync: { gaps: Gap[] } };
      }
      const { briefing, connection } = dataOf(await service.ask<Answer>(asked, { id }));
      expect(briefing).toEqual({ deal: { participantsKnown: true }, gaps: [] });
      const [unread] = connection.sync.gaps.filter(({ code }) => code === "NOT_READ_YET");
      expect(unread?.count).toBeGreaterThan(COMPANY.deals / 2);
      expect(unread?.expectedBy).not.toBeNull();
      expect(simulator.control.ledger().refused).toBe(0);
      if (!DEEP) return;
      expect((await days.endDay()).ours).toBeLessThanOrEqual(DAILY_TOKENS * COMPANY.share);
    } finally {
      await days.stop();
      await database.drop();
    }
  },
  TIMEOUT_MS,
);
