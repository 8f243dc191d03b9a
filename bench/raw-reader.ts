import { Pool } from "pg";
import { Agent, request } from "undici";
import { accessToken } from "./grant";
import { type Counts, inLanes, report } from "./reading";

/** As the service asks: page size, fields and requests in flight. */
const PAGE_SIZE = 500;
const PARTICIPANT_REQUESTS = 8;
/** Deals whose participants are copied by one statement: four times as many as the service commits together. */
const PARTICIPANT_BATCH = 200;
const LISTS = ["pipelines", "stages", "organizations", "persons", "deals", "activities"] as const;
const FIELDS: Partial<Record<(typeof LISTS)[number], string>> = {
  persons: "last_incoming_mail_time,last_outgoing_mail_time",
  deals: "participants_count",
};
const TABLES = ["users", ...LISTS, "participants", "notes"];

interface Body {
  data: { id: number; participants_count?: number }[] | null;
  additional_data?: { next_cursor?: string | null; pagination?: { next_start?: number } };
}

/** Where answers go. @returns the number of records */
type Keep = (table: string, answers: readonly string[]) => Promise<number>;

/** The cheapest way into a table that PostgreSQL's own client has: whole answers as one parameter, and no index. */
async function copyInto(databaseUrl: string): Promise<Keep> {
  const pool = new Pool({ connectionString: databaseUrl });
  for (const table of TABLES) await pool.query(`CREATE TABLE raw_${table} (id bigint, data jsonb)`);
  return async (table, answers) => {
    const statement = `
      INSERT INTO raw_${table} SELECT (record->>'id')::bigint, record FROM jsonb_array_elements($1::jsonb) AS answer,
        jsonb_array_elements(CASE jsonb_typeof(answer->'data') WHEN 'array' THEN answer->'data' ELSE '[]' END) AS record`;
    return (await pool.query(statement, [`[${answers.join()}]`])).rowCount ?? 0;
  };
}

/** Every answer is dropped; it is counted where that costs nothing. */
const drop: Keep = async () => 0;

/** Asks what the service asks, in the same order, and does the least with it. */
class RawReader {
  readonly counts: Counts = { participantSeconds: 0, requests: 0, listed: 0, participants: 0 };
  readonly #agent = new Agent({ connections: 128 });
  readonly #headers: Record<string, string>;

  constructor(
    private readonly baseUrl: string,
    token: string,
    private readonly keep: Keep,
  ) {
    this.#headers = { authorization: `Bearer ${token}`, accept: "application/json" };
  }

  async readAll(): Promise<Counts> {
    this.counts.listed += await this.keep("users", [await this.#text("/api/v1/users")]);
    for (const list of LISTS) {
      const deals = await this.#walk(list);
      if (list === "deals") await this.#participants(deals);
    }
    await this.#notes();
    return this.counts;
  }

  /** The answer is parsed, as the cursor is in it. @returns the ids of records that have participants */
  async #walk(list: (typeof LISTS)[number]): Promise<number[]> {
    const ids: number[] = [];
    const fields = FIELDS[list] ? `&include_fields=${FIELDS[list]}` : "";
    for (let cursor: string | null | undefined = ""; cursor != null; ) {
      const page: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const body = await this.#page(list, `/api/v2/${list}?limit=${PAGE_SIZE}${page}${fields}`);
      for (const { id, participants_count } of body.data ?? []) if (participants_count !== 0) ids.push(id);
      cursor = body.additional_data?.next_cursor;
    }
    return ids;
  }

  /** While one lane copies a batch, the others go on. */
  async #participants(dealIds: readonly number[]): Promise<void> {
    const began = performance.now();
    const answers: string[] = [];
    const copy = async () => {
      // Several lanes copy at once: the sum is read when this one's rows are known.
      const kept = await this.keep("participants", answers.splice(0));
      this.counts.participants += kept;
    };
    await inLanes(dealIds, PARTICIPANT_REQUESTS, async (id) => {
      answers.push(await this.#text(`/api/v1/deals/${id}/participants?start=0&limit=${PAGE_SIZE}`));
      if (answers.length >= PARTICIPANT_BATCH) await copy();
    });
    await copy();
    this.counts.participantSeconds = (performance.now() - began) / 1000;
  }

  async #notes(): Promise<void> {
    for (let start: number | undefined = 0; start !== undefined; ) {
      const body = await this.#page("notes", `/api/v1/notes?start=${start}&limit=${PAGE_SIZE}&sort=id%20ASC`);
      start = body.additional_data?.pagination?.next_start;
    }
  }

  async #page(table: string, path: string): Promise<Body> {
    const text = await this.#text(path);
    this.counts.listed += await this.keep(table, [text]);
    return JSON.parse(text) as Body;
  }

  async #text(path: string): Promise<string> {
    this.counts.requests += 1;
    const { statusCode, body } = await request(this.baseUrl + path, {
      headers: this.#headers,
      dispatcher: this.#agent,
    });
    if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}`);
    return body.text();
  }
}

async function main(): Promise<never> {
  const { CRM_BASE_URL = "", DATABASE_URL, WARM } = process.env;
  const keep = DATABASE_URL ? await copyInto(DATABASE_URL) : drop;
  const token = await accessToken(process.env);
  if (WARM) await new RawReader(CRM_BASE_URL, token, keep).readAll();
  const reader = new RawReader(CRM_BASE_URL, token, keep);
  return report(() => reader.readAll());
}

if (require.main === module) void main();
