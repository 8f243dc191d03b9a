import type {
  ActivityFact,
  CopyFacts,
  DealFact,
  DomainFact,
  MatchedList,
  MeetingFact,
  PersonFact,
  UserFact,
} from "../../src/briefing/matching/facts";
import type { ChoiceFact } from "../../src/briefing/matching/match";
import { cancelled, type Match, match } from "../../src/briefing/matching/match";
import { mailboxIn, mailDomainOf, normalizeAddress, websiteDomainOf } from "../../src/platform/email-address";

const STARTS_AT = new Date("2026-11-20T10:00:00Z");
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/**
 * A CRM and a meeting in words, for tables of cases. Statements, parted by semicolons:
 * `Ada = ada@acme.de, ada@home.de (Acme)` a person with addresses and organization;
 * `Acme: www.acme.de` an organization's website; `user Anna = anna@seller.de` a CRM user;
 * `D1 of Ada Bob owner Anna for Acme opened -10 won -3 worth 9` a deal, in days from the meeting; `closed -3` where the CRM
 * has that time alone, `closed` where it has none, `open` one that was taken up again, `unasked` whose participants were not read;
 * `activity D1 Ada +10` in minutes from its start; `chosen D1`, `chosen D9 gone`, `written D1 for ada@acme.de` who led to it, or both; `cancelled`;
 * `reading PERSONS DEALS` while these are read for the first time.
 */
export interface World {
  meeting: MeetingFact;
  facts: CopyFacts;
  choice: ChoiceFact | null;
  isCancelled: boolean;
  nameOf(id: number | null): string;
}

/** What many cases begin with: two people of one company, and two sellers. */
export const TWO =
  "Ada = ada@acme.de (Acme); Bob = bob@acme.de (Acme); user Anna = anna@seller.de; user Uwe = uwe@seller.de";
/** Both of them with a seller. */
export const BOTH = "ada@acme.de; bob@acme.de; anna@seller.de";
/** Somebody for whom a deal was kept, and who does not attend. */
export const OTHER = "other@elsewhere.example";

const WRITTEN = { rule: "ONLY_CANDIDATE", reason: "It was the only deal then." } as const;

export function world(text: string, attendees: string, owner = "anna@seller.de"): World {
  const ids = new Map<string, number>();
  const idOf = (name: string) => {
    if (!ids.has(name)) ids.set(name, ids.size + 1);
    return ids.get(name) ?? 0;
  };
  const facts = { users: [], persons: [], deals: [], activities: [] } as {
    users: UserFact[];
    persons: PersonFact[];
    deals: DealFact[];
    activities: ActivityFact[];
  };
  const websites: { organizationId: number; website: string }[] = [];
  let unread: MatchedList[] = [];
  let choice: ChoiceFact | null = null;
  let isCancelled = false;
  for (const statement of text.split(";").map((part) => part.trim())) {
    const [first = "", second = "", third = "", fourth = ""] = statement.split(/\s+/);
    if (statement === "") continue;
    if (first === "user")
      facts.users.push({ crmId: idOf(second), mailbox: mailboxIn(statement.split("=")[1] ?? "") ?? "" });
    else if (first === "reading") unread = statement.split(/\s+/).slice(1) as MatchedList[];
    else if (first === "chosen" || first === "written") {
      const [, leader] = statement.split(" for ");
      const keptFor = leader ? [mailboxIn(leader) ?? ""] : [];
      choice = {
        dealId: idOf(second),
        isThere: third !== "gone",
        written: first === "written" ? WRITTEN : null,
        keptFor,
      };
    } else if (first === "cancelled") isCancelled = true;
    else if (first === "activity") {
      const at = new Date(STARTS_AT.getTime() + Number(fourth) * MINUTE_MS);
      facts.activities.push({ dealId: idOf(second), personIds: [idOf(third)], at });
    } else if (second === "=") facts.persons.push(personIn(statement, idOf));
    else if (second === "of" || second === "for") facts.deals.push(dealIn(statement.split(/\s+/), idOf));
    else websites.push({ organizationId: idOf(first.replace(":", "")), website: second });
  }
  const meeting = {
    startsAt: STARTS_AT,
    ownerAddress: normalizeAddress(owner),
    attendees: attendees.split(/;\s*/).map((email, position) => ({ position, address: normalizeAddress(email) })),
  };
  const names = new Map([...ids].map(([name, id]) => [id, name]));
  const nameOf = (id: number | null) => names.get(id ?? 0) ?? "-";
  return {
    meeting,
    facts: { ...facts, domains: domainsOf(facts.persons, websites), unread },
    choice,
    isCancelled,
    nameOf,
  };
}

