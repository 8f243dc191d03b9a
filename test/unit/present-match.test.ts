import "reflect-metadata";
import type { MeetingMatchRow } from "../../src/entities/meeting";
import { presentMatch } from "../../src/resolvers/present";

test("of many candidates the matched one comes first, so that a bounded list never leaves it out", () => {
  const candidates = Array.from({ length: 80 }, (_, index) => ({ dealId: index + 1, reason: `reason ${index + 1}` }));
  const row = { ...{ status: "MATCHED", rule: "CHOSEN", reason: "A user chose this deal.", dealId: 70 }, candidates };
  const { links } = presentMatch(row as MeetingMatchRow, null);
  expect(links.candidates[0]).toEqual({ deal: 70, reason: "reason 70" });
  expect(links.candidates.map(({ deal }) => deal).sort((a, b) => a - b)).toEqual(
    candidates.map(({ dealId }) => dealId),
  );
});
