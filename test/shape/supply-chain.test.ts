import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { satisfies, subset } from "semver";
import { parse } from "yaml";

// Seen red with: a licence taken off the list, and the version of cookie that wants Node 22.

const json = (file: string) => JSON.parse(readFileSync(file, "utf8")) as unknown;

interface Locked {
  version: string;
  license?: string;
  integrity?: string;
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  engines?: { node?: string };
}
const { packages } = json("package-lock.json") as { packages: Record<string, Locked> };
/** What the image has: `npm ci --omit=dev --omit=optional`. */
const shipped = Object.entries(packages).filter(
  ([path, { dev, optional, devOptional }]) => path !== "" && !dev && !optional && !devOptional,
);
const own = json("package.json") as Record<string, Record<string, string>>;

/** None of them asks for more than to name its authors. Another one is a question to a lawyer, not to the list. */
const ALLOWED = [
  "0BSD",
  "(MIT AND BSD-3-Clause)",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "PSF-2.0",
  "Python-2.0",
];

test("every package that is shipped has a licence that may be", () => {
  expect(shipped.length).toBeGreaterThan(200);
  const others = shipped.filter(([, { license = "none" }]) => !ALLOWED.includes(license));
  expect(others.map(([path, { license }]) => `${path}: ${license}`)).toEqual([]);
});

test("the licence that the lock file says is the one that the package says", () => {
  const differing = shipped.flatMap(([path, { license }]) => {
    if (!existsSync(`${path}/package.json`)) return [];
    const { license: said } = json(`${path}/package.json`) as { license?: string | { type: string } };
    const name = typeof said === "object" ? said.type : said;
    return name === undefined || name === license ? [] : [`${path}: ${license}, and says ${name}`];
  });
  expect(differing).toEqual([]);
});

test("every package that is shipped runs on each Node that the service says it runs on", () => {
  const range = own.engines?.node ?? "";
  expect(["20.19.0", "22.13.0", "24.11.0"].filter((version) => !satisfies(version, range))).toEqual([]);
  const narrower = shipped.flatMap(([path, { engines }]) =>
    subset(range, engines?.node ?? "*") ? [] : [`${path}: ${engines?.node}`],
  );
  expect(narrower).toEqual([]);
});

// Seen red: "20.19 or newer", which 22.12 and 24.10 are.
test.each(["README.md", "CONTRIBUTING.md"])("%s names the oldest Node of each line that is served", (document) => {
  const oldest = own.engines?.node?.match(/\d+\.\d+(?=\.0)/g) ?? [];
  expect(oldest.length).toBeGreaterThan(1);
  expect(readFileSync(document, "utf8")).toContain(`Node ${oldest.join(", ")} or newer`);
});

test("versions are exact, and what is fetched is what was locked", () => {
  const named = { ...own.dependencies, ...own.devDependencies };
  expect(Object.entries(named).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  expect(shipped.filter(([, { integrity }]) => !integrity?.startsWith("sha512-")).map(([path]) => path)).toEqual([]);
});

// Not `npm sbom --omit dev`, which leaves out what a development package needs as well: pg, for one.
test("the bill of materials names every package that is shipped", () => {
  const stdio: ["ignore", "pipe", "ignore"] = ["ignore", "pipe", "ignore"];
  const text = execFileSync("npm", ["run", "--silent", "sbom"], {
    encoding: "utf8",
    stdio,
    maxBuffer: 64 * 1024 * 1024,
  });
  const { components } = JSON.parse(text) as { components: { name: string; version: string }[] };
  const listed = new Set(components.map(({ name, version }) => `${name}@${version}`));
  const nameOf = (path: string) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const missing = shipped.filter(([path, { version }]) => !listed.has(`${nameOf(path)}@${version}`));
  expect(missing.map(([path]) => path)).toEqual([]);
});

test("new versions of packages and images are asked for", () => {
  const { updates } = parse(readFileSync(".github/dependabot.yml", "utf8")) as {
    updates: { "package-ecosystem": string }[];
  };
  const watched = updates.map((update) => update["package-ecosystem"]);
  expect(watched).toEqual(expect.arrayContaining(["npm", "docker", "docker-compose"]));
});
