import type { AttendeeSide, MatchStatus } from "../../entities/meeting-attendee";
import type { AttendeeFact, PersonFact } from "./facts";

export type PersonRule = "EMAIL_EXACT";

export interface AttendeeMatch {
  position: number;
  side: AttendeeSide;
  status: MatchStatus;
  rule: PersonRule | null;
  reason: string;
  personId: number | null;
  candidateIds: number[];
}

export interface AttendeeInputs {
  ownerAddress: string | null;
  attendees: readonly AttendeeFact[];
  /** Addresses of the CRM's users. */
  userAddresses: ReadonlySet<string>;
  persons: readonly PersonFact[];
}

/** Who each attendee is: a colleague, a person of the CRM, or a stranger. Names never link; a tie is never broken. */
export function matchAttendees({ ownerAddress, attendees, userAddresses, persons }: AttendeeInputs): AttendeeMatch[] {
  const byAddress = new Map<string, PersonFact[]>();
  for (const person of persons) {
    for (const address of new Set(person.addresses))
      byAddress.set(address, [...(byAddress.get(address) ?? []), person]);
  }
  return attendees.map(({ position, address }) => {
    if (address === null) return { position, ...unmatched("IGNORED", "This is not an e-mail address.") };
    if (address === ownerAddress || userAddresses.has(address)) {
      return { position, ...unmatched("SELLER", "A user of the CRM or the meeting's owner: one of your own.") };
    }
    return { position, ...matchBuyer(byAddress.get(address) ?? []) };
  });
}

type Match = Omit<AttendeeMatch, "position">;

function matchBuyer(holders: readonly PersonFact[]): Match {
  const [first] = holders;
  if (!first) return unmatched("BUYER", "No person in the CRM has this address.");
  if (holders.length === 1) {
    return {
      side: "BUYER",
      status: "MATCHED",
      rule: "EMAIL_EXACT",
      reason: "This person has exactly this address in the CRM.",
      personId: first.crmId,
      candidateIds: [],
    };
  }
  return {
    ...unmatched("BUYER", `${holders.length} persons in the CRM have this address, and nothing tells which one it is.`),
    status: "AMBIGUOUS",
    candidateIds: holders.map(({ crmId }) => crmId).sort((a, b) => a - b),
  };
}

function unmatched(side: AttendeeSide, reason: string): Match {
  return { side, status: "NONE", rule: null, reason, personId: null, candidateIds: [] };
}
