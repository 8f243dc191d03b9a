import type { Api } from "./api";

/** The query that the demo prints for pasting, and that its own briefing comes from. */
export const BRIEFING_QUERY = `query ($id: ID!) {
  briefing(meetingId: $id) {
    meeting { title startsAt match { reason } }
    deal {
      title status value { amount currency } expectedCloseDate crmUrl
      stage { name } pipeline { name } owner { name } organization { name }
      recentActivities(first: 3) { subject type dueAt doneAt owner { name } }
      nextActivity { subject type dueAt }
      recentNotes(first: 1) { text createdAt author { name } }
    }
    otherDeals { title status }
    persons { name emails { address primary } lastIncomingMailAt organization { name } }
    asOf
    gaps { message }
  }
}`;

interface Named {
  name: string;
}
interface ActivityPart {
  subject: string;
  type: string;
  dueAt: string | null;
  doneAt?: string | null;
  owner?: Named | null;
}
interface DealPart {
  title: string;
  status: string;
  value: { amount: string; currency: string } | null;
  expectedCloseDate: string | null;
  crmUrl: string | null;
  stage: Named | null;
  pipeline: Named | null;
  owner: Named | null;
  organization: Named | null;
  recentActivities: ActivityPart[];
  nextActivity: ActivityPart | null;
  recentNotes: { text: string; createdAt: string; author: Named | null }[];
}
interface BriefingPart {
  meeting: { title: string; startsAt: string; match: { reason: string } };
  deal: DealPart | null;
  otherDeals: { title: string; status: string }[];
  persons: {
    name: string;
    emails: { address: string; primary: boolean }[];
    lastIncomingMailAt: string | null;
    organization: Named | null;
  }[];
  asOf: string | null;
  gaps: { message: string }[];
}

const UNKNOWN = "not known";
const when = (instant: string | null | undefined) =>
  instant ? `${instant.slice(0, 10)} ${instant.slice(11, 16)} UTC` : UNKNOWN;

/** Asks for a meeting's briefing and writes it as a person would want to read it. */
export async function briefingText(api: Api, meetingId: string): Promise<string> {
  const { briefing } = await api.ask<{ briefing: BriefingPart | null }>(BRIEFING_QUERY, { id: meetingId });
  if (!briefing) throw new Error("the meeting has no briefing");
  const { meeting, deal, persons, otherDeals, asOf, gaps } = briefing;
  const lines: [label: string, text: string][] = [["Meeting", `${meeting.title}, ${when(meeting.startsAt)}`]];
  if (deal) lines.push(...dealLines(deal), ["Why this deal", meeting.match.reason]);
  for (const [index, person] of persons.entries()) {
    const { address = UNKNOWN } = person.emails.find(({ primary }) => primary) ?? person.emails[0] ?? {};
    const mail = person.lastIncomingMailAt ? `, last wrote ${when(person.lastIncomingMailAt)}` : "";
    lines.push([
      index === 0 ? "People" : "",
      `${person.name} <${address}>, ${person.organization?.name ?? "no company"}${mail}`,
    ]);
  }
  lines.push([
    "Other deals",
    otherDeals.map(({ title, status }) => `${title} (${status.toLowerCase()})`).join(", ") || "none",
  ]);
  lines.push(["Known as of", when(asOf)], ["Missing", gaps.map(({ message }) => message).join(" ") || "nothing"]);
  return lines.map(([label, text]) => `  ${label.padEnd(15)}${text}`).join("\n");
}

function dealLines(deal: DealPart): [string, string][] {
  const { value, recentActivities, nextActivity, recentNotes } = deal;
  const [last] = recentActivities;
  const [note] = recentNotes;
  return [
    ["Deal", `${deal.title} (${deal.status.toLowerCase()}), ${deal.organization?.name ?? "no company"}`],
    ["Stage", `${deal.stage?.name ?? UNKNOWN} in ${deal.pipeline?.name ?? UNKNOWN}`],
    [
      "Value",
      value ? `${value.amount} ${value.currency}, expected to close ${deal.expectedCloseDate ?? UNKNOWN}` : UNKNOWN,
    ],
    ["Owner", deal.owner?.name ?? UNKNOWN],
    [
      "Last activity",
      last ? `${last.subject} (${last.type}), ${when(last.doneAt ?? last.dueAt)}, ${last.owner?.name ?? ""}` : "none",
    ],
    [
      "Next step",
      nextActivity ? `${nextActivity.subject} (${nextActivity.type}), ${when(nextActivity.dueAt)}` : "none planned",
    ],
    [
      "Latest note",
      note
        ? `${note.text.replace(/\s+/g, " ").slice(0, 160)} (${note.author?.name ?? UNKNOWN}, ${when(note.createdAt)})`
        : "none",
    ],
    ["In the CRM", deal.crmUrl ?? UNKNOWN],
  ];
}
