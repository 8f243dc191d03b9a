import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { SYNC_ERROR_CODES } from "../../src/entities/sync-run";
import { createMetrics } from "../../src/platform/metrics";
import { beginSeries } from "../../src/server/serving";

// Seen red with: a series that comes with its first event; a metric that does not exist; an alert left out.

const read = (file: string) => readFileSync(file, "utf8");

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
