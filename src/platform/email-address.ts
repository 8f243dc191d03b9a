import { domainToASCII } from "node:url";
import freeMailDomains from "email-providers/all.json";
import roleNames from "role-based-email-addresses";
import { getDomain, getDomainWithoutSuffix } from "tldts";
import moreFreeMailDomains from "./free-mail.json";

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
export const GMAIL = new Set(["gmail.com", "googlemail.com"]);

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

/** Whose mailboxes are under the suffixes of many countries, of which no list has all: they count under any. */
const FREE_MAIL_BRANDS: ReadonlySet<string> = new Set(
  "gmail gmx googlemail hotmail icloud msn outlook protonmail rocketmail windowslive yahoo yandex ymail".split(" "),
);

const isFreeMail = (domain: string): boolean =>
  FREE_MAIL.has(domain) || FREE_MAIL_BRANDS.has(getDomainWithoutSuffix(domain) ?? "");

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
  return domain === null || isFreeMail(domain) || FREE_MAIL.has(domainOf(address)) ? null : domain;
}

/** The company's domain in a website as people write it; null where it names a page on someone else's site. */
export function websiteDomainOf(website: string | null): string | null {
  const domain = website === null ? null : registrableDomain(website.trim().toLowerCase());
  return domain === null || SHARED_SITES.has(domain) || isFreeMail(domain) ? null : domain;
}

/** What stands in place of a text that named a person. */
export const ERASED = "[erased]";
