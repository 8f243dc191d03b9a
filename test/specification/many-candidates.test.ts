import { randomUUID } from "node:crypto";
import { match } from "../../src/briefing/matching/match";
import { MOST_CANDIDATES, readCandidates } from "../../src/briefing/records";
import { world } from "../support/matching-world";
import { useDatabase } from "../support/world";

// Planted and seen red: the order in which they were found alone; no bound; a list that was copied for each person with the
// address; each deal looked for among all those persons.

const database = useDatabase();

const RECORDED = `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
  VALUES ($1, $2::uuid, $2::uuid::text, '', now(), '', '', '', '', now())`;
const MATCHED = `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
  VALUES ($1, $2, 1, now(), 'NONE', '', $3, $4, now(), '')`;

async function meetingAbout(tenantId: number, dealId: number | null, candidates: object[]): Promise<string> {
  const id = randomUUID();
  await database.query(RECORDED, [tenantId, id]);
  await database.query(MATCHED, [tenantId, id, dealId, JSON.stringify(candidates)]);
  return id;
}

test("of many candidates the matched one comes first, so that a bounded list never leaves it out", async () => {
  const tenantId = await database.tenantId("acme");
  const candidates = Array.from({ length: 80 }, (_, index) => ({ dealId: index + 1, reason: `reason ${index + 1}` }));
  const [chosen, open, none] = [
    await meetingAbout(tenantId, 70, candidates),
    await meetingAbout(tenantId, null, candidates),
    await meetingAbout(tenantId, null, []),
  ];
  const copy = { ...database.scope(tenantId), copyId: 1 };
  const found = await readCandidates(copy, [chosen, open, none]);
  const of = (id: string) => found.filter(({ meetingId }) => meetingId === id);
  // One more than are shown: the matched one may be gone.
  const first = Array.from({ length: MOST_CANDIDATES + 1 }, (_, index) => index + 1);
  expect(of(chosen).map(({ dealId }) => dealId)).toEqual([70, ...first.slice(0, -1)]);
  expect(of(chosen)[0]).toEqual({ meetingId: chosen, dealId: 70, reason: "reason 70" });
  expect(of(open).map(({ dealId }) => dealId)).toEqual(first);
  expect(of(none)).toEqual([]);
  // Those of a match on another copy are another company's deals.
  expect(await readCandidates({ ...copy, copyId: 2 }, [chosen, open])).toEqual([]);
});

test.each<[string, string, (id: number) => number[], string, number]>([
  ["one address", "info@acme.de", () => [], "NONE", 2_000],
  ["one address and a deal each", "ada@acme.de", (id) => [id], "NEEDS_CHOICE", 5_000],
])(
  "a meeting is matched soon where an import gave twenty thousand persons %s",
  (_, address, dealsOf, status, mostMs) => {
    const { meeting, facts } = world("Ada = ada@acme.de; D1 of Ada", `${address}; anna@seller.de`);
    const persons = Array.from({ length: 20_000 }, (_, index) => {
      return { crmId: index + 1, organizationId: null, addresses: [address] };
    });
    const ids = persons.map(({ crmId }) => crmId);
    const deals = ids.flatMap((id) =>
      dealsOf(id).flatMap((crmId) => facts.deals.map((deal) => ({ ...deal, crmId, personIds: [id] }))),
    );
    const began = performance.now();
    const { attendees, deal } = match(meeting, { ...facts, persons, deals }, null);
    // All tenants wait meanwhile, and the database calls a transaction off that has asked nothing for so long.
    expect(performance.now() - began).toBeLessThan(mostMs);
    expect(attendees[0]).toMatchObject({ status: "AMBIGUOUS", candidateIds: ids });
    expect([deal.status, deal.candidates.length]).toEqual([status, deals.length]);
  },
);
