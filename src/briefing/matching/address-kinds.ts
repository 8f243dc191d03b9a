import roleNames from "role-based-email-addresses";
import { domainOf, localPartOf } from "../../platform/email-address";

/** Roles in languages that the package leaves out. */
const FURTHER_ROLES = [
  ...["anfrage", "bewerbung", "buero", "büro", "einkauf", "empfang", "hallo", "kundenservice", "personal", "rechnung"],
  ...["vertrieb", "verwaltung", "accueil", "achats", "vente", "ventes", "ufficio", "vendite"],
];
/** First names that the package takes for roles. */
const FIRST_NAMES: readonly string[] = ["alexa", "per"];
const ROLES: ReadonlySet<string> = new Set([
  ...roleNames.filter((name) => !FIRST_NAMES.includes(name)),
  ...FURTHER_ROLES,
]);

/** Whether an address stands for a function or a group of people: info@, sales@. */
export const isRoleAddress = (address: string): boolean => ROLES.has(localPartOf(address).replace(/\+.*$/, ""));

/**
 * Addresses that makers of notetakers tell their users to invite. Whole domains are not listed: their makers are
 * companies with people who buy. fireflies.ai: https://help.fireflies.ai ("invite fred@fireflies.ai").
 */
const NOTETAKERS: ReadonlySet<string> = new Set(["fred@fireflies.ai"]);
const NOTETAKER = /^(.*[-._])?(notetaker|note-taker|notetakerbot|meeting-?bot|meeting-?recorder)([-._].*)?$/;

/**
 * Google's calendars of rooms, groups and imports: https://developers.google.com/workspace/calendar/api/concepts/sharing.
 * Microsoft's rooms have ordinary addresses and are known by their names only.
 */
const CALENDAR_DOMAIN = /(^|\.)calendar\.google\.com$/;
const ROOM = /^(meeting|conference|conf|board)[-._]?rooms?([-._0-9].*)?$|^(resource|equipment)[-._]/;

const NO_REPLY = /(^|[-._])(no|do[-._]?not|dont)[-._]?reply([-._].*)?$|^(mailer-?daemon|postmaster|bounces?)$/;

/** Where mailing lists live, and the addresses by which list programs are steered (RFC 2142, chapter 6). */
const LIST_DOMAIN = /^(googlegroups\.com|.*groups\.io|lists?\..+|listserv\..+)$/;
const LIST = /-(request|owner|bounces|subscribe|unsubscribe)$|^(listserv|majordomo)$/;

/** Why an address is nobody who could attend; null where it may be somebody. */
export function ignoredBecause(address: string): string | null {
  const local = localPartOf(address).replace(/\+.*$/, "");
  const domain = domainOf(address);
  if (CALENDAR_DOMAIN.test(domain) || ROOM.test(local)) return "This is a room or another shared calendar.";
  if (NOTETAKERS.has(address) || NOTETAKER.test(local)) return "This is a bot that takes notes.";
  if (NO_REPLY.test(local)) return "This address sends mail only; nobody reads it.";
  if (LIST_DOMAIN.test(domain) || LIST.test(local)) return "This is a mailing list.";
  return null;
}
