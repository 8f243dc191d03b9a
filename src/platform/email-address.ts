import { domainToASCII, domainToUnicode } from "node:url";
import freeMailDomains from "email-providers/all.json";
import roleNames from "role-based-email-addresses";
import { getDomain } from "tldts";

/** RFC 5321 4.5.3.1: 64 octets, an @ and 255 octets; a longer text is no address, and no index could hold it. */
export const LONGEST_ADDRESS = 320;
/** With a name and a link around it. Finding an address takes time by the square of the text, which anyone may send. */
const LONGEST_TEXT = 2_000;

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

/** Roles in languages that the package leaves out. */
const FURTHER_ROLES = (
  "anfrage bewerbung buero büro einkauf empfang hallo kundenservice personal rechnung vertrieb verwaltung " +
  "accueil achats vente ventes ufficio vendite"
).split(" ");
/** First names that the package takes for roles. */
const FIRST_NAMES: readonly string[] = ["alexa", "per"];
const ROLES: ReadonlySet<string> = new Set([
  ...roleNames.filter((name) => !FIRST_NAMES.includes(name)),
  ...FURTHER_ROLES,
]);

/** Whether an address stands for a function or a group of people: info@, sales@. */
export const isRoleAddress = (address: string): boolean => ROLES.has(localPartOf(address).replace(/\+.*$/, ""));

/** Mailboxes for consumers that the package does not list. */
const FURTHER_FREE_MAIL = (
  "fastmail.com tutanota.com tutanota.de tuta.com tuta.io posteo.de posteo.net gmx.ch sunrise.ch hispeed.ch aon.at " +
  "chello.at ziggo.nl xs4all.nl duck.com mozmail.com"
).split(" ");
const FREE_MAIL: ReadonlySet<string> = new Set([...freeMailDomains, ...FURTHER_FREE_MAIL]);

/** Where companies have a page among others: such an address on a record says nothing of the company's domain. */
const SHARED_SITES: ReadonlySet<string> = new Set([
  "facebook.com",
  "google.com",
  "instagram.com",
  "linkedin.com",
  "tiktok.com",
  "twitter.com",
  "x.com",
  "xing.com",
  "youtube.com",
]);

/**
 * The registrable domain of a host or web address (public suffix list, with its private part: two shops under one
 * shop system are two). null where there is none.
 */
function registrableDomain(hostOrUrl: string): string | null {
  const domain = getDomain(hostOrUrl, { allowPrivateDomains: true });
  return domain && (domainToASCII(domain) || null);
}

/** Under which domain an address stands, be it a company's or a mail provider's. */
export const mailDomainOf = (address: string): string | null => registrableDomain(domainOf(address));

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

/** For texts, and for JSON as text. */
export type Patterns = readonly [text: string, json: string];

/**
 * How a person is found in texts, as regular expressions of PostgreSQL and of JavaScript: each mailbox in all its spellings,
 * and each name of two words or more, neither as a part of a longer word. A first name alone would be everybody's.
 */
export function mentionsOf(mailboxes: Iterable<string>, names: readonly string[]): Patterns {
  const addresses = [...mailboxes].map(spellingsOf);
  const whole = names.filter((name) => /\s/.test(name));
  const any = (before: string, blank: string, spell: (name: string) => string) => {
    const named = whole.map((name) => literal(spell(name)).replace(/\s+/g, `(${blank})+`));
    return `${before}(${[...addresses, ...named].join("|")})(?![\\w-])`;
  };
  return [
    any(APART, BLANK, (name) => name),
    // Before or within a name, what ends a line in the text is an escape whose last character is a letter or a digit.
    any(`(${APART}|(?<=${ESCAPED}))`, `${BLANK}|${ESCAPED}`, (name) => JSON.stringify(name).slice(1, -1)),
  ];
}

const APART = "(?<![\\w.+-])";
/** Between words, in HTML too. */
const BLANK = "\\s|&nbsp;|&#160;";
/** A control character in JSON. */
const ESCAPED = String.raw`\\([bfnrt]|u00[01].)`;

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A mailbox as people write it: tagged, with its domain as it is read, and Gmail's with dots and by either name. */
function spellingsOf(mailbox: string): string {
  const [local, domain] = [localPartOf(mailbox), domainOf(mailbox)];
  const isGmail = GMAIL.has(domain);
  const domains = isGmail ? [...GMAIL] : [domain, domainToUnicode(domain)];
  const spelled = isGmail ? [...local].map(literal).join("\\.?") : literal(local);
  return `${spelled}(\\+[^@\\s"]*)?@(${[...new Set(domains)].map(literal).join("|")})`;
}
