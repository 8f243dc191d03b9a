import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const read = (file: string) => readFileSync(file, "utf8");
const filesUnder = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !/node_modules|(^|\/)dist\//.test(path))
    .map((path) => join(folder, path));

const PAGES = filesUnder("docs/decisions").filter((file) => /\/\d{4}-[^/]+\.md$/.test(file));
const DOCUMENTS = [
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "bench/README.md",
  ...filesUnder("docs").filter((file) => file.endsWith(".md")),
];
const numberOf = (page: string) => basename(page).slice(0, 4);
const numbers = PAGES.map(numberOf);

/** The specification's clauses as its sections count them: a list of names, or how many there are. */
const CLAUSES: Record<string, number | string[]> = {
  "1 item": 7,
  "1.1 item": 3,
  "1.1 row": ["A", "B", "C"],
  "1.2 item": 7,
  "2.1 row": ["Organizations", "Persons", "Deals", "Pipelines", "Stages", "Activities", "Notes", "Users"],
  "2.2 row": ["Owner organization", "Bound CRM account", "Stored credentials", "Synced copy"],
  "2.3 row": ["entity", "field key"],
  "2.3 rule": 3,
  "2.3 text": [""],
  "3 text": 3,
  "3 row": 7,
  "4.1 text": [""],
  "4.2 text": 3,
  "4.2 row": 9,
  "4.3 row": 2,
  "4.3 text": [""],
  "4.3 rule": 3,
  "5 item": 11,
  "5.1 row": [
    "deals:read",
    "deals:write",
    "persons:read",
    "persons:write",
    "organizations:read",
    "organizations:write",
    "pipelines:read",
    "activities:read",
    "users:read",
    "activities:write",
    "products:read",
    "products:write",
  ],
  "5.1 rule": 3,
  "6 text": [""],
  "7 row": 9,
  "7 text": [""],
  "8 row": 5,
  "8 text": [""],
  "9 item": 2,
};

/** The rows of the map: their clauses, and what shows them. */
const rows = read("docs/specification.md")
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) => {
    const cells = line.split("|").slice(1, -1);
    return { cells: cells.length, clauses: clausesOf(cells[0]?.trim() ?? ""), shown: cells.at(-1)?.trim() ?? "" };
  });
const clauses = rows.flatMap((row) => row.clauses);

/** "1.2 item 1, 2" are two. */
function clausesOf(cell: string): string[] {
  const [section, kind, ...names] = cell.split(" ");
  return names
    .join(" ")
    .split(", ")
    .map((name) => `${section} ${kind} ${name}`.trim());
}

/** Where a name of the map may stand; a name that stands in two places would mean neither. */
function testFilesOf(name: string): string[] {
  const folders = name.includes("/") ? ["test"] : ["test/specification", "test/unit", "test/shape"];
  return folders.map((folder) => join(folder, `${name}.test.ts`)).filter((file) => existsSync(file));
}

/** Each quoted title with the file named before it. */
function titlesIn(shown: string): { file: string; title: string }[] {
  let file = "";
  return [...shown.matchAll(/`([^`]+)`|"([^"]+)"/g)].flatMap(([, name, title]) => {
    if (name !== undefined) file = testFilesOf(name)[0] ?? name;
    return title === undefined ? [] : [{ file, title }];
  });
}

/** How many titles of the file a quoted one could be. */
function titlesLike(file: string, title: string): number {
  if (!existsSync(file)) return 0;
  const start = title.replace(/ \.\.\.$/, "");
  const source = read(file).replaceAll("\\", "");
  const like = ['"', "'", "`"].map((quote) => source.split(quote + start + (start === title ? quote : "")).length - 1);
  return Math.max(...like);
}

