import pLimit from "p-limit";
import { Agent, request } from "undici";
import { type ProcessUse, useOf } from "./processes";

/** As the service asks: page size, fields and requests in flight. */
const PAGE_SIZE = 500;
const PARTICIPANT_REQUESTS = 8;
const LISTS = ["pipelines", "stages", "organizations", "persons", "deals", "activities"] as const;
const FIELDS: Partial<Record<(typeof LISTS)[number], string>> = {
  persons: "last_incoming_mail_time,last_outgoing_mail_time",
  deals: "participants_count",
};

/** What the limit of the service is measured by: the same requests in the same order, and every answer is dropped. */
export interface RawReading extends ProcessUse {
  seconds: number;
  requests: number;
}

interface Body {
  data: { id: number; participants_count?: number }[] | null;
  additional_data?: { next_cursor?: string | null; pagination?: { next_start?: number } };
}

class RawReader {
  requests = 0;
  readonly #agent = new Agent({ connections: 128 });
  readonly #baseUrl: string;
  readonly #headers: Record<string, string>;

  constructor(baseUrl: string, token: string) {
    this.#baseUrl = baseUrl;
    this.#headers = { authorization: `Bearer ${token}`, accept: "application/json" };
  }

  async readAll(): Promise<void> {
    await this.#text("/api/v1/users");
    for (const list of LISTS) {
      const deals = await this.#walk(list);
      if (list === "deals") await this.#participants(deals);
    }
    await this.#notes();
  }

  /** The answer is parsed, as the cursor is in it. @returns the ids of records that have participants */
  async #walk(list: (typeof LISTS)[number]): Promise<number[]> {
    const ids: number[] = [];
    const fields = FIELDS[list] ? `&include_fields=${FIELDS[list]}` : "";
    for (let cursor: string | null | undefined = ""; cursor != null; ) {
      const page: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const body = await this.#json(`/api/v2/${list}?limit=${PAGE_SIZE}${page}${fields}`);
      for (const { id, participants_count } of body.data ?? []) if (participants_count !== 0) ids.push(id);
      cursor = body.additional_data?.next_cursor;
    }
    return ids;
  }

  async #participants(dealIds: readonly number[]): Promise<void> {
    const limit = pLimit(PARTICIPANT_REQUESTS);
    const path = (id: number) => `/api/v1/deals/${id}/participants?start=0&limit=${PAGE_SIZE}`;
    await Promise.all(dealIds.map((id) => limit(() => this.#text(path(id)))));
  }

  async #notes(): Promise<void> {
    for (let start: number | undefined = 0; start !== undefined; ) {
      const body = await this.#json(`/api/v1/notes?start=${start}&limit=${PAGE_SIZE}&sort=id%20ASC`);
      start = body.additional_data?.pagination?.next_start;
    }
  }

  async #json(path: string): Promise<Body> {
    return JSON.parse(await this.#text(path)) as Body;
  }

  async #text(path: string): Promise<string> {
    this.requests += 1;
    const { statusCode, body } = await request(this.#baseUrl + path, {
      headers: this.#headers,
      dispatcher: this.#agent,
    });
    if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}`);
    return body.text();
  }
}

/** The consent page's button, pressed without the page: a token of the benchmark's own. */
async function accessToken(env: NodeJS.ProcessEnv): Promise<string> {
  const { CRM_AUTH_URL = "", CRM_CLIENT_ID = "", CRM_CLIENT_SECRET = "", CRM_REDIRECT_URL = "" } = env;
  const consent = await fetch(`${CRM_AUTH_URL}/oauth/authorize`, {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams({ client_id: CRM_CLIENT_ID, redirect_uri: CRM_REDIRECT_URL, decision: "allow" }),
  });
  const code = new URL(consent.headers.get("location") ?? "").searchParams.get("code") ?? "";
  const basic = Buffer.from(`${CRM_CLIENT_ID}:${CRM_CLIENT_SECRET}`).toString("base64");
  const answer = await fetch(`${CRM_AUTH_URL}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: "authorization_code", code, redirect_uri: CRM_REDIRECT_URL }),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}

async function main(): Promise<void> {
  const reader = new RawReader(process.env.CRM_BASE_URL ?? "", await accessToken(process.env));
  const began = performance.now();
  await reader.readAll();
  const seconds = (performance.now() - began) / 1000;
  const reading: RawReading = { seconds, requests: reader.requests, ...useOf("self") };
  process.stdout.write(`${JSON.stringify(reading)}\n`);
  process.exit(0);
}

if (require.main === module) void main();
