import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { BRIEFING, DEAL_LIST } from "./briefing-queries";

const RECORD = `mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) {
  ... on MeetingSuccess { meeting { id match { status } } } ... on Refusal { code message } } }`;
const WRITE = `mutation ($input: WriteNoteInput!) { writeNote(input: $input) {
  ... on WriteNoteSuccess { write { state } } ... on Refusal { code message } } }`;
const SYNC = "mutation { requestSync { __typename ... on Refusal { code } } }";
const PROGRESS = "subscription { syncProgressed { id } }";

/** Each tenant's sync comes so often, asked for by its user: the schedule itself makes no two within a minute. */
export const INTERVAL_MS = 10_000;
/** Of each kind another tenant is next, so often. */
const EVERY_MS = { briefing: 250, list: 500, meeting: 1_000, note: 1_000 };
const REQUEST_TIMEOUT_MS = 15_000;
/** A client that has no final answer asks again after this, with the same key. */
const AGAIN_MS = 2_000;

/** Requests of one phase. */
export interface Counts {
  answered: number;
  /** TEMPORARILY_UNAVAILABLE: the database is away. */
  away: number;
  failed: number;
}

export interface Tenant {
  token: string;
  /** Of the person whose deal its meetings are about. */
  email: string;
}

interface Answer {
  data?: { recordMeeting?: { meeting?: { id: string } }; writeNote?: { write?: { state: string }; code?: string } };
  errors?: { message: string; extensions?: { code?: string } }[];
}

/** The users of all tenants: what they ask for, and what became of it. */
export class Users {
  readonly phases = new Map<string, Counts>();
  /** Milliseconds of each that was answered, by the phase in which it was asked for. */
  readonly briefings = new Map<string, number[]>();
  /** Notes by their mark, and whether their writer saw them written. */
  readonly notes = new Map<string, boolean>();
  readonly failures = new Map<string, number>();
  progress = 0;
  reconnects = 0;
  phase = "";
  /** Nobody waits for a note any more. */
  #isOver = false;
  readonly #meetings = new Map<number, string>();
  readonly #timers: NodeJS.Timeout[] = [];
  #syncs?: NodeJS.Timeout;
  #sockets: (() => void)[] = [];
  #number = 0;

  constructor(
    private readonly url: string,
    private readonly tenants: readonly Tenant[],
  ) {}

  /** Each tenant's first meeting, without which there is nothing to brief about. */
  async begin(): Promise<void> {
    this.phase = "first meetings";
    for (const tenant of this.tenants.keys()) await this.#meet(tenant);
    if (this.#meetings.size < this.tenants.length) throw new Error(`not all meetings were recorded: ${this.told()}`);
    this.#sockets = this.tenants.map(({ token }) => this.#subscribe(token));
    const often = (everyMs: number, act: (tenant: number) => Promise<unknown>) => {
      let turn = 0;
      return setInterval(() => void act(turn++ % this.tenants.length), everyMs);
    };
    this.#timers.push(
      often(EVERY_MS.briefing, (tenant) => this.#brief(tenant)),
      often(EVERY_MS.list, (tenant) => this.#ask(tenant, DEAL_LIST)),
      often(EVERY_MS.meeting, (tenant) => this.#meet(tenant)),
      often(EVERY_MS.note, (tenant) => this.#note(tenant)),
    );
    this.#syncs = often(INTERVAL_MS / this.tenants.length, (tenant) => this.askSync(tenant));
  }

  /** Nothing new is begun but syncs, without which the copies would grow older; who waits for a note goes on. */
  rest(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const end of this.#sockets) end();
  }

  endSyncs = () => clearInterval(this.#syncs);

  /** Whatever comes of the notes. */
  end(): void {
    this.rest();
    this.endSyncs();
    this.#isOver = true;
  }
  askSync = (tenant: number) => this.#ask(tenant, SYNC);
  countsOf = (phase: string): Counts => this.phases.get(phase) ?? { answered: 0, away: 0, failed: 0 };
  told = () => [...this.failures].map(([why, times]) => `${times} x ${why}`).join("; ");

  async #brief(tenant: number): Promise<void> {
    const { phase } = this;
    const began = performance.now();
    const answer = await this.#ask(tenant, BRIEFING, { id: this.#meetings.get(tenant) });
    if (!answer) return;
    const took = this.briefings.get(phase) ?? [];
    this.briefings.set(phase, took);
    took.push(performance.now() - began);
  }

  async #meet(tenant: number): Promise<void> {
    const externalId = `soak-${++this.#number}`;
    const people = { ownerEmail: "anna@seller.example", attendees: [{ email: this.tenants[tenant]?.email }] };
    const input = { externalId, title: "Soak", startsAt: new Date().toISOString(), ...people };
    const meeting = (await this.#ask(tenant, RECORD, { input }))?.recordMeeting?.meeting;
    if (meeting) this.#meetings.set(tenant, meeting.id);
  }

  /** As a real client writes: the same key until the outcome is known, another one after it was certainly not written. */
  async #note(tenant: number): Promise<void> {
    const mark = `soak-${tenant}-${++this.#number}`;
    const input = { meetingId: this.#meetings.get(tenant), content: `We agreed. ${mark}` };
    this.notes.set(mark, false);
    for (let attempt = 0; !this.#isOver; await sleep(AGAIN_MS)) {
      const written = (await this.#ask(tenant, WRITE, { input: { ...input, idempotencyKey: `${mark}/${attempt}` } }))
        ?.writeNote;
      if (written?.write?.state === "WRITTEN") return void this.notes.set(mark, true);
      if (written?.code || written?.write?.state === "FAILED") attempt += 1;
    }
  }

  async #ask(tenant: number, query: string, variables: object = {}): Promise<Answer["data"] | null> {
    const headers = { "content-type": "application/json", authorization: `Bearer ${this.tenants[tenant]?.token}` };
    const body = JSON.stringify({ query, variables });
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    let answer: Answer;
    try {
      const response = await fetch(`${this.url}/graphql`, { method: "POST", headers, body, signal });
      const text = await response.text();
      answer = text.startsWith("{") ? (JSON.parse(text) as Answer) : { errors: [{ message: `${response.status}` }] };
    } catch (error) {
      return this.#count("failed", error instanceof Error ? error.message : String(error));
    }
    const [fault] = answer.errors ?? [];
    if (fault?.extensions?.code === "TEMPORARILY_UNAVAILABLE") return this.#count("away");
    if (fault || !answer.data) return this.#count("failed", fault?.message ?? "no data");
    this.#count("answered");
    return answer.data;
  }

  /** By what goes on as it ends: that is what has made it fail. */
  #count(how: keyof Counts, why?: string): null {
    const { phase } = this;
    const counts = this.countsOf(phase);
    counts[how] += 1;
    this.phases.set(phase, counts);
    if (why) this.failures.set(`${phase}: ${why}`, (this.failures.get(`${phase}: ${why}`) ?? 0) + 1);
    return null;
  }

  #subscribe(token: string): () => void {
    let isOpened = false;
    const client = createClient({
      url: `${this.url.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      on: {
        connected: () => {
          if (isOpened) this.reconnects += 1;
          isOpened = true;
        },
      },
    });
    const next = () => {
      this.progress += 1;
    };
    client.subscribe({ query: PROGRESS }, { next, error: () => undefined, complete: () => undefined });
    return () => void client.dispose();
  }
}
