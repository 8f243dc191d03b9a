import type { Simulator } from "../simulator";
import type { Api } from "./api";

const HOUR_MS = 3_600_000;

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
    { title: "Quarterly catch-up", owner: emailOf(severalDeals.ownerIds[0]), buyers: [severalDeals.email], inHours: 5 },
    { title: "First call", owner: seller, buyers: ["curious.newcomer@somewhere-new.example"], inHours: 24 },
  ];
  const recorded: RecordedMeeting[] = [];
  for (const [index, { title, owner, buyers, inHours }] of week.entries()) {
    const startsAt = new Date(Date.now() + inHours * HOUR_MS).toISOString();
    const attendees = [owner, ...buyers].map((email) => ({ email }));
    const input = { externalId: `demo-${index + 1}`, title, startsAt, ownerEmail: owner, attendees };
    const { recordMeeting } = await api.ask<{ recordMeeting: { meeting?: RecordedMeeting; message?: string } }>(
      RECORD,
      { input },
    );
    if (!recordMeeting.meeting) throw new Error(`the meeting "${title}" was refused: ${recordMeeting.message}`);
    recorded.push(recordMeeting.meeting);
  }
  return recorded;
}

/** What a person would say of a match in one line. */
export function matchInWords({ match }: RecordedMeeting): string {
  if (match.deal) return `about "${match.deal.title}". ${match.reason}`;
  const deals = match.candidates.map(({ deal }) => `"${deal.title}" (${deal.owner?.name ?? "no owner"})`);
  return deals.length > 0 ? `needs a choice between ${deals.join(" and ")}.` : `no deal. ${match.reason}`;
}
