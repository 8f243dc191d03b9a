import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseSync } from "@swc/core";

/** Who follows one behaviour through the code goes through rooms: many tiny ones are as hard to hold in mind as a huge one. */
const MOST_FILES = 181;
const MOST_TINY_FILES = 2;
/** Shorter ones are tiny: worth a file of their own only where many need them. */
const TINY_LINES = 30;
const MOST_SINGLE_USE_FILES = 4;
/** A file that one other imports has a purpose of its own from so many lines on. */
const SINGLE_USE_LINES = 60;
const FILE_P90 = 220;
const FILE_MAX = 400;
const FUNCTION_P90 = 30;
const FUNCTION_MAX = 70;
/** Of those that are too long, or could be joined, so many are shown. */
const SHOWN_PLACES = 25;
/** What the compiler is told instead of shown. `as const` tells it nothing. */
const MOST_CASTS = 11;

/** What has a body and is called, as the parser names it. */
const FUNCTIONS: ReadonlySet<unknown> = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
  "ClassMethod",
  "PrivateMethod",
  "Constructor",
  "MethodProperty",
  "GetterProperty",
  "SetterProperty",
]);
const CASTS: ReadonlySet<unknown> = new Set(["TsAsExpression", "TsTypeAssertion"]);

type Node = Record<string, unknown>;

interface Source {
  file: string;
  lines: number;
  nodes: readonly Node[];
  /** The lines from the file's first to where a node begins, and those of the node. */
  placeOf(node: Node): Place;
}

interface Place {
  where: string;
  lines: number;
}

const SRC = resolve(__dirname, "../../src");
const sources: readonly Source[] = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .sort()
  .map(parsed);

function linesOf(text: string): number {
  return text.trimEnd().split("\n").length;
}

function parsed(file: string): Source {
  // The parser counts bytes on from file to file: a statement of ours in front says where this one begins.
  const bytes = Buffer.from(`;${readFileSync(join(SRC, file), "utf8")}`);
  const tree = parseSync(bytes.toString(), { syntax: "typescript", decorators: true, target: "es2022" });
  const textOf = (from: number, to: number) => bytes.subarray(from - tree.span.start, to - tree.span.start).toString();
  const placeOf = (node: Node) => {
    const { start, end } = spanOf(node) ?? tree.span;
    const line = textOf(tree.span.start, start).split("\n").length;
    return { where: `${file}:${line}`, lines: linesOf(textOf(start, end)) };
  };
  return { file, lines: linesOf(bytes.toString()), nodes: nodesOf(tree), placeOf };
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null;
}

function nodesOf(value: unknown): Node[] {
  if (!isNode(value)) return [];
  return [value, ...Object.values(value).flatMap(nodesOf)];
}

function spanOf({ span }: Node): { start: number; end: number } | null {
  if (!isNode(span) || typeof span.start !== "number" || typeof span.end !== "number") return null;
  return { start: span.start, end: span.end };
}

const placesOf = (isSought: (node: Node) => boolean): Place[] =>
  sources.flatMap(({ nodes, placeOf }) => nodes.filter(isSought).map(placeOf));

/** The files of `src` that import each file, by its path without `.ts`. */
function importersOf(): Map<string, Set<string>> {
  const importers = new Map<string, Set<string>>();
  for (const { file, nodes } of sources) {
    for (const { source } of nodes) {
      const path = isNode(source) && typeof source.value === "string" ? source.value : "";
      if (!path.startsWith(".")) continue;
      const imported = join(dirname(file), path);
      importers.set(imported, (importers.get(imported) ?? new Set()).add(file));
    }
  }
  return importers;
}

const isFunction = ({ type, body, function: method }: Node): boolean =>
  FUNCTIONS.has(type) && (isNode(body) || (isNode(method) && isNode(method.body)));

const isCast = ({ type }: Node): boolean => CASTS.has(type);

const isBlindCast = (node: Node): boolean =>
  isCast(node) && isNode(node.typeAnnotation) && ["never", "unknown"].includes(String(node.typeAnnotation.kind));

/** What is too much, as a failing test shows it: the advice and then the places. */
const tooMany = (found: readonly string[], most: number, advice: string): string[] =>
  found.length > most ? [`${found.length} of at most ${most}: ${advice}`, ...found] : [];

/** Fails where more than a tenth of the places has `p90` lines, or one has `max`: the advice and then the longest. */
function tooLong(places: readonly Place[], p90: number, max: number, advice: string): string[] {
  const longestFirst = [...places].sort((a, b) => b.lines - a.lines);
  const isLong = (place: Place | undefined, limit: number) => place !== undefined && place.lines >= limit;
  if (!isLong(longestFirst[0], max) && !isLong(longestFirst[Math.ceil(places.length / 10)], p90)) return [];
  const longest = longestFirst.slice(0, SHOWN_PLACES).map(({ where, lines }) => `${where} has ${lines} lines`);
  return [`nine of ten under ${p90} lines, each under ${max}: ${advice}`, ...longest];
}

const byFile = ({ file, lines }: Source) => `${file} (${lines})`;

test(`src has at most ${MOST_FILES} files`, () => {
  const shortestFirst = [...sources].sort((a, b) => a.lines - b.lines).map(byFile);
  const found = tooMany(shortestFirst, MOST_FILES, "let what is new stand with what it serves; the shortest are");
  expect(found.slice(0, SHOWN_PLACES)).toEqual([]);
});

test(`at most ${MOST_TINY_FILES} files of src are shorter than ${TINY_LINES} lines`, () => {
  const tiny = sources.filter(({ lines }) => lines < TINY_LINES).map(byFile);
  expect(tooMany(tiny, MOST_TINY_FILES, "join a tiny file to the one that it serves")).toEqual([]);
});

test(`at most ${MOST_SINGLE_USE_FILES} files under ${SINGLE_USE_LINES} lines are imported by one other alone`, () => {
  const importers = importersOf();
  const single = sources.filter(
    ({ file, lines }) => lines < SINGLE_USE_LINES && importers.get(file.replace(/\.ts$/, ""))?.size === 1,
  );
  const advice = "join it to the file that imports it";
  expect(tooMany(single.map(byFile), MOST_SINGLE_USE_FILES, advice)).toEqual([]);
});

test(`nine of ten files of src have fewer than ${FILE_P90} lines, and each fewer than ${FILE_MAX}`, () => {
  const files = sources.map(({ file, lines }) => ({ where: file, lines }));
  expect(tooLong(files, FILE_P90, FILE_MAX, "divide by purpose what has two")).toEqual([]);
});

test(`nine of ten functions of src have fewer than ${FUNCTION_P90} lines, and each fewer than ${FUNCTION_MAX}`, () => {
  expect(tooLong(placesOf(isFunction), FUNCTION_P90, FUNCTION_MAX, "name a step, and make it a function")).toEqual([]);
});

test(`the compiler is told a type at most ${MOST_CASTS} times, and never by way of never or unknown`, () => {
  const where = (places: readonly Place[]) => places.map((place) => place.where);
  expect(
    tooMany(where(placesOf(isCast)), MOST_CASTS, "let the type be shown: a guard, a generic, `satisfies`"),
  ).toEqual([]);
  expect(where(placesOf(isBlindCast))).toEqual([]);
});
