import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { TROUBLE_CODES } from "../../src/entities/connection";
import { COMMANDS } from "../../src/operator/commands";
import { VARIABLES } from "../../src/platform/config";
import { FINISH_MS } from "../../src/server/bounds";

// Seen red with: a pod that refuses at once what is still sent to it; a probe, a variable that do not exist; a job that may write to its file system.

const read = (file: string) => readFileSync(file, "utf8");

const MANIFESTS = "deploy/kubernetes";

interface Probe {
  httpGet: { path: string; port: string };
}
interface Pod {
  automountServiceAccountToken: boolean;
  terminationGracePeriodSeconds?: number;
  securityContext: object;
  containers: {
    command?: string[];
    env?: { name: string; value: string }[];
    ports?: { name: string; containerPort: number }[];
    lifecycle?: { preStop: { exec: { command: string[] } } };
    livenessProbe?: Probe;
    readinessProbe?: Probe;
    startupProbe?: Probe;
    resources: { requests: object; limits: object };
    securityContext: object;
  }[];
}
interface Manifest {
  kind: string;
  metadata: { name: string };
  spec: { template?: { spec: Pod } };
}
const manifests = readdirSync(MANIFESTS).flatMap((file) =>
  parseAllDocuments(read(join(MANIFESTS, file))).map((document) => document.toJS() as Manifest),
);
const pods = manifests.flatMap(({ kind, metadata: { name }, spec }) =>
  spec.template ? [{ kind, name, pod: spec.template.spec }] : [],
);
const containers = pods.flatMap(({ pod }) => pod.containers);

test("the manifests run API and worker apart and the migrations as a job, without rights and within limits", () => {
  expect(pods.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    "Job crm-connection-migrate",
    "Deployment crm-connection-api",
    "Deployment crm-connection-worker",
  ]);
  for (const { pod } of pods) {
    expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
    for (const { resources, securityContext } of pod.containers) {
      expect(resources).toMatchObject({
        requests: { memory: expect.any(String) },
        limits: { memory: expect.any(String) },
      });
      const closed = { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
      expect(securityContext).toEqual(closed);
    }
  }
  const roles = containers.flatMap(({ env = [] }) => env.filter(({ name }) => name === "ROLES"));
  expect(roles.map(({ value }) => value)).toEqual(["api", "worker"]);
});

test("variables, commands, ports and probes of the manifests are those of the service", () => {
  const variables = containers.flatMap(({ env = [] }) => env.map(({ name }) => name));
  expect(variables.filter((name) => !VARIABLES.has(name))).toEqual([]);
  const commands = containers.flatMap(({ command }) => command ?? []);
  expect(commands.slice(0, 2)).toEqual(["node", "dist/src/main.js"]);
  expect(Object.keys(COMMANDS)).toContain(commands[2]);
  const served = read("src/server/serving.ts");
  for (const { env = [], ports = [], ...probes } of containers) {
    const asked = [probes.livenessProbe, probes.readinessProbe, probes.startupProbe].flatMap((probe) => probe ?? []);
    expect(asked.filter(({ httpGet: { path } }) => !served.includes(`"${path}"`))).toEqual([]);
    expect(asked.filter(({ httpGet: { port } }) => !ports.some(({ name }) => name === port))).toEqual([]);
    const metricsPort = env.find(({ name }) => name === "METRICS_PORT")?.value;
    const expected = ports.map(({ name }) => ({ name, containerPort: Number(name === "http" ? 4000 : metricsPort) }));
    expect(ports).toEqual(expected);
  }
});

const DRAIN_SECONDS = Number(VARIABLES.get("DRAIN_SECONDS"));

test("a pod that requests are sent to serves on while nodes learn that it ends, and takes that off its time", () => {
  const seconds = containers.map(({ lifecycle }) => Number(lifecycle?.preStop.exec.command[1] ?? 0));
  expect(seconds).toEqual([0, 5, 0]);
  expect(5 + DRAIN_SECONDS + FINISH_MS / 1_000).toBeLessThan(75);
});

