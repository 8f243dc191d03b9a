import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EnvHttpProxyAgent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import type { SimulatorOptions } from "../../simulator";
import { type ProbeReport, reportInto } from "../../src/operator/crm-probe";
import { examine } from "../../src/operator/doctor";
import { dumpState } from "../support/dump";
import { startProgram } from "../support/processes";
import { connect, noJobIsDue, syncEnds } from "../support/stories";
import { World } from "../support/world";

// Seen red with: participants_count compared with all participants; a report that has the addresses with their ids; a
// floor that is not looked at.

jest.setTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "probe-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Probed {
  world: World;
  code: number | string;
  text: string;
  /** null: none was written. */
  report: ProbeReport | null;
  file: string;
}

let probes = 0;

/** An account of such a CRM, connected and read; then the command, as an operator gives it. */
async function probed(
  options: Omit<SimulatorOptions, "now">,
  prepare: (world: World) => unknown = () => undefined,
  words: string[] = ["--crm", "acme"],
): Promise<Probed> {
  const world = await World.start({ deals: 100, ...options });
  started.push(world);
  const service = await world.startService();
  await connect(service, world.simulator, { tenant: "acme" });
  await syncEnds(service, { tenant: "acme" });
  await noJobIsDue(world.database);
  await service.stop();
  await prepare(world);
  world.simulator.log.clear();
  const file = join(folder, `${++probes}.json`);
  const program = startProgram("src/main.js", world.environment, ["doctor", ...words, file]);
  const code = await program.ended;
  const report = code === 0 ? (JSON.parse(readFileSync(file, "utf8")) as ProbeReport) : null;
  return { world, code, text: program.output(), report, file };
}

const started: World[] = [];
afterEach(async () => {
  for (const world of started.splice(0)) await world.stop();
});

const said = (report: ProbeReport | null) =>
  Object.fromEntries((report?.facts ?? []).map(({ fact, says }) => [fact, says]));

/** The company's users, persons and deals as they were read, the deal that is in the bin among them. */
function forget({ simulator }: World): void {
  const [deal] = [...simulator.company.deals.values()].filter(({ status, id }) => status === "open" && id > 10);
  if (deal) simulator.control.remove("deal", deal.id);
}

const ONE_WAY = {
  "participants_count counts the deal's person": "YES",
  "participants lists the deal's person": "YES",
  "a participant who joins moves the deal's update time": "NO",
  "a mail moves the person's update time": "NO",
  "ids= of a deleted deal": "LEFT_OUT",
  "the single read of a deleted deal": "SHOWN",
  "answers tell the company's balance": "ALL",
  "x-ratelimit-reset is": "SECONDS",
  "prices by neighbouring balances": "AS_DOCUMENTED",
  "a page of notes is as long as was asked for": "UNKNOWN",
  "users that were deactivated are listed": "YES",
};

/** Somebody joins each deal now: the simulated CRM leaves the deal's update time as it is, or is told to move it. */
const joinDeals =
  (updateTime?: "moves") =>
  (world: World): void => {
    const { control, company } = world.simulator;
    control.advance(1_800);
    for (const { id } of company.deals.values()) {
      const links = (company.participants.get(id) ?? []).map(({ personId }) => personId);
      const joining = [...company.persons.values()].find((person) => !person.is_deleted && !links.includes(person.id));
      if (links.length > 0 && joining) control.setParticipants(id, [...links, joining.id], updateTime);
    }
    forget(world);
  };

