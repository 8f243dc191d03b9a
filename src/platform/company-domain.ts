import { domainToASCII } from "node:url";
import freeMailDomains from "email-providers/all.json";
import { getDomain } from "tldts";
import { domainOf } from "./email-address";

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
