import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { type Simulator, startSimulator } from "../../simulator";
import * as times from "../../simulator/model/times";
import { Random } from "../../simulator/seed/random";
import { Boundaries } from "../../src/briefing/quiet/boundaries";
import { judge } from "../../src/briefing/quiet/judge";
import { type QuietFacts, readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";
import { subscribe } from "../support/sockets";
import { connect, dataOf, noJobIsDue, recordMeeting, syncEnds, until } from "../support/stories";

/** DEEP=1 lets more happen on each day, and something else with each SEED. */
const DEEP = process.env.DEEP === "1";
const random = new Random(`silence ${process.env.SEED ?? 1}`);
const DAYS = 60;
const ROUNDS = DEEP ? 12 : 1;
/** The model looks so often; of flips in between it finds each by halving. */
const GRID_MS = 30 * MINUTE_MS;
const RESTARTS = 4;
const RECORDED_MEANWHILE = 8;
/** Nothing happens so shortly before a boundary: which of the two was first could not be said. */
const APART_MS = MINUTE_MS;
jest.setTimeout(DEEP ? 1_800_000 : 400_000);

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const now = () => clock().getTime();
const leapTo = (at: number) => {
  aheadMs = Math.max(aheadMs, at - Date.now());
};
let simulator: Simulator;
let database: TestDatabase;
let worker: Service;
let api: Service;
let listener: Client;

const sync = { intervalMs: 0, reconcileIntervalMs: 0 };
const startWorker = () => startService(simulator, database, { clock, sync });

beforeAll(async () => {
  const company = { deals: 30, dailyTokens: 10_000_000, now: clock };
  [simulator, database] = await Promise.all([startSimulator(company), createTestDatabase()]);
  worker = await startWorker();
  api = await startService(simulator, database, { clock, sync, roles: new Set(["api"]) });
  listener = new Client({ connectionString: database.url.reveal() });
  await listener.connect();
});
afterAll(async () => {
  await listener.end();
  await Promise.all([worker.stop(), api.stop()]);
  await Promise.all([simulator.stop(), database.drop()]);
});

/** What a flip of a deal must be told as: at an instant that the model knows, or within a happening. */
interface Expected {
  dealId: number;
  from: number;
  to: number;
}

/** The judge's verdicts, looked at from time to time: the model knows nothing of schedules and boundaries. */
class Model {
  readonly expected: Expected[] = [];
  /** Deals that were not matched any more at some time: who is told of one then reads nothing. */
  readonly gone = new Set<number>();
  #known: { facts: QuietFacts | null; at: number } = { facts: null, at: 0 };

  /** Time has passed, and nothing else has happened. */
  pass(at: number): void {
    for (const dealId of this.#deals()) {
      for (let from = this.#known.at; from < at; from += GRID_MS)
        this.#between(dealId, from, Math.min(from + GRID_MS, at));
    }
  }

  /** Something has happened since. @param isTold false: what it changed is told as a whole */
  async happened(read: (at: number) => Promise<QuietFacts | null>, isTold: boolean): Promise<void> {
    const before = this.#known;
    const began = this.#lastPassed;
    const was = new Map(this.#deals().map((dealId) => [dealId, this.#verdict(dealId, began)]));
    const at = now();
    this.#known = { facts: await read(at), at };
    const present = new Set(this.#deals());
    for (const dealId of was.keys()) if (!present.has(dealId)) this.gone.add(dealId);
    if (!before.facts || !isTold) return;
    for (const dealId of this.#deals()) {
      const verdict = was.get(dealId);
      if (verdict !== undefined && verdict !== this.#verdict(dealId, at))
        this.expected.push({ dealId, from: began, to: at });
    }
  }

  #lastPassed = 0;
  /** A happening begins now. */
  begins(): void {
    this.#lastPassed = now();
    this.pass(this.#lastPassed);
  }

  #deals(): number[] {
    return this.#known.facts?.deals.map(({ dealId }) => dealId) ?? [];
  }

  #verdict(dealId: number, at: number): string {
    const facts = this.#known.facts?.deals.find((deal) => deal.dealId === dealId);
    if (!facts || !this.#known.facts) throw new Error("a deal that is not known");
    return judge(facts, { ...this.#known.facts.copy, readAt: at }, new Date(at)).verdict;
  }

  /** Each change of the verdict in an interval, to the millisecond. */
  #between(dealId: number, begin: number, end: number): void {
    let from = begin;
    while (this.#verdict(dealId, from) !== this.#verdict(dealId, end)) {
      const verdict = this.#verdict(dealId, from);
      let [before, after] = [from, end];
      while (after - before > 1) {
        const middle = Math.floor((before + after) / 2);
        if (this.#verdict(dealId, middle) === verdict) before = middle;
        else after = middle;
      }
      this.expected.push({ dealId, from: after, to: after });
      from = after;
    }
  }
}

async function readNow(at: number): Promise<QuietFacts | null> {
  const [of] = await database.query<{ tenant_id: number; copy_id: number }>(
    "SELECT tenant_id, copy_id FROM connection",
  );
  if (!of) throw new Error("nothing is connected");
  const matched = await database.query<{ id: number }>(
    "SELECT DISTINCT r.crm_id AS id FROM matched_record r JOIN connection c USING (tenant_id, copy_id) WHERE r.entity = 'DEAL'",
  );
  const scope = { ...database.scope(of.tenant_id), copyId: of.copy_id };
  return readQuietFacts(
    scope,
    matched.map(({ id }) => id),
    new Date(at),
  );
}

async function syncs(): Promise<void> {
  const mutation = "mutation { requestSync { ... on SyncRequested { run { id } } ... on Refusal { message } } }";
  expect(dataOf(await api.ask<{ requestSync: object }>(mutation)).requestSync).toHaveProperty("run");
  expect((await syncEnds(api)).state).toBe("SUCCEEDED");
}

const v2Time = (at: number) => times.v2Time(at / 1_000);
const dateOnly = (at: number) => times.dateOnly(at / 1_000);
const ZONES = ["Europe/Tallinn", "America/New_York", "Pacific/Auckland", "UTC"];

interface Happening {
  /** How often in a round. */
  times: number;
  /** @param deal one of those that are matched */
  act(deal: Deal): unknown;
  /** false: it goes without a sync. */
  needsSync?: boolean;
  /** false: what it changes is told once, for the connection. */
  isTold?: boolean;
}
interface Deal {
  id: number;
  personId: number;
  email: string;
}

let watched: Deal[] = [];
let meetings = 0;
const meet = ({ email }: Deal, at: number) => {
  meetings += 1;
  return recordMeeting(api, [email], { externalId: `day ${meetings}`, startsAt: new Date(at).toISOString() });
};

const HAPPENINGS_OF: Record<string, Happening> = {
  theirMail: {
    times: 1,
    act: ({ personId }) =>
      simulator.control.change("person", personId, { last_incoming_mail_time: v2Time(now() - MINUTE_MS) }),
  },
  ourMail: {
    times: 1,
    act: ({ personId }) =>
      simulator.control.change("person", personId, { last_outgoing_mail_time: v2Time(now() - MINUTE_MS) }),
  },
  plan: {
    times: 1,
    act: ({ id, personId }) => {
      const due = now() + random.int(1, 40) * DAY_MS;
      const time = random.chance(0.5) ? "" : "10:00";
      const step = { type: "call", done: false, due_date: dateOnly(due), due_time: time };
      simulator.control.add("activity", { ...step, deal_id: id, person_id: personId });
    },
  },
  call: {
    times: 1,
    act: ({ id, personId }) => {
      const at = { due_date: dateOnly(now()), due_time: "", marked_as_done_time: v2Time(now() - MINUTE_MS) };
      simulator.control.add("activity", { type: "call", done: true, ...at, deal_id: id, person_id: personId });
    },
  },
  close: {
    times: 1,
    act: ({ id }) => {
      const isOpen = simulator.company.deals.get(id)?.status === "open";
      simulator.control.change("deal", id, { status: isOpen ? "won" : "open" });
    },
  },
  zone: {
    times: 4,
    isTold: false,
    act: () => {
      const zone = random.pick(ZONES);
      for (const id of simulator.company.users.keys()) simulator.control.change("user", id, { timezone_name: zone });
    },
  },
  meeting: { times: 1, needsSync: false, act: (deal) => meet(deal, now() - random.int(1, 48) * HOUR_MS) },
  planMeeting: { times: 2, needsSync: false, act: (deal) => meet(deal, now() + random.int(1, 35 * 24) * HOUR_MS) },
  cancel: {
    times: 1,
    needsSync: false,
    act: async (deal) => {
      const { id } = await meet(deal, now() + random.int(1, 20) * DAY_MS);
      dataOf(await api.ask("mutation ($id: ID!) { cancelMeeting(meetingId: $id) { __typename } }", { id }));
    },
  },
};

/** The worker is away for hours or days, and meetings are recorded before it is back: who judges tells what has passed. */
async function restart(model: Model): Promise<void> {
  await worker.stop();
  leapTo(now() + random.int(1, 100) * HOUR_MS);
  model.begins();
  for (let count = 0; count < RECORDED_MEANWHILE; count += 1) await meet(random.pick(watched), now() - MINUTE_MS);
  await model.happened(readNow, true);
  worker = await startWorker();
}

async function happen({ act, needsSync = true, isTold = true }: Happening, model: Model): Promise<void> {
  model.begins();
  await act(random.pick(watched));
  if (needsSync) await syncs();
  await noJobIsDue(database);
  await model.happened(readNow, isTold);
}

/** All that happens, in an order of its own. */
function agenda(): ((model: Model) => Promise<void>)[] {
  const once = [
    ...Object.values(HAPPENINGS_OF).flatMap((one) => Array(one.times).fill((model: Model) => happen(one, model))),
    ...Array(RESTARTS).fill(restart),
  ];
  const all = Array.from({ length: ROUNDS }, () => once).flat();
  return all
    .map((one) => ({ one, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one);
}

function openDeals(): Deal[] {
  return [...simulator.company.deals.values()].flatMap(({ id, person_id, status }) => {
    const person = person_id === null ? undefined : simulator.company.persons.get(person_id);
    const email = person?.emails[0]?.value;
    return status === "open" && person && email?.includes("@") ? [{ id, personId: person.id, email }] : [];
  });
}

/** Lets time pass, from boundary to boundary as a worker wakes at them. @returns how late flips were claimed at most */
async function passUntil(end: number, boundaries: Boundaries): Promise<void> {
  for (;;) {
    const next = await boundaries.pass();
    if (next && next.getTime() <= now()) {
      // The service's own worker has it in hand.
      await sleep(5);
      continue;
    }
    if (!next || next.getTime() > end + APART_MS) break;
    leapTo(next.getTime());
  }
  leapTo(end);
}

interface Told {
  silenceChanged: { crmId: string };
}

test("every flip is told once, at its instant, over sixty days with syncs, meetings, other zones and restarts", async () => {
  const told: { dealId: number; at: number; heardAt: number }[] = [];
  listener.on("notification", ({ payload = "" }) => {
    const [, dealId, at] = payload.split(/[ :]/).map(Number);
    told.push({ dealId: dealId ?? 0, at: at ?? 0, heardAt: now() });
  });
  await listener.query("LISTEN silence_changed");
  const watching = await subscribe<Told>(api.url, "subscription { silenceChanged { crmId } }");
  await watching.listens();
  await connect(api, simulator);
  await syncEnds(api);
  const deals = random.stream("deals");
  watched = openDeals().filter(() => deals.chance(0.8));
  for (const deal of watched) await meet(deal, now() - deals.int(1, 20) * DAY_MS);
  await noJobIsDue(database);
  const model = new Model();
  await model.happened(readNow, false);
  const boundaries = new Boundaries(database.opened(), clock, createLogger("silent"));
  const begin = now();
  const happenings = agenda();
  for (const [index, happening] of happenings.entries()) {
    await passUntil(begin + ((index + random.next()) * DAYS * DAY_MS) / happenings.length, boundaries);
    await happening(model);
  }
  await passUntil(begin + DAYS * DAY_MS, boundaries);
  model.pass(now());
  const untold = "SELECT 1 FROM deal_silence WHERE NOT is_told AND holds_from <= $1";
  await until("all is told", async () => (await database.query(untold, [clock()])).length === 0);
  const left = [...told];
  const missed = model.expected.filter(({ dealId, from, to }) => {
    const found = left.findIndex((one) => one.dealId === dealId && one.at >= from && one.at <= to);
    if (found >= 0) left.splice(found, 1);
    return found < 0;
  });
  expect({ missed, doubled: left }).toEqual({ missed: [], doubled: [] });
  const readable = told.map(({ dealId }) => dealId).filter((dealId) => !model.gone.has(dealId));
  const heard = () =>
    watching.results.map((one) => Number(one.silenceChanged.crmId)).filter((dealId) => !model.gone.has(dealId));
  await until("they have come to the subscriber", async () => heard().length >= readable.length);
  expect(heard()).toEqual(readable);
  expect(told.length).toBeGreaterThan(40);
  await watching.end();
});
