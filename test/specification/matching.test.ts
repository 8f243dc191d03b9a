import { encodeId } from "../../src/resolvers/inputs";
import { askNote, writeNote } from "../support/notes";
import { completeConsent, connect, dataOf, recordMeeting, startConsent, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 60, connected: ["acme"] });

const copyOf = async (tenant = "acme") => {
  const [row] = await database.query<{ copy_id: number }>(
    "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  return row?.copy_id ?? 0;
};
const dealId = async (crmId: number, tenant = "acme") => encodeId("Deal", await copyOf(tenant), crmId);

const MATCH = `match { status rule reason matchedAt deal { crmId } candidates { deal { id crmId } reason }
  persons { crmId } organizations { crmId } }`;
interface MatchRead {
  status: string;
  rule: string | null;
  reason: string;
  matchedAt: string;
  deal: { crmId: string } | null;
  candidates: { deal: { id: string; crmId: string }; reason: string }[];
  persons: { crmId: string }[];
  organizations: { crmId: string }[];
}
const matchOf = async (id: string, as = {}): Promise<MatchRead> =>
  dataOf(
    await service.ask<{ meeting: { match: MatchRead } }>(
      `query ($id: ID!) { meeting(id: $id) { ${MATCH} } }`,
      { id },
      as,
    ),
  ).meeting.match;

const CHOOSE = `mutation ($meetingId: ID!, $dealId: ID!) { chooseDeal(meetingId: $meetingId, dealId: $dealId) {
  ... on MeetingSuccess { meeting { id ${MATCH} } } ... on Refusal { code message field } } }`;
interface Chosen {
  meeting?: { id: string; match: MatchRead };
  code?: string;
  message?: string;
  field?: string;
}
const choose = async (meetingId: string, deal: string, as = {}): Promise<Chosen> =>
  dataOf(await service.ask<{ chooseDeal: Chosen }>(CHOOSE, { meetingId, dealId: deal }, as)).chooseDeal;

const REQUEST = "mutation ($kind: SyncKind) { requestSync(kind: $kind) { __typename } }";
/** Syncs, and waits until meetings have been matched against what came. */
async function sync(kind = "INCREMENTAL", tenant = "acme"): Promise<void> {
  const as = { tenant };
  dataOf(await service.ask(REQUEST, { kind }, as));
  await syncEnds(service, as);
  await until("the meetings are matched again", async () => {
    const [row] = await database.query<{ done: boolean }>(
      `SELECT bool_and(r.rematched) AS done
       FROM synced_copy c JOIN sync_run r ON r.tenant_id = c.tenant_id AND r.copy_id = c.id
       WHERE c.tenant_id = $1 AND c.state = 'LIVE'`,
      [await database.tenantId(tenant)],
    );
    return row?.done;
  });
}

const severalDeals = () => simulator.company.stories.severalDeals;
const candidatesOf = ({ candidates }: MatchRead) => candidates.map(({ deal }) => deal.crmId).sort();

/** A person of the CRM on deals of its own, as they come about while a service runs. */
function newBuyer(name: string, deals: number): { personId: number; email: string; dealIds: number[] } {
  const email = `${name}@${name}-trading.example`;
  const personId = simulator.control.add("person", { name, emails: [{ value: email, primary: true, label: "work" }] });
  const dealIds = Array.from({ length: deals }, (_, index) =>
    simulator.control.add("deal", { title: `${name} ${index}`, status: "open", person_id: personId }),
  );
  for (const id of dealIds) simulator.control.setParticipants(id, [personId]);
  return { personId, email, dealIds };
}

describe("chooseDeal", () => {
  test("a user settles what the rules could not, and the answer shows it at once", async () => {
    const { id } = await recordMeeting(service, [severalDeals().email]);
    const before = await matchOf(id);
    expect(before).toMatchObject({ status: "NEEDS_CHOICE", deal: null });
    const [, second] = severalDeals().dealIds;
    const { meeting } = await choose(id, await dealId(second));
    expect(meeting?.match).toMatchObject({
      ...{ status: "MATCHED", rule: "CHOSEN", reason: "A user chose this deal.", deal: { crmId: String(second) } },
    });
    expect(candidatesOf(meeting?.match as MatchRead)).toEqual(candidatesOf(before));
    expect(await matchOf(id)).toEqual(meeting?.match);
    const [stored] = await database.query("SELECT chosen_by FROM meeting_match WHERE meeting_id = $1", [
      Buffer.from(id, "base64url").toString().split(":")[1],
    ]);
    expect(stored).toEqual({ chosen_by: "anna" });
  });

  test("a match that a rule made is corrected, and corrected back: its candidates are kept", async () => {
    const { email, dealIds, ownerIds } = severalDeals();
    const ownerEmail = simulator.company.users.get(ownerIds[0])?.email ?? "";
    const { id, match } = await recordMeeting(service, [email], { ownerEmail });
    expect(match).toMatchObject({ status: "MATCHED", rule: "OWNER_ATTENDS" });
    const query = "query ($id: ID!) { meeting(id: $id) { owner { crmId } } }";
    expect(dataOf(await service.ask(query, { id }))).toEqual({ meeting: { owner: { crmId: String(ownerIds[0]) } } });
    for (const crmId of [dealIds[1], dealIds[0]]) {
      const { meeting } = await choose(id, await dealId(crmId));
      expect(meeting?.match).toMatchObject({ rule: "CHOSEN", deal: { crmId: String(crmId) } });
      expect(candidatesOf(meeting?.match as MatchRead)).toEqual(dealIds.map(String).sort());
    }
  });

  test("every role on every plan of the tenant may choose", async () => {
    const { id } = await recordMeeting(service, [severalDeals().email]);
    const { meeting } = await choose(id, await dealId(severalDeals().dealIds[0]), { role: "member", plan: "free" });
    expect(meeting?.match.rule).toBe("CHOSEN");
  });

  test("unknown, foreign, unmatched and other ids are refused alike, and change nothing", async () => {
    const other = { tenant: "other" };
    await connect(service, simulator, other);
    await syncEnds(service, other);
    const foreign = await recordMeeting(service, [severalDeals().email], {}, other);
    const { id } = await recordMeeting(service, [severalDeals().email]);
    await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
    const before = await matchOf(id);
    const [{ crm_id: unmatched } = { crm_id: 0 }] = await database.query<{ crm_id: number }>(
      `SELECT crm_id FROM deal d WHERE copy_id = $1 AND NOT EXISTS (SELECT 1 FROM matched_record m
         WHERE m.tenant_id = d.tenant_id AND m.copy_id = d.copy_id AND m.entity = 'DEAL' AND m.crm_id = d.crm_id) LIMIT 1`,
      [await copyOf()],
    );
    const good = await dealId(severalDeals().dealIds[0]);
    const deals = [
      await dealId(unmatched),
      await dealId(99_999_999),
      await dealId(severalDeals().dealIds[0], "other"),
      encodeId("Person", await copyOf(), severalDeals().personId),
      id,
      "nonsense",
      "",
    ];
    const refusals = await Promise.all(deals.map((deal) => choose(id, deal)));
    expect(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size).toBe(1);
    expect(refusals[0]).toEqual({
      code: "DEAL_NOT_FOUND",
      message: "There is no such deal. Choose one of the deals in the meeting's match.candidates.",
      field: "dealId",
    });
    expect(await choose(id, await dealId(simulator.company.stories.singleDeal.dealId))).toEqual({
      code: "TARGET_NOT_MATCHED",
      message: "This deal is none of the meeting's. Choose one of the deals in its match.candidates.",
      field: "dealId",
    });
    const meetings = [foreign.id, encodeId("Meeting", "00000000-0000-4000-8000-000000000000"), good, "nonsense", ""];
    const unknown = await Promise.all(meetings.map((meetingId) => choose(meetingId, good)));
    expect(new Set(unknown.map((refusal) => JSON.stringify(refusal))).size).toBe(1);
    expect(unknown[0]).toMatchObject({ code: "MEETING_NOT_FOUND", field: "meetingId" });
    expect(await choose(id, good, { tenant: "never-connected" })).toMatchObject({ code: "MEETING_NOT_FOUND" });
    expect(await matchOf(id)).toEqual(before);
    expect((await matchOf(foreign.id, other)).rule).toBeNull();
  });

  test("without a connected CRM there is nothing to choose from", async () => {
    const as = { tenant: "unconnected" };
    const { id } = await recordMeeting(service, ["someone@somewhere.example"], {}, as);
    expect(await choose(id, await dealId(1), as)).toMatchObject({ code: "NOT_CONNECTED" });
  });

  /** A meeting for which one of its buyer's two deals is chosen. */
  async function choiceOfTwo(name: string): Promise<{ id: string; chosen: number; other: number }> {
    const buyer = newBuyer(name, 2);
    await sync();
    const { id } = await recordMeeting(service, [buyer.email]);
    const [chosen = 0, other = 0] = buyer.dealIds;
    await choose(id, await dealId(chosen));
    return { id, chosen, other };
  }

  test("a choice survives syncs that change its deal, and even that its people leave it", async () => {
    const { id, chosen, other } = await choiceOfTwo("lasting");
    simulator.control.change("deal", chosen, { person_id: null, status: "lost" });
    simulator.control.setParticipants(chosen, []);
    simulator.control.change("deal", other, { value: 1_000_000 });
    await sync();
    expect(await matchOf(id)).toMatchObject({ rule: "CHOSEN", deal: { crmId: String(chosen) } });
  });

  test("when the chosen deal is deleted no other takes its place, and the reason says so", async () => {
    const { id, chosen, other } = await choiceOfTwo("gone");
    simulator.control.remove("deal", chosen);
    await sync();
    const match = await matchOf(id);
    expect(match).toMatchObject({ status: "NEEDS_CHOICE", rule: null, deal: null });
    expect(match.reason).toContain("The deal that a user chose is not in the connected CRM");
    expect(candidatesOf(match)).toEqual([String(other)]);
    expect((await choose(id, await dealId(chosen))).code).toBe("DEAL_NOT_FOUND");
    expect((await choose(id, await dealId(other))).meeting?.match.rule).toBe("CHOSEN");
  });

  // Seen red: "Choose it with chooseDeal", though there was none to choose.
  test("where a chosen deal is gone and no other is left, a write says so and names the way out", async () => {
    const { id, chosen, other } = await choiceOfTwo("lost");
    for (const one of [chosen, other]) simulator.control.remove("deal", one);
    await sync();
    expect(await matchOf(id)).toMatchObject({ status: "NONE", candidates: [] });
    const { code, message } = await askNote(service, { meetingId: id });
    expect([code, message]).toEqual([
      "NEEDS_CHOICE",
      expect.stringMatching(/^The deal that a user chose .* unchooseDeal/),
    ]);
    const taken = "mutation ($id: ID!) { unchooseDeal(meetingId: $id) { __typename } }";
    expect(dataOf(await service.ask(taken, { id }))).toEqual({ unchooseDeal: { __typename: "MeetingSuccess" } });
    expect((await askNote(service, { meetingId: id })).write?.state).toBe("WRITTEN");
  });

  test("recording again keeps the choice while its deal is a candidate, and says when it is dropped", async () => {
    const { email, dealIds } = severalDeals();
    const externalId = "recorded-again";
    const { id } = await recordMeeting(service, [email], { externalId });
    await choose(id, await dealId(dealIds[1]));
    expect((await recordMeeting(service, [email], { externalId, title: "Moved" })).match.rule).toBe("CHOSEN");
    const { singleDeal } = simulator.company.stories;
    const again = await recordMeeting(service, [singleDeal.email], { externalId });
    expect(again).toMatchObject({ id, match: { status: "MATCHED", rule: "ONLY_CANDIDATE" } });
    expect(again.match.reason).toContain("The deal that a user chose before is none of the attendees'");
    expect((await recordMeeting(service, [email], { externalId })).match.status).toBe("NEEDS_CHOICE");
  });

  test("a choice belongs to the CRM company: it stands again after a disconnect and a new connect", async () => {
    const as = { tenant: "returning" };
    await connect(service, simulator, as);
    await syncEnds(service, as);
    const { id } = await recordMeeting(service, [severalDeals().email], {}, as);
    const [chosen] = severalDeals().dealIds;
    await choose(id, await dealId(chosen, "returning"), as);
    dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
    expect(await matchOf(id, as)).toMatchObject({ status: "PENDING", deal: null });
    const state = await startConsent(service, as);
    await completeConsent(service, { code: simulator.control.approve({ state }), state }, as);
    await syncEnds(service, as);
    const match = await until("it is matched again", async () => {
      const found = await matchOf(id, as);
      return found.status === "MATCHED" && found;
    });
    expect(match).toMatchObject({ rule: "CHOSEN", deal: { crmId: String(chosen) } });
  });
});

describe("matching again after a sync", () => {
  test("a person who comes into the CRM later is found, with the company and the deal", async () => {
    const email = "late@late-trading.example";
    const { id, match } = await recordMeeting(service, [email]);
    expect(match.status).toBe("NONE");
    const buyer = newBuyer("late", 1);
    await sync();
    expect(await matchOf(id)).toMatchObject({
      ...{ status: "MATCHED", rule: "ONLY_CANDIDATE", deal: { crmId: String(buyer.dealIds[0]) } },
      persons: [{ crmId: String(buyer.personId) }],
    });
  });

  test("a tag on either side, and a domain, are found in the copy by its indexes", async () => {
    const org = simulator.control.add("organization", {
      name: "Tagged",
      website: "https://www.tagged-trading.example",
    });
    const person = (email: string) =>
      simulator.control.add("person", {
        name: email,
        org_id: org,
        emails: [{ value: email, primary: true, label: "work" }],
      });
    const tagged = person("Gil.Smith+crm@gmail.com");
    await sync();
    const { id, attendees } = await recordMeeting(service, [
      "gilsmith@googlemail.com",
      "stranger@sub.tagged-trading.example",
      "fred@fireflies.ai",
    ]);
    expect(attendees.map(({ side, match }) => [side, match.status, match.rule])).toEqual([
      ["BUYER", "MATCHED", "EMAIL_WITHOUT_TAG"],
      ["BUYER", "NONE", null],
      ["IGNORED", "NONE", null],
    ]);
    const query = `query ($id: ID!) { meeting(id: $id) { attendees { match {
      person { crmId } organization { crmId } organizationStatus organizationRule } } } }`;
    const data = dataOf(await service.ask<{ meeting: { attendees: { match: object }[] } }>(query, { id }));
    const organization = { crmId: String(org) };
    expect(data.meeting.attendees.map(({ match }) => match)).toEqual([
      {
        person: { crmId: String(tagged) },
        organization,
        organizationStatus: "MATCHED",
        organizationRule: "ORGANIZATION_OF_PERSON",
      },
      { person: null, organization, organizationStatus: "MATCHED", organizationRule: "DOMAIN_OF_WEBSITE" },
      { person: null, organization: null, organizationStatus: "NONE", organizationRule: null },
    ]);
    expect((await matchOf(id)).organizations).toEqual([organization]);
  });

  test("what does not matter moves nothing: a renamed deal, or a run without changes", async () => {
    const { id } = await recordMeeting(service, [severalDeals().email]);
    const before = await matchOf(id);
    simulator.control.change("deal", severalDeals().dealIds[0], { title: "Another name", value: 123_456 });
    await sync();
    await sync();
    expect(await matchOf(id)).toEqual(before);
  });

  test("a meeting of more than 30 days ago is left as it is", async () => {
    const buyer = newBuyer("old", 0);
    const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
    const old = await recordMeeting(service, [buyer.email], { startsAt: ago(31) });
    const recent = await recordMeeting(service, [buyer.email], { startsAt: ago(29) });
    await sync();
    expect((await matchOf(recent.id)).persons).toEqual([{ crmId: String(buyer.personId) }]);
    expect((await matchOf(old.id)).persons).toEqual([]);
  });

  test("one meeting's failure leaves the others matched, and is made up by the next run", async () => {
    const email = "unlucky@unlucky-trading.example";
    const meetings = [await recordMeeting(service, [email]), await recordMeeting(service, [email])];
    const [bad, good] = meetings.map(({ id }) => id);
    const badRow = Buffer.from(bad ?? "", "base64url")
      .toString()
      .split(":")[1];
    await database.query(
      `ALTER TABLE meeting_match ADD CONSTRAINT refused CHECK (meeting_id <> '${badRow}' OR status = 'NONE')`,
    );
    newBuyer("unlucky", 1);
    dataOf(await service.ask(REQUEST, { kind: "INCREMENTAL" }));
    await syncEnds(service);
    await until("the other is matched", async () => (await matchOf(good ?? "")).status === "MATCHED");
    expect((await matchOf(bad ?? "")).status).toBe("NONE");
    await database.query("ALTER TABLE meeting_match DROP CONSTRAINT refused");
    await sync();
    expect((await matchOf(bad ?? "")).status).toBe("MATCHED");
  });
});

describe("what the CRM says of closing, and what was written", () => {
  test("a deal that was lost long ago by its close_time alone could not be meant, and one that is open again could", async () => {
    const buyer = newBuyer("closing", 2);
    const [lost = 0, reopened = 0] = buyer.dealIds;
    const longAgo = new Date(Date.now() - 300 * 86_400_000).toISOString().replace(/\.\d+/, "");
    const times = { close_time: longAgo, won_time: null };
    simulator.control.change("deal", lost, { ...times, status: "lost", lost_time: null });
    simulator.control.change("deal", reopened, { ...times, status: "open", lost_time: longAgo });
    await sync();
    const { match, id } = await recordMeeting(service, [buyer.email]);
    expect(match).toMatchObject({ rule: "ONLY_CANDIDATE", reason: expect.stringContaining("was open when") });
    expect((await matchOf(id)).deal).toEqual({ crmId: String(reopened) });
  });

  test("once a note was written the meeting stays with its deal, whatever a sync brings; a user may still choose", async () => {
    const buyer = newBuyer("written", 1);
    await sync();
    const meetings = [await recordMeeting(service, [buyer.email]), await recordMeeting(service, [buyer.email])];
    const [written = "", unwritten = ""] = meetings.map(({ id }) => id);
    const [first = 0] = buyer.dealIds;
    await writeNote(service, { meetingId: written });
    const other = simulator.control.add("deal", { title: "Other", status: "open", person_id: buyer.personId });
    simulator.control.change("deal", other, { add_time: "2026-01-05T09:00:00Z" });
    simulator.control.setParticipants(other, [buyer.personId]);
    await sync();
    expect(await matchOf(unwritten)).toMatchObject({ status: "NEEDS_CHOICE" });
    const stays = await matchOf(written);
    expect(stays).toMatchObject({ rule: "ONLY_CANDIDATE", deal: { crmId: String(first) } });
    expect(stays.reason).toMatch(/The match stays as it was when something was written to the CRM for this meeting\.$/);
    expect(candidatesOf(stays)).toEqual([String(first), String(other)].sort());
    await sync("RECONCILE");
    expect(await matchOf(written)).toEqual(stays);
    expect((await choose(written, await dealId(other))).meeting?.match).toMatchObject({ rule: "CHOSEN" });
  });

  // Seen red: the earlier note alone was looked at, and of its company the deal was not there.
  test("a note holds its deal also where the meeting got one in another CRM company before, for a deal of the same number", async () => {
    const buyer = newBuyer("moved", 1);
    await sync();
    const { id } = await recordMeeting(service, [buyer.email]);
    const { reference } = await writeNote(service, { meetingId: id });
    await writeNote(service, { meetingId: id });
    await database.query("UPDATE note_write SET crm_company_id = 99 WHERE reference = $1", [reference]);
    const other = simulator.control.add("deal", { title: "Other", status: "open", person_id: buyer.personId });
    simulator.control.change("deal", other, { add_time: "2026-01-05T09:00:00Z" });
    simulator.control.setParticipants(other, [buyer.personId]);
    await sync();
    expect(await matchOf(id)).toMatchObject({ rule: "ONLY_CANDIDATE", deal: { crmId: String(buyer.dealIds[0]) } });
    await database.query(
      "UPDATE note_write SET crm_company_id = 99 WHERE meeting_id = (SELECT meeting_id FROM note_write WHERE reference = $1)",
      [reference],
    );
    newBuyer("unmoved", 1);
    await sync();
    expect(await matchOf(id)).toMatchObject({ status: "NEEDS_CHOICE" });
  });
});