test("an account of one kind: what is not confirmed is settled, by reading alone, and nothing of its content is told", async () => {
  const { world, code, text, report, file } = await probed({}, joinDeals());
  expect([code, said(report)]).toEqual([0, ONE_WAY]);
  const { simulator } = world;
  expect([...new Set(simulator.log.all().map(({ method }) => method))]).toEqual(["GET"]);
  const tokens = simulator.log.all().reduce((sum, entry) => sum + (entry.tokens ?? 0), 0);
  expect(tokens).toBe(report?.calls.reduce((sum, { price }) => sum + price, 0));
  expect(tokens).toBeLessThan(200);
  expect(report?.calls[0]?.headers).toEqual([
    "date",
    "x-correlation-id",
    ...["x-daily-ratelimit-token-limit", "x-daily-ratelimit-token-remaining"],
    ...["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
  ]);
  const { company } = simulator;
  const content = [
    ...[...company.users.values()].flatMap(({ name, email }) => [name, email]),
    ...[...company.persons.values()].flatMap(({ name, emails }) => [name, ...emails.map(({ value }) => value)]),
    ...[...company.deals.values()].map(({ title }) => title),
    ...[company.name, company.domain, String(company.id), "acme"],
  ];
  const told = text + readFileSync(file, "utf8");
  expect(content.filter((word) => word.trim() !== "" && told.includes(word))).toEqual([]);
  expect(/\/\d/.test(told)).toBe(false);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  // Seen red: the customer's account was read in the name of its user, and nothing told of it.
  const events = "SELECT action, user_id FROM audit_event ORDER BY id DESC LIMIT 1";
  expect(await world.database.query(events)).toEqual([{ action: "CRM_PROBED", user_id: null }]);
});

test("its tokens are paid from the company's budget, as those of syncs", async () => {
  const { world, report } = await probed({ dailyTokens: 30_000 }, async ({ database }) => {
    await database.query("UPDATE crm_budget SET spent_on_syncs = 0");
  });
  const [{ spent } = { spent: 0 }] = await world.database.query<{ spent: number }>(
    "SELECT spent_on_syncs::int AS spent FROM crm_budget",
  );
  expect(spent).toBe(report?.calls.reduce((sum, { price }) => sum + price, 0));
});

test("an account of the other kind says the opposite of each", async () => {
  const { code, report } = await probed(
    { dealsPerson: "does not count", deletedByIds: "shows", notesPerPage: 5 },
    (world) => {
      const { control, company } = world.simulator;
      joinDeals("moves")(world);
      for (const person of company.persons.values()) {
        const times = [person.last_incoming_mail_time ?? "", person.last_outgoing_mail_time ?? ""];
        const last = times.sort().at(-1);
        if (last && last > (person.update_time ?? "")) control.change("person", person.id, { update_time: last });
      }
      const inAnHour = { "x-ratelimit-reset": String(Math.round(Date.now() / 1_000) + 3_600) };
      const none = { "x-daily-ratelimit-token-limit": null, "x-daily-ratelimit-token-remaining": null };
      const gone = { success: false, error: "Deal not found" };
      control.fail({ match: /deals\/\d+$/, with: { status: 404, body: gone } });
      control.fail({ match: "/api/v1/users/me", with: { kind: "headers", headers: { ...none, ...inAnHour } } });
      control.fail({ match: "/api", with: { kind: "headers", headers: inAnHour } });
    },
  );
  expect([code, said(report)]).toEqual([
    0,
    {
      ...ONE_WAY,
      "participants_count counts the deal's person": "NO",
      "a participant who joins moves the deal's update time": "YES",
      "a mail moves the person's update time": "YES",
      "ids= of a deleted deal": "SHOWN",
      "the single read of a deleted deal": "NOT_FOUND",
      "answers tell the company's balance": "SOME",
      "x-ratelimit-reset is": "AN_INSTANT",
      "a page of notes is as long as was asked for": "NO",
    },
  ]);
});

test("prices that are others than the reference's show, and a CRM that tells no balance is no reason to fail", async () => {
  const dearer = await probed({}, ({ simulator }) => {
    let left = 2_000_000;
    const headers = () => {
      left -= 50;
      return { "x-daily-ratelimit-token-remaining": String(left) };
    };
    simulator.control.fail({ match: "/api", with: { kind: "headers", headers } });
  });
  expect(said(dearer.report)).toMatchObject({ "prices by neighbouring balances": "OTHERWISE" });
  const silent = await probed({}, ({ simulator }) => simulator.control.budgetHeaders("off"));
  expect(said(silent.report)).toMatchObject({
    "answers tell the company's balance": "NONE",
    "prices by neighbouring balances": "UNKNOWN",
  });
});

test("a report whose file is there already is told before anything is asked", async () => {
  writeFileSync(join(folder, `${probes + 1}.json`), "kept");
  const { world, code, text, file } = await probed({});
  expect([code, world.simulator.log.all(), readFileSync(file, "utf8")]).toEqual([1, [], "kept"]);
  expect(text).toMatch(/^The file .* cannot be made: EEXIST.* Name a new one/);
  expect(text).not.toMatch(/\n\s+at /);
});

test("what the user may not read is a call that was refused, and the others are made all the same", async () => {
  const { code, report } = await probed({}, ({ simulator }) =>
    simulator.control.fail({ match: "/api/v1/notes", with: { kind: "forbidden" } }),
  );
  expect(code).toBe(0);
  expect(report?.calls.filter(({ status }) => status !== 200)).toMatchObject([
    { route: "GET /api/v1/notes", status: 403 },
  ]);
});

const STOP = "INSERT INTO crm_stop (begun_at, reason) VALUES (now(), 'We look into it.')";
const SHORT = "UPDATE crm_budget SET daily_limit = 30000, remaining = 2000, told_at = now(), day_began_at = now()";
test.each<[what: string, prepare: (world: World) => unknown, words: string[], says: string]>([
  ["is short of tokens", ({ database }) => database.query(SHORT), ["--crm", "acme"], "tokens are needed for others"],
  ["is stopped by the operator", ({ database }) => database.query(STOP), ["--crm", "acme"], "We look into it."],
  ["has no connection", () => undefined, ["--crm", "nobody"], "nobody has no connection that works now"],
  ["is not named rightly", () => undefined, ["--tenant", "acme"], "Say: doctor, or doctor --crm TENANT"],
])("an account that %s is not asked for anything", async (_what, prepare, words, says) => {
  let before: unknown;
  const { world, code, text } = await probed(
    { deals: 10 },
    async (world) => {
      await prepare(world);
      before = await dumpState(world.database);
    },
    words,
  );
  expect(code).toBe(1);
  expect(text).toContain(says);
  expect(world.simulator.log.all()).toEqual([]);
  expect(await dumpState(world.database)).toEqual(before);
});

// Seen red with what JSON leaves as it is.
test("a report has no command of a terminal, and says the same", async () => {
  const file = join(folder, "commands.json");
  const report = { said: "\u009b2J\u202eda\u2028\u007f" };
  await reportInto(file, async () => [report, ""]);
  const text = readFileSync(file, "utf8");
  expect(text).toMatch(/^[\n\x20-\x7e]+$/);
  expect(JSON.parse(text)).toEqual(report);
});

// Seen red: through it, and all was well where the service reaches nothing.
test("doctor asks the CRM as the service does, through no proxy that Node was told of", async () => {
  const world = await World.start({ deals: 10 });
  started.push(world);
  const direct = getGlobalDispatcher();
  setGlobalDispatcher(new EnvHttpProxyAgent({ httpProxy: "http://127.0.0.1:9" }));
  const findings = await examine(() => world.config);
  setGlobalDispatcher(direct);
  expect(findings.map(({ what }) => what)).toContainEqual(expect.stringMatching(/^the CRM shows its consent page/));
});
