import type { DealRule, MeetingMatchStatus, StoredDealCandidate } from "../../entities/meeting";
import { type Candidate, type Standing, surelyAmong } from "./facts";

export interface DealMatch {
  status: MeetingMatchStatus;
  rule: DealRule | null;
  reason: string;
  dealId: number | null;
  /** Every deal that could be meant, also where a rule decided: a user may know better. */
  candidates: StoredDealCandidate[];
}

/** What the rules so far have set aside, so that a reason speaks only of the deals that were compared. */
interface Compared {
  byActivity: boolean;
  withoutLater: boolean;
  /** Some attendee could be one of several persons. */
  inDoubt: boolean;
}

interface Rule {
  rule: DealRule;
  /** Those of which the rule speaks; null where it would, and nobody can tell of which. */
  keeps(left: readonly Candidate[]): readonly Candidate[] | null;
  reason(one: Candidate, compared: Compared): string;
}

const plural = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;
const whose = (of: Candidate["of"]) => (of === "PERSONS" ? "the attendees" : "the attendees' companies");

const WITH_ACTIVITY = "for which the CRM has an activity at that time";
const NOT_LATER = "that had been opened before the meeting";

const among = ({ byActivity, withoutLater }: Compared): string =>
  [byActivity && WITH_ACTIVITY, withoutLater && NOT_LATER].filter(Boolean).join(" and ");
const ofThose = (compared: Compared) => among(compared) && `, of those ${among(compared)}`;
const anyOther = (compared: Compared) => `any other deal ${among(compared) || "that could be meant"}`;

/** Why the only deal that is left could be meant: nothing else about it was looked at. */
const ALONE: Readonly<Record<Standing, (of: string) => string>> = {
  OPEN: (of) => `the only deal of ${of} that was open when the meeting began`,
  CLOSED: (of) => `the only deal of ${of} around the meeting; it was closed in the 14 days before`,
  CLOSED_SOMETIME: (of) => `the only deal of ${of} around the meeting; the CRM does not say since when it is closed`,
  OPENED_LATER: (of) => `the only deal of ${of} around the meeting; it was opened in the 14 days after`,
};

const SAME_ACTIVITY =
  "The CRM has an activity with an attendee at the time of the meeting, and it belongs to this deal.";

/**
 * Behind the CRM's own activity, in this order, each on what the one before has left; the first that leaves exactly one decides. A rule that speaks
 * of none leaves all. None looks at value, age or id.
 */
const RULES: readonly Rule[] = [
  {
    rule: "ONE_DEAL_OF_ALL",
    keeps: (left) => (left.some(({ several }) => several.length > 0) ? left : []),
    reason: ({ standing }, compared) =>
      `Whoever of the persons with one address is meant, it is ${ALONE[standing]("the attendees")}${ofThose({ ...compared, withoutLater: false })}.`,
  },
  {
    rule: "ONLY_CANDIDATE",
    keeps: (left) => left,
    reason: ({ standing, of }, compared) =>
      `It is ${ALONE[standing](whose(of))}${ofThose({ ...compared, withoutLater: false })}.`,
  },
  {
    rule: "MOST_ATTENDEES",
    keeps: mostAttended,
    reason: (one, compared) =>
      `${inWords(one)}, and ${one.attendees > 0 ? "fewer in" : "only a shared address leads to"} ${anyOther(compared)}.`,
  },
  {
    rule: "OWNER_ATTENDS",
    keeps: (left) => left.filter(({ ownerAttends }) => ownerAttends),
    reason: (_one, compared) =>
      `Of the deals ${compared.inDoubt ? "that may have" : "with"} most attendees${ofThose(compared)}${ofThose(compared) && ","} it is the only one whose owner was in the meeting.`,
  },
  {
    rule: "OPEN_BEFORE_CLOSED",
    keeps: (left) => left.filter(({ standing }) => standing === "OPEN"),
    reason: () => "Of the deals that fit equally well it is the only one that was open when the meeting began.",
  },
];

/** Of an address that an import gave to thousands of persons there are as many deals; all tenants wait while they are compared. */
const MOST_COMPARISONS = 100_000;

/** Those that may have the most: it must be so whoever the attendees are who could be several persons. null: they are too many to tell. */
function mostAttended(left: readonly Candidate[]): readonly Candidate[] | null {
  const most = Math.max(1, ...left.map(({ attendees }) => attendees));
  const may = left.filter(({ attendees, perhaps }) => attendees + perhaps >= most);
  // Where two have a person in common, whoever came counts for both. So these are compared, one of each kind.
  const kindOf = ({ certain, could }: Candidate) => `${certain}: ${could.join(" ")}`;
  const kinds = [...new Map(may.map((one) => [kindOf(one), one])).values()];
  const withPerson = new Map<number, Candidate[]>(kinds.flatMap(({ could }) => could.map((id) => [id, []])));
  for (const one of kinds) for (const id of one.could) withPerson.get(id)?.push(one);
  if ([...withPerson.values()].reduce((sum, { length }) => sum + length ** 2, 0) > MOST_COMPARISONS) return null;
  const isFewer = (one: Candidate) => one.could.some((id) => withPerson.get(id)?.some((of) => outnumbers(of, one)));
  const fewer = new Set(kinds.filter(isFewer).map(kindOf));
  return may.filter((one) => !fewer.has(kindOf(one)));
}

/** Whether more attendees take part in the one than in the other, whoever they are. */
function outnumbers(one: Candidate, other: Candidate): boolean {
  if (one.attendees <= other.certain) return false;
  const only = (of: Candidate, { could }: Candidate) => of.could.filter((id) => !could.includes(id));
  const others = only(other, one);
  const mayAdd = other.several.filter((ids) => others.some((id) => ids.has(id))).length;
  return one.certain + surelyAmong(one.several, only(one, other)) > other.certain + Math.min(mayAdd, others.length);
}

