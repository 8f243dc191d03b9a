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

/** A company in which an import has given one address to so many persons. */
function imported(count: number, address: string) {
  const { meeting, facts } = world("Ada = ada@acme.de; D1 of Ada", `${address}; anna@seller.de`);
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const persons = ids.map((crmId) => ({ crmId, organizationId: null, addresses: [address] }));
  return { meeting, facts: { ...facts, persons, deals: [] }, ids, deals: facts.deals };
}

test("a meeting is matched soon where an import gave twenty thousand persons one address", () => {
  const { meeting, facts, ids } = imported(20_000, "info@acme.de");
  const before = process.cpuUsage();
  const [info] = match(meeting, facts, null).attendees;
  // All tenants wait meanwhile, and the database calls a transaction off that has asked nothing for so long.
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(2_000);
  expect(info).toMatchObject({ status: "AMBIGUOUS", candidateIds: ids });
});

test("and where it gave each of them a deal, a deal is looked at as often as one of few", () => {
  const { meeting, facts, ids, deals } = imported(1_000, "ada@acme.de");
  let looks = 0;
  const each = ids.flatMap((id) =>
    deals.map((deal) => ({
      ...{ ...deal, crmId: id },
      get personIds() {
        looks += 1;
        return [id];
      },
    })),
  );
  const { deal } = match(meeting, { ...facts, deals: each }, null);
  expect([deal.status, deal.candidates.length]).toEqual(["NEEDS_CHOICE", 1_000]);
  expect(looks / each.length).toBeLessThan(20);
});

// Seen red with a bound that was not there: the owner's, after seconds.
test("and where thousands of deals have a person in common who may have come, nobody says in which the most take part", () => {
  const { meeting, facts, ids, deals } = imported(2_000, "ada@acme.de");
  const twins = [90_001, 90_002].map((crmId) => ({ crmId, organizationId: null, addresses: ["eve@acme.de"] }));
  const each = ids.flatMap((id) =>
    deals.map((deal) => ({ ...deal, crmId: id, personIds: [id, 90_001], ownerId: id === 1 ? 7 : null })),
  );
  const another = deals.map((deal) => ({ ...deal, crmId: 3_000, personIds: [90_002] }));
  const { deal } = match(
    { ...meeting, attendees: [...meeting.attendees, { position: 2, address: "eve@acme.de" }] },
    {
      ...facts,
      users: [{ crmId: 7, mailbox: "anna@seller.de" }],
      persons: [...facts.persons, ...twins],
      deals: [...each, ...another],
    },
    null,
  );
  expect(deal.status).toBe("NEEDS_CHOICE");
  expect(deal.reason).toContain("nothing tells in which of them most take part");
});
