import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const TESTS = resolve(__dirname, "..");
/** So many lines of one file that stand in another one too are written once: as a story's set-up, or as a helper with a name. */
const SHARED_LINES = 6;
const MOST_PAIRS = 15;

type Line = { file: string; number: number; text: string };
type Place = { lines: readonly Line[]; at: number };

/** The lines that say something: no import, no comment, no empty one. */
function linesOf(file: string): Line[] {
  const blank = (part: string) => part.replace(/[^\n]/g, "");
  const text = readFileSync(join(TESTS, file), "utf8")
    .replace(/^import [^;]*;$/gm, blank)
    .replace(/^\s*\/\*\*?[\s\S]*?\*\/$/gm, blank)
    .replace(/^\s*\/\/.*$/gm, "");
  return text
    .split("\n")
    .map((line, index) => ({ file, number: index + 1, text: line.trim() }))
    .filter(({ text }) => text !== "");
}

/** Each run of lines that stands in two places, named once by where it begins. */
function repetitions(files: readonly Line[][]): string[] {
  const seen = new Map<string, Place[]>();
  const found: string[] = [];
  for (const lines of files) {
    for (let at = 0; at + SHARED_LINES <= lines.length; at += 1) {
      const here = { lines, at };
      const run = lines.slice(at, at + SHARED_LINES).map(({ text }) => text);
      const key = run.join("\n");
      const places = seen.get(key) ?? [];
      for (const there of places) if (isBegin(there, here)) found.push(`${placeOf(there)} and ${placeOf(here)}`);
      seen.set(key, [...places, here]);
    }
  }
  return found;
}

const placeOf = ({ lines, at }: Place) => `${lines[at]?.file}:${lines[at]?.number}`;

/** Not the middle of a run that was found by its first line, nor a run that overlaps itself. */
function isBegin(one: Place, other: Place): boolean {
  if (one.lines === other.lines && other.at - one.at < SHARED_LINES) return false;
  const before = ({ lines, at }: Place) => lines[at - 1]?.text;
  return before(one) === undefined || before(one) !== before(other);
}

const FILES = readdirSync(TESTS, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));

test(`fewer than ${MOST_PAIRS + 1} pairs of places in the tests share ${SHARED_LINES} lines or more`, () => {
  const pairs = repetitions(FILES.sort().map(linesOf));
  const advice =
    "What stands twice here belongs into test/support: a world by useService (test/support/world.ts), else a helper.";
  expect(pairs.length > MOST_PAIRS ? [advice, ...pairs] : []).toEqual([]);
});

test("what stands in two places is found once, where it begins", () => {
  const file = (name: string, ...texts: string[]) => texts.map((text, at) => ({ file: name, number: at + 1, text }));
  const shared = Array.from({ length: SHARED_LINES + 2 }, (_, index) => `line ${index}`);
  expect(repetitions([file("a", "x", ...shared), file("b", ...shared, "y")])).toEqual(["a:2 and b:1"]);
  expect(repetitions([file("a", ...shared.slice(3)), file("b", ...shared.slice(3))])).toEqual([]);
  expect(repetitions([file("a", ...shared, "between", ...shared)])).toEqual([`a:1 and a:${SHARED_LINES + 4}`]);
});
