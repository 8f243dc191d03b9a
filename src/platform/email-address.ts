import { domainToASCII } from "node:url";

/** RFC 5321 4.5.3.1: 64 octets, an @ and 255 octets; a longer text is no address, and no index could hold it. */
const LONGEST_ADDRESS = 320;

/**
 * One spelling for one mailbox: display name off, Unicode NFKC, trimmed, lower case, domain in ASCII (IDN).
 * null where the text holds no address. Both the copy and the meetings are compared in this form.
 */
export function normalizeAddress(text: string): string | null {
  const angled = /<([^<>]*)>\s*$/.exec(text);
  const bare = (angled?.[1] ?? text)
    .normalize("NFKC")
    .trim()
    .replace(/^mailto:/i, "")
    .toLowerCase();
  const at = bare.lastIndexOf("@");
  const local = bare.slice(0, at).trim();
  const domain = domainToASCII(bare.slice(at + 1).trim());
  if (bare.length > LONGEST_ADDRESS || at < 1 || !local || !domain || /\s/.test(local) || local.includes("@"))
    return null;
  return `${local}@${domain}`;
}
