import { domainToASCII, domainToUnicode } from "node:url";
import freeMailDomains from "email-providers/all.json";
import roleNames from "role-based-email-addresses";
import { getDomain } from "tldts";
import moreFreeMailDomains from "./free-mail.json";
import { anyOf, literal, REFERENCE, type Spell, spelling } from "./safe-html";

/** RFC 5321 4.5.3.1: 64 octets, an @ and 255 octets; a longer text is no address, and no index could hold it. */
export const LONGEST_ADDRESS = 320;
/** With a name and a link around it. Finding an address takes time by the square of the text, which anyone may send. */
export const LONGEST_TEXT = 2_000;

/** Invisible characters that come along when an address is copied: zero-width space, soft hyphen, direction marks. */
const INVISIBLE = /\p{Cf}/gu;

/** These end or escape a host in a URL: `domainToASCII` would cut there, or decode it. */
const ENDS_HOST = /[/?#:@\\%[\]\s]/;
const DOMAIN = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;
const NOT_LOCAL = /[\s@<>(),;:\\[\]\p{Cc}]/u;

/**
 * One spelling for one mailbox: display name off, Unicode NFKC, trimmed, lower case, domain in ASCII (IDN).
 * null where the text holds no address. Both the copy and the meetings are compared in this form.
 */
export function normalizeAddress(text: string): string | null {
  if (text.length > LONGEST_TEXT) return null;
  const plain = text.normalize("NFKC").replace(INVISIBLE, "").trim();
  const bare = withoutName(plain).toLowerCase().normalize("NFKC");
  const at = bare.lastIndexOf("@");
  const local = bare.slice(0, at);
  const host = bare.slice(at + 1);
  const domain = ENDS_HOST.test(host) ? "" : domainToASCII(host).replace(/\.$/, "");
  if (at < 1 || local.length + domain.length >= LONGEST_ADDRESS || !DOMAIN.test(domain) || NOT_LOCAL.test(local))
    return null;
  return `${local}@${domain}`;
}

/** `"Lovelace, Ada" <ada@x.example>`, `ada@x.example (Ada)`, `<mailto:ada@x.example?subject=Hi>`: the address alone. */
function withoutName(text: string): string {
  const angled = /<([^<>]*)>\s*$/.exec(text)?.[1] ?? text.replace(/\s*\([^()]*\)$/, "");
  const unlinked = angled.trim().replace(/^mailto:(.*?)(\?.*)?$/i, "$1");
  const [, local, host] = /^(.*\S)\s*@\s*(\S.*)$/.exec(unlinked) ?? [];
  return local && host ? `${local}@${host}` : unlinked;
}

/** What stands before the address in `"Ada Lovelace" <ada@x.example>`; null where nothing does. */
export function nameBeside(text: string): string | null {
  const [, before = ""] = (text.length <= LONGEST_TEXT && /^([^<>]*)</.exec(text)) || [];
  return before.replace(/^[\s"']+|[\s"']+$/g, "") || null;
}

export const domainOf = (address: string): string => address.slice(address.lastIndexOf("@") + 1);
export const localPartOf = (address: string): string => address.slice(0, address.lastIndexOf("@"));

/** Google's two names for one service, which alone ignores dots: https://support.google.com/mail/answer/7436150. */
const GMAIL = new Set(["gmail.com", "googlemail.com"]);

/**
 * The mailbox to which a normalized address delivers as far as that can be known: the part after a plus removed, and
 * for Gmail the dots. Two addresses of one mailbox are most likely one person's; what is stored is never this form.
 */
export function mailboxOf(address: string): string {
  const domain = domainOf(address);
  const untagged = localPartOf(address).replace(/(?<=.)\+.*$/, "");
  if (!GMAIL.has(domain)) return `${untagged}@${domain}`;
  return `${untagged.replaceAll(".", "")}@gmail.com`;
}

/** That of an address as people write it; null where the text holds none. */
export function mailboxIn(text: string): string | null {
  const address = normalizeAddress(text);
  return address && mailboxOf(address);
}

/** Equal for all spellings of one mailbox, and for a text that is no address in whatever case. */
export const mailboxKeyOf = (text: string): string => mailboxIn(text) ?? text.toLowerCase();

/** What the package takes for roles: names, the owner of a small company ("Chef"), and letters that are mostly somebody's initials. */
const PEOPLE: ReadonlySet<string> = new Set(
  `alexa alla arin chef church english gardner india mayor paris pastor per sem sydney
    bd ca cm gm la lt md mt no ny pd pm se sf ta`.split(/\s+/),
);

/** With roles in languages that the package leaves out. */
const ROLES: ReadonlySet<string> = new Set([
  ...roleNames.filter((name) => !PEOPLE.has(name)),
  ...`anfrage bewerbung buero büro einkauf empfang hallo kundenservice personal rechnung vertrieb verwaltung
    accueil achats vente ventes ufficio vendite`.split(/\s+/),
]);

/** Whether an address stands for a function or a group of people: info@, sales@. */
export const isRoleAddress = (address: string): boolean => ROLES.has(localPartOf(address).replace(/\+.*$/, ""));

/** With mailboxes for consumers that the package does not list. Not those of a provider whose own people have theirs there too. */
const FREE_MAIL: ReadonlySet<string> = new Set([...freeMailDomains, ...moreFreeMailDomains]);

/** Where companies have a page among others: such an address on a record says nothing of the company's domain. */
const SHARED_SITES: ReadonlySet<string> = new Set(
  "facebook.com google.com instagram.com linkedin.com tiktok.com twitter.com x.com xing.com youtube.com".split(" "),
);

/**
 * The registrable domain of a host or web address (public suffix list, with its private part: two shops under one
 * shop system are two). null where there is none.
 */
function registrableDomain(hostOrUrl: string): string | null {
  const domain = getDomain(hostOrUrl, { allowPrivateDomains: true });
  return domain && (domainToASCII(domain) || null);
}

/** Under which domain an address stands, be it a company's or a mail provider's. Microsoft 365 gives each customer one of its own. */
export function mailDomainOf(address: string): string | null {
  const [, customer] = /([^.]+)(?:\.mail)?\.onmicrosoft\.com$/.exec(domainOf(address)) ?? [];
  return customer ? `${customer}.onmicrosoft.com` : registrableDomain(domainOf(address));
}

/** The domain that stands for a company in a normalized address; null for free mail, which stands for none. */
export function companyDomainOf(address: string): string | null {
  const domain = mailDomainOf(address);
  return domain === null || FREE_MAIL.has(domain) || FREE_MAIL.has(domainOf(address)) ? null : domain;
}

/** The company's domain in a website as people write it; null where it names a page on someone else's site. */
export function websiteDomainOf(website: string | null): string | null {
  const domain = website === null ? null : registrableDomain(website.trim().toLowerCase());
  return domain === null || SHARED_SITES.has(domain) || FREE_MAIL.has(domain) ? null : domain;
}

/** What stands in place of a text that named a person. */
export const ERASED = "[erased]";

/** For texts, and for JSON as text. What stands before a mention is the first group: it stays. */
export type Patterns = readonly [text: string, json: string];

/** A name of more words is looked for as it stands alone: each of its orders makes the expressions longer. */
const MOST_TURNED_WORDS = 6;
/** RFC 5321 4.5.3.1.1: what stands before the @ has 64 octets. Looked for without an end, tags take time by the square of a text of them. */
const LONGEST_TAG = 64;
/** A longer text is no name. */
const LONGEST_NAME = 300;
/** UTF-16 units of one expression: PostgreSQL makes one of 15,000 ready in 30 ms, of 50,000 in 220, and finds no memory for 150,000. */
const LONGEST_PATTERN = 15_000;

/**
 * How a person is found in texts, as regular expressions of PostgreSQL and of JavaScript: each mailbox in all its spellings,
 * and each name of two words or more in all its orders, neither as a part of a longer word. A first name alone would be
 * everybody's. Nothing in them matches one place in two ways, so that they take time by the length of the text.
 */
export function mentionsOf(mailboxes: Iterable<string>, names: readonly string[]): Patterns[] {
  const short = names.filter(({ length }) => length <= LONGEST_NAME);
  const orders = [...new Map(short.flatMap(ordersOf).map((words) => [words.join(" "), words])).values()];
  const spellings = (between: string, spell: Spell) => [
    ...[...mailboxes].map((mailbox) => spellingsOf(mailbox, spell)),
    ...orders.map((words) => inRow(words, between, spell)),
  ];
  const inText = spellings(blank("[^<>]"), spelling(literal));
  const inJson = spellings(
    // A tag that goes on behind its text would take the next one, and leave what is no JSON.
    `${blank(String.raw`[^<>"\\]|\\.`)}|${ESCAPED}`,
    spelling((text) => literal(JSON.stringify(text).slice(1, -1))),
  );
  return inPieces(inJson).map(([from, to]) => [
    mentioned(APART, inText.slice(from, to)),
    // What ends a line is an escape whose last character is a letter or a digit.
    mentioned(`${APART}|${ESCAPED}`, inJson.slice(from, to)),
  ]);
}

/** A text without what they find in it. */
export const withoutMentions = (text: string, mailboxes: Iterable<string>, names: readonly string[]): string =>
  mentionsOf(mailboxes, names).reduce((left, [inText]) => left.replace(new RegExp(inText, "gi"), `$1${ERASED}`), text);

/** A comma ends its word with or without a blank behind it. */
const inRow = ([first = "", ...more]: string[], between: string, spell: Spell) =>
  more.reduce((row, word) => `${row}(?:${between})${row.endsWith(spell(",")) ? "*" : "+"}${spell(word)}`, spell(first));

const mentioned = (before: string, spellings: readonly string[]) =>
  `(${before})(?:${spellings.join("|")})(?![\\w\\u0300-\\u036f-])`;

/** From which spelling to which makes one expression. */
function inPieces(spellings: readonly string[]): [from: number, to: number][] {
  // Of nothing there is none: an empty one would be found everywhere.
  const starts = spellings.length > 0 ? [0] : [];
  let units = 0;
  for (const [at, { length }] of spellings.entries()) {
    if (units > 0 && units + length > LONGEST_PATTERN) {
      starts.push(at);
      units = 0;
    }
    units += length;
  }
  return starts.map((from, piece) => [from, starts[piece + 1] ?? spellings.length]);
}

const APART = "^|[^\\w.+-]";
/** Between words, in HTML too. @param inTag what may stand in a tag */
const blank = (inTag: string) => `[\\s\\u00a0]|${REFERENCE}(?:nbsp|#(?:0*(?:32|160)|x0*(?:20|a0)));|<(?:${inTag})*>`;
/** A control character in JSON. */
const ESCAPED = String.raw`\\(?:[bfnrt]|u00[01].)`;

/** The words of a name as it stands, as it is said, and as lists have it: "Ada van Berg", "van Berg, Ada", "Berg, Ada van". */
function ordersOf(name: string): string[][] {
  const wordsOf = (text: string) => text.normalize("NFC").split(/\s+/).filter(Boolean);
  const parts = name.split(",").map(wordsOf);
  const said = parts.length === 2 ? parts.toReversed().flat() : wordsOf(name);
  const turned = (by: number) => [...said.slice(by, -1), `${said.at(-1)},`, ...said.slice(0, by)];
  const isTurned = parts.length <= 2 && said.length <= MOST_TURNED_WORDS;
  const orders = [wordsOf(name), said, ...(isTurned ? said.slice(1).map((_, before) => turned(before + 1)) : [])];
  return orders.filter((words) => words.length > 1);
}

/** A mailbox as people write it: tagged, with its domain as it is read, and Gmail's with dots and by either name. */
function spellingsOf(mailbox: string, spell: Spell): string {
  const [local, domain] = [localPartOf(mailbox), domainOf(mailbox)];
  const isGmail = GMAIL.has(domain);
  const domains = isGmail ? [...GMAIL] : [domain, domainToUnicode(domain)];
  const spelled = isGmail ? [...local].map(spell).join(`${spell(".")}?`) : spell(local);
  return `${spelled}(?:${spell("+")}[^@\\s"]{0,${LONGEST_TAG}})?${spell("@")}${anyOf(domains.map(spell))}`;
}
