import { Prepared } from "../../src/database/session";
import { SESSION_LIFE_MS } from "../../src/database/session-limits";

const CHARACTERS = 100_000;
const MOST = 5;
const read = (number: number) => `SELECT ${number}`.padEnd(CHARACTERS);

/** As asked for twice. */
function nameOf(prepared: Prepared, text: string): string | null {
  prepared.nameOf(text);
  return prepared.nameOf(text);
}

// Seen red with each of these left out.
test("a read that comes again is prepared under a name of its own, what comes once or is no read is not", () => {
  const prepared = new Prepared();
  expect(prepared.nameOf(read(1))).toBeNull();
  const name = prepared.nameOf(read(1));
  expect(name).toEqual(expect.any(String));
  expect(prepared.nameOf(read(1))).toBe(name);
  expect(nameOf(prepared, read(2))).not.toBe(name);
  expect(nameOf(prepared, "DELETE FROM deal")).toBeNull();
});

test("once as many are kept as sessions may hold, others take their place as often as sessions are opened anew", () => {
  let now = 0;
  const prepared = new Prepared(() => now);
  const first = Array.from({ length: MOST }, (_, index) => nameOf(prepared, read(index)));
  expect(first).not.toContain(null);
  now = SESSION_LIFE_MS - 1;
  expect(nameOf(prepared, read(MOST))).toBeNull();
  expect(prepared.nameOf(read(0))).toBe(first[0]);

  now = SESSION_LIFE_MS;
  const second = Array.from({ length: MOST }, (_, index) => nameOf(prepared, read(MOST - index)));
  // A session may still hold what had the name before.
  expect(new Set([...first, ...second]).size).toBe(2 * MOST);
  expect(second).not.toContain(null);
  now = 2 * SESSION_LIFE_MS - 1;
  expect(nameOf(prepared, read(0))).toBeNull();
});
