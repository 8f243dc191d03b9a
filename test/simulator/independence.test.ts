import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const root = join(__dirname, "../../simulator");
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(/(?:from|import|require\()\s*"([^"]+)"/g)].map((match) => match[1] ?? "");
}

test("the simulator imports nothing of the product it stands against", () => {
  const allowed = new Set(["fastify", "pipedrive/v1", "pipedrive/v2"]);
  const foreign = files.flatMap((file) =>
    importsOf(file)
      .filter((name) => !name.startsWith("node:") && !allowed.has(name))
      .filter((name) => !name.startsWith(".") || relative(root, join(root, dirname(file), name)).startsWith(".."))
      .map((name) => `${file}: ${name}`),
  );
  expect(files.length).toBeGreaterThan(20);
  expect(foreign).toEqual([]);
});

test("the official package gives types only: nothing of it runs here", () => {
  for (const file of files) {
    expect(readFileSync(join(root, file), "utf8")).not.toMatch(/^import \{[^}]*\} from "pipedrive/m);
  }
});

test("no two folders import each other", () => {
  const folders = new Map<string, Set<string>>();
  for (const file of files) {
    for (const name of importsOf(file).filter((one) => one.startsWith("."))) {
      const from = dirname(file);
      const to = dirname(relative(root, join(root, from, name)));
      if (from !== to) folders.set(from, (folders.get(from) ?? new Set()).add(to));
    }
  }
  const mutual = [...folders].flatMap(([from, targets]) =>
    [...targets].filter((to) => folders.get(to)?.has(from)).map((to) => `${from} <-> ${to}`),
  );
  expect(mutual).toEqual([]);
});
