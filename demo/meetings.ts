import type { Company, Simulator } from "../simulator";
import type { Api } from "./api";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const RECORD = `mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) {
  ... on MeetingSuccess { meeting { id title match { status reason deal { title } candidates { deal { title owner { name } } } } } }
  ... on Refusal { message } } }`;

export interface RecordedMeeting {
  id: string;
  title: string;
  match: {
    status: string;
    reason: string;
    deal: { title: string } | null;
    candidates: { deal: { title: string; owner: { name: string } | null } }[];
  };
}

/** Three meetings as a seller's week has them: one that is clear, one that needs a choice, one with a stranger. */
export async function recordMeetings(api: Api, { company }: Simulator): Promise<RecordedMeeting[]> {
  const { singleDeal, severalDeals } = company.stories;
  const emailOf = (userId: number | undefined) => company.users.get(userId ?? 0)?.email ?? "";
  const seller = emailOf(singleDeal.ownerId);
  const week = [
    {
      title: "Walk through the proposal",
      owner: seller,
      buyers: [singleDeal.email, singleDeal.colleagueEmail],
      inHours: 2,
    },
    // Of a seller who owns neither deal: an owner among the attendees would decide.
    {
      title: "Quarterly catch-up",
      owner: strangerTo(company, severalDeals.ownerIds),
      buyers: [severalDeals.email],
      inHours: 5,
    },
    { title: "First call", owner: seller, buyers: ["curious.newcomer@somewhere-new.example"], inHours: 24 },
  ];
  const recorded: RecordedMeeting[] = [];
  for (const [index, { title, owner, buyers, inHours }] of week.entries()) {
    const startsAt = new Date(Date.now() + inHours * HOUR_MS).toISOString();
    const attendees = [owner, ...buyers].map((email) => ({ email }));
    recorded.push(
      await record(api, { externalId: `demo-${index + 1}`, title, startsAt, ownerEmail: owner, attendees }),
    );
  }
  return recorded;
}

const strangerTo = ({ users }: Company, owners: readonly number[]): string =>
  [...users.values()].find(({ id, active_flag }) => active_flag && !owners.includes(id))?.email ?? "";

interface MeetingInput {
  externalId: string;
  title: string;
  startsAt: string;
  ownerEmail: string;
  attendees: { email: string }[];
}

async function record(api: Api, input: MeetingInput): Promise<RecordedMeeting> {
  const { recordMeeting } = await api.ask<{ recordMeeting: { meeting?: RecordedMeeting; message?: string } }>(RECORD, {
    input,
  });
  if (!recordMeeting.meeting) throw new Error(`the meeting "${input.title}" was refused: ${recordMeeting.message}`);
  return recordMeeting.meeting;
}

/** Meetings of the last months with the people of open deals, so that the page has deals to judge. */
export async function recordPastMeetings(api: Api, { company }: Simulator): Promise<void> {
  for (const input of pastMeetings(company, Date.now())) await record(api, input);
}

const PAST_MEETINGS = 40;

/** One a deal, from 5 days ago back to when the deal began. */
export function pastMeetings({ deals, persons, users }: Company, now: number): MeetingInput[] {
  return [...deals.values()]
    .filter(({ status }) => status === "open")
    .flatMap((deal, index) => {
      const email = persons.get(deal.person_id ?? 0)?.emails[0]?.value;
      const ownerEmail = users.get(deal.owner_id)?.email;
      if (!email || !ownerEmail) return [];
      const startsAt = Math.max(Date.parse(deal.add_time) + DAY_MS, now - (5 + ((index * 7) % 80)) * DAY_MS);
      return [
        {
          externalId: `demo-past-${deal.id}`,
          title: `Follow-up: ${deal.title}`,
          startsAt: new Date(Math.min(startsAt, now - HOUR_MS)).toISOString(),
          ownerEmail,
          attendees: [{ email: ownerEmail }, { email }],
        },
      ];
    })
    .slice(-PAST_MEETINGS);
}

/** What a person would say of a match in one line. */
export function matchInWords({ match }: RecordedMeeting): string {
  if (match.deal) return `about "${match.deal.title}". ${match.reason}`;
  const deals = match.candidates.map(({ deal }) => `"${deal.title}" (${deal.owner?.name ?? "no owner"})`);
  return deals.length > 0 ? `needs a choice between ${deals.join(" and ")}.` : `no deal. ${match.reason}`;
}