test("each clause of the specification is in the map, and says what shows it or why nothing does", () => {
  const expected = Object.entries(CLAUSES).flatMap(([kind, which]) => {
    const names = typeof which === "number" ? Array.from({ length: which }, (_, index) => `${index + 1}`) : which;
    return names.map((name) => `${kind} ${name}`.trim());
  });
  expect([...clauses].sort()).toEqual(expected.sort());
  expect(rows.filter(({ cells }) => cells !== 4)).toEqual([]);
  expect(rows.filter(({ shown }) => !/`|^a fact$|^as /.test(shown))).toEqual([]);
  expect(read("docs/specification.md")).not.toMatch(/\bnot yet\b/i);
});

test("what is shown as another clause is shown by a test there", () => {
  const shownBy = new Map(rows.flatMap((row) => row.clauses.map((clause) => [clause, row.shown])));
  const others = rows.flatMap(({ shown }) => (shown.startsWith("as ") ? [shown.slice("as ".length)] : []));
  expect(others.length).toBeGreaterThan(0);
  expect(others.filter((clause) => !shownBy.get(clause)?.startsWith("`"))).toEqual([]);
});

test("each test file that the map names is one file", () => {
  const named = rows.flatMap(({ shown }) => [...shown.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
  expect(named.length).toBeGreaterThan(80);
  expect(named.filter((name) => testFilesOf(name).length !== 1)).toEqual([]);
});

test("each title that the map quotes is one of the file named before it, and no other is like it", () => {
  const titles = rows.flatMap(({ shown }) => titlesIn(shown));
  expect(titles.length).toBeGreaterThan(80);
  expect(titles.filter(({ file, title }) => titlesLike(file, title) !== 1)).toEqual([]);
});

test("each decision that the map or a comment names exists", () => {
  const inMap = [...read("docs/specification.md").matchAll(/\b(00\d\d)\b/g)];
  const sources = ["src", "simulator", "demo", "bench", "web/src", "test"].flatMap(filesUnder);
  const inComments = sources
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) => [...read(file).matchAll(/\bdecisions? (00\d\d)/gi)]);
  expect(inComments.length).toBeGreaterThan(5);
  expect([...inMap, ...inComments].map(([, number = ""]) => number).filter((n) => !numbers.includes(n))).toEqual([]);
});

test("comments and documents name no design page: decisions are here, that is not", () => {
  const sources = ["src", "simulator", "demo", "bench", "web/src", "test", "docs"].flatMap(filesUnder);
  const naming = sources.filter((file) => /\.(tsx?|md)$/.test(file) && /\bdesign \d/i.test(read(file)));
  expect(naming).toEqual([]);
});

test("the list of decisions has every page, in order, under the page's own title", () => {
  const listed = [...read("docs/decisions/README.md").matchAll(/^- \[(\d{4})\]\(([^)]+)\) (.+)$/gm)];
  const pages = [...PAGES].sort().map((page) => {
    const [, number, title] = /^# (\d{4}): (.+)$/m.exec(read(page)) ?? [];
    return [number, basename(page), title];
  });
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(listed.map(([, ...row]) => row)).toEqual(pages);
});

test.each([...PAGES].sort())("%s has background, decision, example and consequence", (page) => {
  const parts = [...read(page).matchAll(/^\*\*(Background|Decision|Example|Consequence)\.\*\* ?/gm)];
  expect(parts.map(([, part]) => part)).toEqual(["Background", "Decision", "Example", "Consequence"]);
});

test("each link between the documents leads to a file, and to a heading where it names one", () => {
  const dead = DOCUMENTS.flatMap((document) =>
    [...read(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)]
      .filter(([, path = "", heading]) => {
        const target = path === "" ? document : join(dirname(document), path);
        return !existsSync(target) || (heading !== undefined && !headingsOf(target).includes(heading));
      })
      .map(([link]) => `${document}: ${link}`),
  );
  expect(dead).toEqual([]);
});

test("each test file that the documents name by its folder exists", () => {
  const folders = readdirSync("test").filter((name) => name !== "support");
  const place = new RegExp(`\`(?:test/)?((?:${folders.join("|")})/[\\w-]+)(?:\\.test\\.ts)?\``, "g");
  const named = DOCUMENTS.flatMap((document) => [...read(document).matchAll(place)].map(([, name = ""]) => name));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !existsSync(`test/${name}.test.ts`) && !existsSync(`test/${name}`))).toEqual([]);
});

test("each source file that the documents name by its folder exists", () => {
  const folders = readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const place = new RegExp(`\`(?:src/)?((?:${folders.map(({ name }) => name).join("|")})/[\\w./-]+\\.ts)\``, "g");
  const gone = DOCUMENTS.flatMap((document) =>
    [...read(document).matchAll(place)]
      .filter(([, path = ""]) => !existsSync(join("src", path)))
      .map(([name]) => `${document}: ${name}`),
  );
  expect(gone).toEqual([]);
});

function headingsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
