import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** The house's layers, top first: a folder imports those below it and no other (docs/architecture.md). */
const LAYERS = [
  "operator",
  "server",
  "resolvers",
  "schema",
  "writeback",
  "briefing",
  "sync",
  "connections",
  "auth",
  "entities",
  "database",
  "crm",
  "platform",
];
/** Below each other in the list, and still strangers. */
const STRANGERS = [
  ["crm", "entities"],
  ["sync", "briefing"],
  ["sync", "writeback"],
  ["briefing", "writeback"],
];
/** The entry, the process and the composition root may know everyone. */
const ROOTS = new Set(["main.ts", "app.ts", "services.ts"]);
const ROOT = resolve(__dirname, "../..");

function filesUnder(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return filesUnder(path);
    return path.endsWith(".ts") || path.endsWith(".tsx") ? [path] : [];
  });
}

const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import|require\(|import\()\s*["'](\.[^"']*)["']/g)].map(([, path]) => path ?? "");

interface Import {
  file: string;
  from: string;
  to: string;
}

/** Every import between two folders directly below `top`. */
function importsBetweenFolders(top: string): Import[] {
  const base = join(ROOT, top);
  const folderOf = (path: string) => {
    const [first = "", ...rest] = relative(base, path).split("/");
    return rest.length === 0 ? "" : first;
  };
  return filesUnder(base)
    .flatMap((file) =>
      importsOf(readFileSync(file, "utf8")).map((path) => ({
        file: relative(ROOT, file),
        from: folderOf(file),
        to: folderOf(resolve(dirname(file), path)),
      })),
    )
    .filter(({ from, to }) => from !== to);
}

const importsFromOutside = (top: string) =>
  filesUnder(join(ROOT, top)).flatMap((file) =>
    importsOf(readFileSync(file, "utf8"))
      .map((path) => relative(ROOT, resolve(dirname(file), path)))
      .filter((path) => !path.startsWith(top))
      .map((path) => ({ file: relative(ROOT, file), path })),
  );

test("src has the layers of the design and nothing beside them", () => {
  const entries = readdirSync(join(ROOT, "src"));
  const unknown = entries.filter((name) => !LAYERS.includes(name) && !ROOTS.has(name));
  expect(unknown).toEqual([]);
});

test("imports go down the layers, never up and never across to a stranger", () => {
  const offences = importsBetweenFolders("src").filter(({ from, to }) => {
    if (from === "") return false;
    const isStranger = STRANGERS.some((pair) => pair.includes(from) && pair.includes(to));
    return isStranger || LAYERS.indexOf(to) <= LAYERS.indexOf(from);
  });
  expect(offences).toEqual([]);
});

test.each(["src", "simulator", "demo", "bench", "web/src", "test"])("no two folders of %s import each other", (top) => {
  const pairs = new Set(importsBetweenFolders(top).map(({ from, to }) => `${from} -> ${to}`));
  const mutual = [...pairs].filter((pair) => pairs.has(pair.split(" -> ").reverse().join(" -> ")));
  expect(mutual).toEqual([]);
});

test("the simulator knows nothing of the service", () => {
  expect(importsFromOutside("simulator")).toEqual([]);
});

test("the service knows nothing of the simulator, the demo, the benchmarks or the tests", () => {
  expect(importsFromOutside("src")).toEqual([]);
});

test("only the configuration reads the environment", () => {
  const readers = filesUnder(join(ROOT, "src")).filter((file) =>
    /process\s*\.\s*env|process\[/.test(readFileSync(file, "utf8")),
  );
  expect(readers.map((file) => relative(ROOT, file))).toEqual(["src/platform/config.ts"]);
});

test("the page is a client of the public API: it knows no part of the service, and no part knows it", () => {
  expect(importsFromOutside("web/src")).toEqual([]);
});
