import "reflect-metadata";
import { matchShown } from "../../src/briefing/meeting-rows";
import type { MeetingMatchRow } from "../../src/entities/meeting";

test("of many candidates the matched one comes first, so that a bounded list never leaves it out", () => {
  const candidates = Array.from({ length: 80 }, (_, index) => ({ dealId: index + 1, reason: `reason ${index + 1}` }));
  const row = { ...{ status: "MATCHED", rule: "CHOSEN", reason: "A user chose this deal.", dealId: 70 }, candidates };
  const shown = matchShown(row as MeetingMatchRow, null);
  expect(shown.candidates[0]).toEqual({ dealId: 70, reason: "reason 70" });
  expect(shown.candidates.map(({ dealId }) => dealId).sort((a, b) => a - b)).toEqual(
    candidates.map(({ dealId }) => dealId),
  );
});
