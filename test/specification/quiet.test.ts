import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import { judgeAgain } from "../support/copy";
import { writeNote } from "../support/notes";
import { dataOf, recordMeeting, syncEnds } from "../support/stories";
import { useCrm } from "../support/world";

/** How far the clocks of both sides are ahead. */
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);

const { simulator, database, serve } = useCrm({ deals: 60, clock });
beforeAll(() => {
  // Days of 24 hours: other zones are tested where the days are.
  for (const { id } of simulator.company.users.values()) simulator.control.change("user", id, { timezone_name: "UTC" });
});
const service = serve({ connected: ["acme"] });

interface Quiet {
  verdict: string;
  isQuiet: boolean;
  quietSince: string | null;
  quietDays: number | null;
  nextChangeAt: string | null;
  staleAt: string | null;
  asOf: string;
  reasons: { code: string; message: string; evidence: { __typename: string; id: string }[] }[];
}
interface Last {
  kind: string;
  at: string;
  person: { crmId: string } | null;
  activity: { crmId: string } | null;
}
const QUIET = `quiet { verdict isQuiet quietSince quietDays nextChangeAt staleAt asOf reasons { code message evidence { __typename id } } }
  lastInteraction { kind at person { crmId } activity { crmId } }`;

/** Records a meeting with these people, unless one is given; it began just now. @returns its id */
async function meetingWith(email: string, input: object = {}): Promise<string> {
  const startsAt = clock().toISOString();
  return (await recordMeeting(service, [email], { startsAt, endsAt: startsAt, ...input })).id;
}

/** A meeting that makes the deal readable and is itself no contact: it is about no deal any more. */
async function readable(email: string): Promise<string> {
  const id = await meetingWith(email);
  await database.query(
    "UPDATE meeting_match SET status = 'NONE' WHERE reason <> '' AND meeting_id IN (SELECT id FROM meeting)",
  );
  const [copy] = await database.query<{ id: number }>("SELECT copy_id AS id FROM connection");
  await judgeAgain(database, copy?.id ?? 0, clock());
  return id;
}

async function quietOf(meetingId: string, dealId: number): Promise<{ quiet: Quiet; lastInteraction: Last | null }> {
  const query = `query ($id: ID!) { briefing(meetingId: $id) { deal { crmId ${QUIET} } otherDeals { crmId ${QUIET} } } }`;
  type Found = { crmId: string; quiet: Quiet; lastInteraction: Last | null };
  const { briefing } = dataOf(
    await service.ask<{ briefing: { deal: Found | null; otherDeals: Found[] } }>(query, { id: meetingId }),
  );
  const found = [briefing.deal, ...briefing.otherDeals].find((deal) => deal?.crmId === String(dealId));
  if (!found) throw new Error(`deal ${dealId} is not in the briefing`);
  return found;
}

async function sync(): Promise<void> {
  dataOf(
    await service.ask("mutation { requestSync { ... on SyncRequested { run { id } } ... on Refusal { message } } }"),
  );
  expect((await syncEnds(service)).state).toBe("SUCCEEDED");
}

const codes = ({ reasons }: Quiet) => reasons.map(({ code }) => code);

test("a buyer who does not answer: GHOSTED, with the reasons and the records that show them", async () => {
  const { dealId, personId, email } = simulator.company.stories.ghosted;
  const meeting = await readable(email);
  const { quiet, lastInteraction } = await quietOf(meeting, dealId);
  expect(quiet).toMatchObject({ verdict: "GHOSTED", isQuiet: true });
  expect(quiet.quietDays).toBe(35);
  expect(codes(quiet)).toEqual(expect.arrayContaining(["GHOSTED", "NO_NEXT_STEP"]));
  expect(lastInteraction).toMatchObject({ kind: "OUTGOING_MAIL", person: { crmId: String(personId) }, activity: null });
  const ghosted = quiet.reasons.find(({ code }) => code === "GHOSTED");
  expect(ghosted?.message).toMatch(
    /^The buyer's last known word, a mail from the buyer, was (\d+) days ago, and no answer is known to our last, a mail to the buyer \d+ days ago\.$/,
  );
  expect(ghosted?.message).toContain(`was ${quiet.quietDays} days ago`);
  expect(ghosted?.evidence.map(({ __typename }) => __typename)).toEqual(["Person", "Person"]);

  const held = await meetingWith(email);
  const after = await quietOf(held, dealId);
  expect(after.quiet).toMatchObject({ verdict: "ACTIVE", quietSince: null, quietDays: null });
  expect(after.lastInteraction).toMatchObject({ kind: "MEETING", person: { crmId: String(personId) } });
});

