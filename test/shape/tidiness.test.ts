import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const ROOT = resolve(__dirname, "../..");
const LONGEST_FILE = 400;
const P90_FILE = 250;
/** Of README, docs and bench/README together: about an hour and a half of reading. */
const MOST_WORDS = 22_000;
/** Made by tools, not by people. */
const NOT_OURS = new Set(["node_modules", "dist", ".data", ".git"]);

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (NOT_OURS.has(entry.name)) return [];
    return entry.isDirectory() ? filesUnder(path) : [relative(ROOT, path)];
  });
}

const files = filesUnder(ROOT);
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const sources = files.filter(
  (file) => /^(src|simulator|demo|bench|web|test)\/.*\.tsx?$/.test(file) && !file.endsWith(".generated.ts"),
);

test("no file outgrows its purpose", () => {
  const lengths = sources.map((file) => ({ file, lines: read(file).split("\n").length }));
  expect(lengths.filter(({ lines }) => lines > LONGEST_FILE)).toEqual([]);
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b);
  expect(sorted[Math.floor(sorted.length * 0.9)]).toBeLessThan(P90_FILE);
});

// Seen red: with core.autocrlf, Biome and a dozen tests failed, and none said why.
test("a checkout has one kind of line ends, whatever core.autocrlf says", () => {
  expect(read(".gitattributes")).toMatch(/^\* text=auto eol=lf$/m);
  expect(files.filter((file) => /\.(tsx?|md|graphql)$/.test(file) && read(file).includes("\r\n"))).toEqual([]);
});

test("a newcomer can read all documents in a morning", () => {
  const documents = files.filter((file) => /^(README\.md|docs\/.*\.md|bench\/README\.md)$/.test(file));
  const counts = documents.map((file) => read(file).split(/\s+/).filter(Boolean).length);
  expect(documents).toContain("docs/api.md");
  expect(counts.reduce((sum, words) => sum + words, 0)).toBeLessThanOrEqual(MOST_WORDS);
});

test("nothing is left unfinished or silenced", () => {
  const marks =
    /\b(TODO|FIXME|XXX|HACK)\b|@ts-(ignore|expect-error|nocheck)|biome-ignore|\b(test|describe|it)\.(skip|only)\(/;
  const offenders = sources.filter((file) => file !== "test/shape/tidiness.test.ts" && marks.test(read(file)));
  expect(offenders).toEqual([]);
});

test("one word for one thing: no two modules export the same name, but the public schema's forms of it", () => {
  const exported = /^export (?:async |abstract )*(?:const|function\*?|interface|type|class|enum) (\w+)/gm;
  const names = files.flatMap((file) =>
    /^src\/(?!schema\/).*\.ts$/.test(file) ? [...read(file).matchAll(exported)].map(([, name]) => name) : [],
  );
  expect(names.length).toBeGreaterThan(1_000);
  expect(names.filter((name, place) => names.indexOf(name) < place)).toEqual([]);
});

test("tests mock no module", () => {
  const mocks = /jest\.(mock|doMock|unstable_mockModule|spyOn)\(/;
  const offenders = sources.filter((file) => file.startsWith("test/") && mocks.test(read(file)));
  expect(offenders.filter((file) => file !== "test/shape/tidiness.test.ts")).toEqual([]);
});

test("the lock file and the documents name no package registry's host", () => {
  const hosts = /registry\.npmjs\.org|registry\.yarnpkg\.com|npm\.pkg\.github\.com/;
  expect(files.filter((file) => /\.(md|json|ya?ml)$|^\.ci\//.test(file) && hosts.test(read(file)))).toEqual([]);
});