// Seen red: a pod of the API was killed at the moment at which it would have ended by itself, and said nothing of why.
test("whatever ends a process waits until it has ended by itself", () => {
  const endsBy = DRAIN_SECONDS + Number(/ENDS_WITHIN_MS = (\d+) \* SECOND_MS/.exec(read("src/main.ts"))?.[1]);
  const spare = pods.flatMap(({ pod }) => {
    const leaves = Number(pod.containers[0]?.lifecycle?.preStop.exec.command[1] ?? 0);
    return pod.terminationGracePeriodSeconds ? pod.terminationGracePeriodSeconds - leaves - endsBy : [];
  });
  const [, compose] = /stop_grace_period: (\d+)s/.exec(read("compose.yaml")) ?? [];
  expect([...spare, Number(compose) - endsBy]).toEqual([5, 5, 5]);
});

// Seen red: doctor was to be asked in a container that a fault in .env keeps from starting, crm:stop in one that has ended,
// and a dump was made by a user that compose.yaml does not have.
test("the handbook's commands for compose need no process that may be down, and name what there is", () => {
  type Service = { environment: Record<string, string> };
  const { services } = parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> };
  const handbook = read("docs/operations.md");
  const said = [...handbook.matchAll(/docker compose (run|exec) ([^`\n]+)/g)].map(([, verb, words = ""]) => {
    const [service, ...command] = words.split(" ").filter((word) => !word.startsWith("-"));
    return { verb, service, command, words };
  });
  const runs = said.filter(({ verb, service }) => verb === "run" && service);
  expect(runs.length).toBeGreaterThan(1);
  for (const { service, command } of runs) {
    expect([service, ...command.slice(0, 2)]).toEqual(["api", "node", "dist/src/main.js"]);
    expect(["doctor", ...Object.keys(COMMANDS), undefined]).toContain(command[2]);
  }
  const dumps = said.filter(({ verb }) => verb === "exec");
  expect(dumps.map(({ service, command }) => `${service} ${command[0]}`)).toEqual([
    "database pg_dump",
    "database psql",
    "database pg_restore",
  ]);
  const { POSTGRES_USER: user, POSTGRES_DB: name } = services.database?.environment ?? {};
  const [dump, emptied, restore] = dumps.map(({ words }) => words);
  for (const words of [dump, restore])
    expect(words).toMatch(new RegExp(`--username=${user} (--dbname=)?${name} [<>] `));
  const empty = `--command='ALTER DATABASE ${name} RENAME TO before' --command='CREATE DATABASE ${name}' postgres`;
  expect(emptied).toContain(`--username=${user} ${empty}`);
  const [, start = ""] = /\n## Start\n(.*?)\n## /s.exec(handbook) ?? [];
  expect(start.indexOf("main.js doctor")).toBeLessThan(start.indexOf("docker compose up"));
  expect(start).toContain("main.js doctor");
});

// Seen red: it is not read where the environment itself says "production", so all that was filled in was missing.
test("the handbook's commands read the .env that it has filled in", () => {
  const [, start = ""] = /\n## Start\n(.*?)\n## /s.exec(read("docs/operations.md")) ?? [];
  expect(start).toContain("cp .env.example .env");
  expect(start).toContain("npm run doctor && npm start");
  expect(read(".env.example")).toContain("#NODE_ENV=production");
  expect(start).not.toMatch(/NODE_ENV=\w+ (npm|node)/);
});

// Seen red: it named the handbook, which has few of them.
test("where doctor sends who sees a connection in trouble each trouble is told", () => {
  const [, document = ""] = /(docs\/\w+\.md) says what each means/.exec(read("src/operator/checks.ts")) ?? [];
  const told = read(document);
  expect(TROUBLE_CODES.filter((code) => !told.includes(`|\`${code}\`|`))).toEqual([]);
});