const addressIn = (text: string) => normalizeAddress(text) ?? "";

function personIn(statement: string, idOf: (name: string) => number): PersonFact {
  const [, name = "", addresses = "", , organization] = /^(\S+) = ([^(]*)(\((.*)\))?$/.exec(statement) ?? [];
  return {
    crmId: idOf(name),
    addresses: addresses.split(",").map(addressIn),
    organizationId: organization ? idOf(organization) : null,
  };
}

function dealIn([name = "", ...words]: string[], idOf: (name: string) => number): DealFact {
  const after = (word: string) => (words.includes(word) ? (words[words.indexOf(word) + 1] ?? null) : null);
  const day = (word: string) => {
    const days = Number(after(word) ?? Number.NaN);
    return Number.isNaN(days) ? null : new Date(STARTS_AT.getTime() + days * DAY_MS);
  };
  const end = words.findIndex((word, index) => index > 0 && /^[a-z]/.test(word));
  const persons = words[0] === "of" ? words.slice(1, end === -1 ? undefined : end) : [];
  const owner = after("owner");
  const organization = after("for");
  return {
    crmId: idOf(name),
    addTime: day("opened") ?? new Date(STARTS_AT.getTime() - 100 * DAY_MS),
    wonTime: day("won"),
    lostTime: day("lost"),
    closeTime: day("closed"),
    isOpen: words.includes("open") || !["won", "lost", "closed"].some((word) => words.includes(word)),
    ownerId: owner === null ? null : idOf(owner),
    organizationId: organization === null ? null : idOf(organization),
    personIds: persons.map(idOf),
    isUnasked: words.includes("unasked"),
  };
}

/** As the statement of copy-facts.ts counts them. */
function domainsOf(persons: PersonFact[], websites: { organizationId: number; website: string }[]): DomainFact[] {
  const found = new Map<string, DomainFact>();
  const use = (domain: string | null, organizationId: number | null, change: Partial<DomainFact>, persons = 0) => {
    if (domain === null || organizationId === null) return;
    const key = `${domain} ${organizationId}`;
    const before = found.get(key) ?? { domain, organizationId, persons: 0, isWebsite: false };
    found.set(key, { ...before, ...change, persons: before.persons + persons });
  };
  for (const { organizationId, addresses } of persons) {
    for (const domain of new Set(addresses.map(mailDomainOf))) use(domain, organizationId, {}, 1);
  }
  for (const { organizationId, website } of websites)
    use(websiteDomainOf(website), organizationId, { isWebsite: true });
  return [...found.values()];
}

export function matchIn({ meeting, facts, choice, isCancelled }: World): Match {
  const found = match(meeting, facts, choice);
  return isCancelled ? cancelled(found) : found;
}

/** Who the first attendee is: `BUYER Ada EMAIL_EXACT, Acme ORGANIZATION_OF_PERSON`. */
export function attendeeInWords(text: World): string {
  const [found] = matchIn(text).attendees;
  if (!found) return "nobody";
  const candidates = found.candidateIds.map(text.nameOf).sort().join(" ");
  const person = [
    found.side,
    found.status === "AMBIGUOUS" ? `one of ${candidates}` : text.nameOf(found.personId),
    found.rule,
  ];
  const organization =
    found.organizationStatus === "NONE"
      ? []
      : [
          found.organizationStatus === "AMBIGUOUS" ? "AMBIGUOUS" : text.nameOf(found.organizationId),
          found.organizationRule,
        ];
  const words = [person, organization].map((part) => part.filter(Boolean).join(" "));
  return words.filter(Boolean).join(", ");
}

/** Which deal the meeting is about: `D1 ONLY_CANDIDATE`, `choose D1 D2`, `none`, `pending`. */
export function dealInWords(text: World): string {
  const { deal } = matchIn(text);
  if (deal.status === "NONE") return "none";
  if (deal.status === "PENDING") return "pending";
  if (deal.status === "MATCHED") return `${text.nameOf(deal.dealId)} ${deal.rule}`;
  const names = deal.candidates.map(({ dealId }) => text.nameOf(dealId)).sort();
  return `choose ${names.join(" ")}`;
}
