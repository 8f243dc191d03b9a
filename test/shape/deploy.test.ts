import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { TROUBLE_CODES } from "../../src/entities/connection";
import { SYNC_ERROR_CODES } from "../../src/entities/sync-run";
import { COMMANDS } from "../../src/operator/commands";
import { VARIABLES } from "../../src/platform/config";
import { createMetrics } from "../../src/platform/metrics";
import { FINISH_MS, LEAVE_MS } from "../../src/server/bounds";
import { beginSeries } from "../../src/server/serving";

// Seen red with: a pod that refuses at once what is still sent to it; a series that comes with its first event; a metric, a probe, a variable that do not exist; a job that may write to its file system; an alert left out.

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

test("a pod that requests are sent to serves on while nodes learn that it ends, and takes that off its time", () => {
  const seconds = containers.map(({ lifecycle }) => Number(lifecycle?.preStop.exec.command[1] ?? 0));
  expect(seconds).toEqual([0, 5, 0]);
  expect(5 + (LEAVE_MS + FINISH_MS) / 1_000).toBeLessThan(75);
});

// Seen red: a pod of the API was killed at the moment at which it would have ended by itself, and said nothing of why.
test("whatever ends a process waits until it has ended by itself", () => {
  const endsBy = Number(/ENDS_WITHIN_MS = (\d+) \* SECOND_MS/.exec(read("src/main.ts"))?.[1]);
  const spare = pods.flatMap(({ pod }) => {
    const leaves = Number(pod.containers[0]?.lifecycle?.preStop.exec.command[1] ?? 0);
    return pod.terminationGracePeriodSeconds ? pod.terminationGracePeriodSeconds - leaves - endsBy : [];
  });
  const [, compose] = /stop_grace_period: (\d+)s/.exec(read("compose.yaml")) ?? [];
  expect([...spare, Number(compose) - endsBy]).toEqual([5, 5, 5]);
});

interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels?: { severity: string; slo?: string };
}
const { groups } = parse(read("deploy/prometheus/rules.yaml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
/** Of all metrics, and of what is recorded of them. */
const metricNames = async () => [
  ...(await createMetrics().registry.getMetricsAsJSON()).map(({ name }) => name),
  ...rules.flatMap(({ record }) => record ?? []),
];
const namesIn = (text: string) => text.match(/\b[a-z]\w*[_:]\w+(:\w+)*\b/g) ?? [];

test("every metric of the Prometheus rules exists", async () => {
  const names = await metricNames();
  const words = ["histogram_quantile", "clamp_min", "present_over_time"];
  const known = new Set([...names, ...names.flatMap((name) => [`${name}_bucket`, `${name}_count`]), ...words]);
  expect(rules.length).toBeGreaterThan(20);
  expect(rules.flatMap(({ expr }) => namesIn(expr)).filter((name) => !known.has(name))).toEqual([]);
});

// Seen red: no Prometheus 3 could tell that queries were slow, for it has no bucket "1".
test("no rule names a bucket of a whole number, which Prometheus 2 and 3 write differently", () => {
  const bounds = rules.flatMap(({ expr }) => [...expr.matchAll(/\ble(?:=~?|!=|!~)"([^"]*)"/g)].map(([, le]) => le));
  expect(bounds.length).toBeGreaterThan(1);
  expect(bounds.filter((le) => Number.isInteger(Number(le)))).toEqual([]);
});

// Seen red: any other Node process of the same Prometheus was ours that is busy, any other exporter ours that dies.
test("what whatever program tells is asked of the processes of this service alone", () => {
  const ofAll = rules.filter(({ expr }) => /\b(process|nodejs)_/.test(expr));
  expect(ofAll.map(({ alert }) => alert)).toEqual(["ProcessBusy", "ProcessDies"]);
  const ours = / and on \(job, instance\) (present_over_time\()?crm_writes_total/;
  expect(ofAll.filter(({ expr }) => !ours.test(expr) || /\b(max|sum)\b/.test(expr))).toEqual([]);
});

// Seen red: where the CRM called all accounts closed, or gave all of them another's tokens, nobody was told.
test("what a run may end with is too much of itself, or of all", () => {
  const outcomes = (how: string) =>
    rules.flatMap(({ expr }) =>
      [...expr.matchAll(new RegExp(`sync_runs_total\\{outcome${how}"([^"]+)"`, "g"))].flatMap(([, some = ""]) =>
        some.split("|"),
      ),
    );
  const told = outcomes("=~?");
  // Of companies that are short their own alert tells.
  expect(outcomes("!~").filter((outcome) => !told.includes(outcome))).toEqual(["SUCCEEDED", "BUDGET_LOW"]);
});

// Seen red: of the renewals of a quarter of an hour, which of few connections are one or none.
test("a rule of a share asks for some, and over more than the time between two runs", () => {
  const shares = rules.filter(({ expr }) => /\b0?\.\d+ \* /.test(expr));
  expect(shares.length).toBeGreaterThan(5);
  expect(shares.filter(({ expr }) => /[<>] 0?\.\d+ \* /.test(expr))).toEqual([]);
  const ofRenewals = rules.filter(({ expr }) => /token_renewals_total/.test(expr));
  expect(ofRenewals.filter(({ expr }) => /\[\d+m\]/.test(expr))).toEqual([]);
});

test("what a rule counts by a label is there from the start, or the first event would be no increase", async () => {
  const metrics = createMetrics();
  beginSeries(metrics);
  const lines = (await metrics.registry.metrics()).split("\n");
  const counted = rules.flatMap(({ expr }) => [...expr.matchAll(/(\w+)\{([^}]+)\}/g)]);
  expect(counted.length).toBeGreaterThan(8);
  /** Each of the values, with each of the other labels'. */
  const seriesOf = (name = "", labels = "") =>
    [...labels.matchAll(/(\w+)=~?"([^"]+)"/g)].reduce(
      (series, [, label, values = ""]) =>
        series.flatMap((one) => values.split("|").map((value) => `${one} ${label}="${value}"`)),
      [`${name}{`],
    );
  const missing = counted
    .flatMap(([, name, labels]) => seriesOf(name, labels))
    .filter((series) => !lines.some((line) => series.split(" ").every((part) => line.includes(part))));
  expect(missing).toEqual([]);
  const outcomes = SYNC_ERROR_CODES.filter((code) => !lines.some((line) => line.includes(`outcome="${code}"`)));
  expect(outcomes).toEqual([]);
});

test("every alert of the handbook's table that is of a metric is a rule, and the objectives are named", async () => {
  const names = await metricNames();
  const [, section = ""] = /\n## Alerts\n(.*?)\n## /s.exec(read("docs/operations.md")) ?? [];
  const rows = [...section.matchAll(/^\| (.+?) (?<!\\)\|/gm)].map(([, what = ""]) => what).slice(1);
  expect(rows.length).toBeGreaterThan(15);
  const others = rows.filter((row) => !names.some((name) => row.includes(name)));
  expect(others.filter((row) => !/^(SQL: |log line |`\/readyz`|the database's disk)/.test(row))).toEqual([]);
  const alerts = rules.filter(({ alert }) => alert).map(({ expr }) => expr);
  // Whom a pager wakes has its name alone to look for.
  const rowsOf = (alert: string) => rows.filter((row) => new RegExp(`\\b${alert}\\b`).test(row)).length;
  expect(rules.flatMap(({ alert = "" }) => (alert && rowsOf(alert) !== 1 ? alert : []))).toEqual([]);
  const told = names.filter((name) => rows.some((row) => row.includes(name)));
  const recorded = rules.flatMap(({ record, expr }) => (record ? [expr] : []));
  expect(told.filter((name) => ![...alerts, ...recorded].some((expr) => expr.includes(name)))).toEqual([]);
  expect(new Set(rules.flatMap(({ labels }) => labels?.slo ?? []))).toEqual(
    new Set(["briefing", "freshness", "writes", "budget"]),
  );
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