test("our own notes are no contact and move no signal; they are shown as ours", async () => {
  const { dealId, email, stageId } = simulator.company.stories.singleDeal;
  simulator.control.change("stage", stageId, { is_deal_rot_enabled: true, days_to_rotten: 1 });
  await sync();
  const meeting = await meetingWith(email);
  const before = await quietOf(meeting, dealId);
  expect(codes(before.quiet)).toContain("CRM_ROTTEN");
  for (const content of ["One.", "Two."]) {
    await writeNote(service, { meetingId: meeting, content });
    simulator.control.change("deal", dealId, {});
    await sync();
  }
  // Another tenant of the same company has written it: its receipt is not in sight, and its last line tells.
  simulator.control.add("note", { deal_id: dealId, content: "<p>Three.</p>\n<p>Ref. CRM-0123456789</p>" });
  await sync();
  const after = await quietOf(meeting, dealId);
  const steady = ({ nextChangeAt, staleAt, asOf, ...rest }: Quiet) => rest;
  expect(steady(after.quiet)).toEqual(steady(before.quiet));
  expect(after.lastInteraction).toEqual(before.lastInteraction);
  const query = `query ($id: ID!) { briefing(meetingId: $id) { deal { recentNotes { ours text } } } }`;
  const { briefing } = dataOf(
    await service.ask<{ briefing: { deal: { recentNotes: { ours: boolean }[] } } }>(query, { id: meeting }),
  );
  expect(briefing.deal.recentNotes.map(({ ours }) => ours)).toEqual([true, true, true, false]);
  simulator.control.change("stage", stageId, { is_deal_rot_enabled: false, days_to_rotten: null });
});

/** Moves both clocks. */
const moveTo = (instant: number) => {
  aheadMs += instant - clock().getTime();
};

test("the contact that counted is in the timeline, also where it was a mail of somebody who is not in the meeting", async () => {
  const { dealId, email, participantIds } = simulator.company.stories.singleDeal;
  aheadMs += 10 * MINUTE_MS;
  const at = new Date(Math.floor(clock().getTime() / 1_000) * 1_000 - 5 * MINUTE_MS);
  const [, colleague = 0] = participantIds;
  const meeting = await meetingWith(email, {
    startsAt: new Date(clock().getTime() + DAY_MS).toISOString(),
    endsAt: null,
  });
  simulator.control.change("person", colleague, { last_incoming_mail_time: at.toISOString().replace(".000", "") });
  await sync();
  expect((await quietOf(meeting, dealId)).lastInteraction).toMatchObject({
    kind: "INCOMING_MAIL",
    at: at.toISOString(),
  });
  const query =
    "query ($id: ID!) { briefing(meetingId: $id) { timeline(first: 20) { kind at person { crmId } activity { crmId } } } }";
  const { briefing } = dataOf(await service.ask<{ briefing: { timeline: Last[] } }>(query, { id: meeting }));
  expect(briefing.timeline).toContainEqual(expect.objectContaining({ kind: "INCOMING_MAIL", at: at.toISOString() }));
});

test("a deal goes quiet as the clock moves, at the instants that are foretold, and UNKNOWN while nothing is read", async () => {
  const { dealId, email } = simulator.company.stories.freeMail;
  const meeting = await meetingWith(email);
  const first = await quietOf(meeting, dealId);
  const met = new Date(first.lastInteraction?.at ?? Number.NaN).getTime();
  expect(first).toMatchObject({ quiet: { verdict: "ACTIVE" }, lastInteraction: { kind: "MEETING" } });
  for (const [days, before, after] of [
    [3, "ACTIVE", "COOLING"],
    [14, "COOLING", "QUIET"],
  ] as const) {
    moveTo(met + days * DAY_MS - 60 * MINUTE_MS);
    await sync();
    const { verdict, nextChangeAt } = (await quietOf(meeting, dealId)).quiet;
    const change = met + days * DAY_MS + (days === 3 ? 1 : 0);
    expect([verdict, nextChangeAt]).toEqual([before, new Date(change).toISOString()]);
    moveTo(change);
    expect((await quietOf(meeting, dealId)).quiet).toMatchObject({ verdict: after, quietDays: days });
  }
  const { asOf, staleAt, nextChangeAt } = (await quietOf(meeting, dealId)).quiet;
  expect([nextChangeAt, staleAt]).toEqual([null, new Date(new Date(asOf).getTime() + DAY_MS + 1).toISOString()]);
  moveTo(new Date(staleAt ?? "").getTime());
  const { quiet } = await quietOf(meeting, dealId);
  expect([quiet.verdict, codes(quiet), quiet.nextChangeAt]).toEqual(["UNKNOWN", ["DATA_STALE"], null]);
  await sync();
  expect((await quietOf(meeting, dealId)).quiet.verdict).toBe("QUIET");
});

