import { dataOf, recordMeeting } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: gaps of attendees alone who are certain; of companies alone that are held.

const { simulator, database, service } = useService({ deals: 40, connected: ["acme"] });

interface Gap {
  resource: string;
  code: string;
  count: number;
}

async function gapsWith(emails: string[]): Promise<Gap[]> {
  const { id } = await recordMeeting(service, emails);
  const query = "query ($id: ID!) { briefing(meetingId: $id) { gaps { resource code count } } }";
  return dataOf(await service.ask<{ briefing: { gaps: Gap[] } }>(query, { id })).briefing.gaps;
}

/** Of these deals alone nobody has asked yet who takes part. */
async function onlyUnasked(dealIds: readonly number[]): Promise<void> {
  await database.query(
    "UPDATE deal SET participants_due = crm_id = ANY ($1), participants_known = NOT crm_id = ANY ($1)",
    [dealIds],
  );
}
const unasked = (count: number) => ({ resource: "DEAL_PARTICIPANTS", code: "NOT_READ_YET", count });

// Seen red: counted for the meeting, and once more for the company.
test("a deal of the meeting that is its company's too is said once, beside others of the company, each for its reason", async () => {
  const { singleDeal } = simulator.company.stories;
  const [own] = await database.query<{ company: number }>(
    "SELECT organization_id AS company FROM deal WHERE crm_id = $1",
    [singleDeal.dealId],
  );
  const others = await database.query<{ id: number }>(
    "SELECT crm_id AS id FROM deal WHERE organization_id <> $1 ORDER BY crm_id DESC LIMIT 3",
    [own?.company],
  );
  const [failed = 0, ...unread] = others.map(({ id }) => id);
  await database.query("UPDATE deal SET organization_id = $1, person_id = NULL WHERE crm_id = ANY ($2)", [
    own?.company,
    [failed, ...unread],
  ]);
  await onlyUnasked([singleDeal.dealId, failed, ...unread]);
  await database.query(
    "INSERT INTO data_gap SELECT tenant_id, copy_id, 'DEAL_PARTICIPANTS', crm_id, 'CRM_UNAVAILABLE', '', now() FROM deal WHERE crm_id = $1",
    [failed],
  );
  const gaps = await gapsWith([singleDeal.email]);
  expect(gaps).toContainEqual(unasked(3));
  expect(gaps).toContainEqual({ resource: "DEAL_PARTICIPANTS", code: "CRM_UNAVAILABLE", count: 1 });
  await database.query("DELETE FROM data_gap WHERE crm_id = $1", [failed]);
});

test("where two persons could be meant and no deal is known, any deal that was not asked yet may be one of theirs", async () => {
  const { sharedAddress, singleDeal } = simulator.company.stories;
  await onlyUnasked([singleDeal.dealId]);
  await database.query("DELETE FROM deal WHERE person_id = ANY ($1)", [sharedAddress.personIds]);
  await database.query("DELETE FROM deal_participant WHERE person_id = ANY ($1)", [sharedAddress.personIds]);
  expect(await gapsWith([sharedAddress.email])).toContainEqual(unasked(1));
});

test("a company that is not shown has deals all the same: those that were not asked yet are said", async () => {
  const [person] = await database.query<{ address: string; company: number; deal: number }>(
    `SELECT a.address, p.organization_id AS company, (SELECT max(d.crm_id) FROM deal d WHERE d.tenant_id = p.tenant_id AND d.person_id IS DISTINCT FROM p.crm_id) AS deal
     FROM person p JOIN person_address a ON a.tenant_id = p.tenant_id AND a.copy_id = p.copy_id AND a.person_id = p.crm_id
     JOIN organization o ON o.tenant_id = p.tenant_id AND o.copy_id = p.copy_id AND o.crm_id = p.organization_id
     WHERE (SELECT count(*) FROM person_address b WHERE b.tenant_id = a.tenant_id AND b.address = a.address) = 1
     ORDER BY p.crm_id LIMIT 1`,
  );
  if (!person) throw new Error("no person has a company");
  const { address, company, deal } = person;
  await database.query("DELETE FROM deal_participant WHERE deal_id = $1", [deal]);
  await database.query("UPDATE deal SET person_id = NULL, organization_id = $1 WHERE crm_id = $2", [company, deal]);
  await onlyUnasked([deal]);
  expect(await gapsWith([address])).toContainEqual(unasked(1));
  await database.query("DELETE FROM organization WHERE crm_id = $1", [company]);
  const gaps = await gapsWith([address]);
  expect(gaps).toContainEqual({ resource: "ORGANIZATIONS", code: "RECORD_NOT_FOUND", count: 1 });
  expect(gaps).toContainEqual(unasked(1));
});