/** Attendees must speak for a deal: a shared address or an e-mail domain alone leads to it and decides nothing. */
const isSpokenFor = ({ attendees, perhaps }: Candidate) => attendees + perhaps > 0;

/** Where one of several was opened after the meeting no rule decides: a later one still would take the match from it. */
const isOneLater = (left: readonly Candidate[]) =>
  left.length > 1 && left.some(({ standing }) => standing === "OPENED_LATER");

/** Which deal a meeting is about: the one that fits, or every one that could and why nothing decided. */
export function matchDeal(found: readonly Candidate[]): DealMatch {
  const candidates = found.map((one) => ({ dealId: one.deal.crmId, reason: `${whatSpeaksFor(one)}.` }));
  const decided = (rule: DealRule, { deal }: Candidate, reason: string): DealMatch => ({
    ...{ status: "MATCHED", rule, reason, dealId: deal.crmId, candidates },
  });
  const undecided = (left: readonly Candidate[]): DealMatch => ({
    ...none(whyNothingDecided(left, found)),
    ...{ status: "NEEDS_CHOICE", candidates },
  });
  const pointedTo = found.filter(({ hasActivity }) => hasActivity);
  const [one] = pointedTo;
  if (one && pointedTo.length === 1) return decided("SAME_CRM_ACTIVITY", one, SAME_ACTIVITY);
  const there = pointedTo.length > 0 ? pointedTo : found;
  let left = withoutLater(there);
  const compared: Compared = {
    byActivity: there.length < found.length,
    withoutLater: left.length < there.length,
    inDoubt: left.some(({ perhaps }) => perhaps > 0),
  };
  if (!left.some(isSpokenFor) || isOneLater(left)) return undecided(left);
  for (const { rule, keeps, reason } of RULES) {
    const kept = keeps(left);
    if (kept === null) break;
    if (kept.length > 0) left = kept;
    const [only, ...others] = kept;
    if (only && others.length === 0) return decided(rule, only, reason(only, compared));
  }
  return undecided(left);
}

/** A deal that was open at the meeting comes before any that was opened after it. */
function withoutLater(left: readonly Candidate[]): readonly Candidate[] {
  const isAnyOpen = left.some((candidate) => candidate.standing === "OPEN" && isSpokenFor(candidate));
  return isAnyOpen ? left.filter(({ standing }) => standing !== "OPENED_LATER") : left;
}

function whatSpeaksFor(candidate: Candidate): string {
  const { hasActivity, ownerAttends, standing } = candidate;
  const parts = [
    inWords(candidate),
    hasActivity && "the CRM has an activity for it at that time",
    ownerAttends && "its owner was in the meeting",
    STANDINGS[standing],
  ];
  return parts.filter(Boolean).join("; ");
}

const STANDINGS: Readonly<Record<Standing, string | null>> = {
  OPEN: null,
  CLOSED: "it had been closed before the meeting",
  CLOSED_SOMETIME: "it is closed, and the CRM does not say since when",
  OPENED_LATER: "it was opened after the meeting",
};

function inWords({ attendees, perhaps, of }: Candidate): string {
  if (attendees + perhaps === 0)
    return `Only a shared address ${of === "PERSONS" ? "" : "or the e-mail domain "}leads to it`;
  if (of === "ORGANIZATIONS") return `${plural(attendees, "attendee comes", "attendees come")} from its organization`;
  if (attendees === 0)
    return `${plural(perhaps, "attendee", "attendees")} may take part in it, who could be another person`;
  const certainly = `${plural(attendees, "attendee takes", "attendees take")} part in it`;
  return perhaps === 0 ? certainly : `${certainly} and ${perhaps} more may, who could be another person`;
}

function whyNothingDecided(left: readonly Candidate[], found: readonly Candidate[]): string {
  const count = plural(found.length, "deal", "deals");
  const [one] = left;
  if (!one) throw new Error("a rule of matching left no deal");
  if (!left.some(isSpokenFor)) {
    const what = one.of === "PERSONS" ? "a shared address" : "a shared address or an e-mail domain";
    const which = left.length === found.length ? count : `the ${plural(left.length, "deal", "deals")} ${WITH_ACTIVITY}`;
    return `Only ${what} leads to ${which}, and that decides nothing by itself.`;
  }
  if (isOneLater(left)) {
    return `${count} of ${whose(one.of)} could be meant. None for which an attendee speaks was open when the meeting began, and where one was opened after it nothing decides.`;
  }
  const owners = one.ownerAttends ? "the owner of each was there" : "no owner of them was there";
  const whom = left.some(({ perhaps }) => perhaps > 0)
    ? "an attendee could be another person, so nothing tells in which of them most take part"
    : WHOM[one.of];
  const rest = left.length === found.length ? "" : ` Between ${left.length} of them nothing decides:`;
  return `${count} of ${whose(one.of)} could be meant${rest ? `.${rest}` : ", and nothing decides:"} ${whom}, ${owners}, and ${standingOf(left)}.`;
}

const WHOM = {
  PERSONS: "as many attendees take part in each",
  ORGANIZATIONS: "as many attendees come from the organization of each",
} as const;

function standingOf(left: readonly Candidate[]): string {
  const open = left.filter(({ standing }) => standing === "OPEN").length;
  if (open === 0) return "each had been closed";
  return open === left.length ? "each was open when the meeting began" : `${open} of them were open when it began`;
}

export const none = (reason: string): DealMatch => ({
  ...{ status: "NONE", rule: null, reason, dealId: null, candidates: [] },
});
