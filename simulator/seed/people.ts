import type { Person } from "../model/records";
import type { Random } from "./random";

const foldings: Readonly<Record<string, string>> = { ł: "l", ø: "o", ß: "ss", æ: "ae", đ: "d", ı: "i", œ: "oe" };

/** The part of a name that an e-mail address or domain can hold. */
export function asciiWord(word: string): string {
  return word
    .toLowerCase()
    .replace(/[łøßæđıœ]/g, (letter) => foldings[letter] ?? "")
    .normalize("NFD")
    .replace(/[^a-z0-9]/g, "");
}

export function addressAt(name: string, domain: string): string {
  return `${name.split(" ").map(asciiWord).filter(Boolean).join(".")}@${domain}`;
}

/** Addresses as people type them into a CRM: now and then in upper case, with blanks around, or left empty. */
export function untidy(address: string, random: Random): string {
  if (random.chance(0.05)) return address.toUpperCase();
  if (random.chance(0.03)) return ` ${address} `;
  return address;
}

export function emailList(addresses: readonly string[], random: Random): Person["emails"] {
  return addresses.map((value, index) => ({
    value,
    primary: index === 0,
    label: index === 0 ? "work" : random.pick(["home", "other", "work"]),
  }));
}