test("the timeline holds meetings, activities, mails and people's notes, newest first and bounded, and nothing of ours", async () => {
  const { dealId, email, doneActivityId } = simulator.company.stories.singleDeal;
  const meeting = await meetingWith(email, {
    startsAt: new Date(clock().getTime() + DAY_MS).toISOString(),
    endsAt: null,
  });
  const query = `query ($id: ID!, $first: Int) { briefing(meetingId: $id) { deal { crmId }
    timeline(first: $first) { kind at person { crmId } activity { crmId } } } }`;
  const timeline = async (first?: number) => {
    const answer = await service.ask<{ briefing: { deal: { crmId: string }; timeline: Last[] } }>(query, {
      id: meeting,
      first,
    });
    expect(dataOf(answer).briefing.deal.crmId).toBe(String(dealId));
    return dataOf(answer).briefing.timeline;
  };
  const whole = await timeline();
  const times = whole.map(({ at }) => at);
  expect(times).toEqual([...times].sort().reverse());
  const kinds = whole.map(({ kind }) => kind).sort();
  const mails = ["INCOMING_MAIL", "INCOMING_MAIL", "OUTGOING_MAIL", "OUTGOING_MAIL"];
  expect(kinds).toEqual(["ACTIVITY", "MEETING", "MEETING", "NOTE", ...mails].sort());
  expect(whole.find(({ kind }) => kind === "ACTIVITY")?.activity).toEqual({ crmId: String(doneActivityId) });
  expect(await timeline(2)).toEqual(whole.slice(0, 2));
});

const LIST = `query ($filter: DealFilter, $orderBy: DealOrder, $first: Int, $after: String) {
  deals(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
    nodes { crmId quiet { verdict quietSince } } pageInfo { hasNextPage endCursor } } }`;
interface List {
  nodes: { crmId: string; quiet: { verdict: string; quietSince: string | null } }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}
const list = async (variables: object) => dataOf(await service.ask<{ deals: List }>(LIST, variables)).deals;

test("lists filter by verdict and put the longest silence first, as each deal is judged alone", async () => {
  await sync();
  for (const { email } of [simulator.company.stories.severalDeals, simulator.company.stories.secondaryAddress])
    await meetingWith(email);
  const every = await list({ orderBy: "QUIET_DAYS_DESC", first: 100 });
  expect(every.nodes.length).toBeGreaterThanOrEqual(6);
  const since = every.nodes.map(({ quiet }) => quiet.quietSince ?? "9999");
  expect(since).toEqual([...since].sort());
  const verdicts = new Set(every.nodes.map(({ quiet }) => quiet.verdict));
  expect(verdicts.size).toBeGreaterThan(1);
  for (const verdict of ["ACTIVE", "COOLING", "QUIET", "GHOSTED", "UNKNOWN"]) {
    const some = await list({ filter: { verdict: [verdict] }, first: 100 });
    const expected = every.nodes.filter(({ quiet }) => quiet.verdict === verdict);
    expect(some.nodes.map(({ crmId }) => crmId).sort()).toEqual(expected.map(({ crmId }) => crmId).sort());
  }
});

test("the pages of one walk are judged at one instant, also when the clock moves between them", async () => {
  const variables = { orderBy: "QUIET_DAYS_DESC", first: 2 };
  const before = await list({ ...variables, first: 100 });
  const walked: string[] = [];
  let after: string | null = null;
  for (let more = true; more; ) {
    const page: List = await list({ ...variables, after });
    walked.push(...page.nodes.map(({ crmId }) => crmId));
    ({ hasNextPage: more, endCursor: after } = page.pageInfo);
    aheadMs += 40 * DAY_MS;
  }
  expect(walked).toEqual(before.nodes.map(({ crmId }) => crmId));
  const other = await service.ask(LIST, { first: 2, after });
  expect(other.errors?.[0]?.message).toContain("in another order");
});
