import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator";
import { standIn } from "../support/stand-in";

/** What the body holds is for the test to say, or to find out. */
export interface Reply<Body = unknown> {
  status: number;
  headers: Headers;
  body: Body;
}

export type WireRecord = Record<string, unknown>;

export interface CursorPage {
  data: WireRecord[];
  additional_data: { next_cursor: string | null };
}

export interface OffsetPage {
  data: WireRecord[] | null;
  additional_data: { pagination: object };
}

export interface Participant {
  id: number;
  person_id: { value: number };
}

export interface Tokens {
  access_token: string;
  refresh_token: string;
  scope: string;
}

export interface Refusal {
  success: false;
  message: string;
  error: string;
}

export type TokenAnswer = Tokens | Refusal;

export interface Client {
  accessToken: string;
  refreshToken: string;
  get<Body>(path: string): Promise<Reply<Body>>;
  /** With a JSON body. */
  send<Body>(method: "POST" | "PATCH" | "PUT", path: string, body: unknown): Promise<Reply<Body>>;
  /** The data of an answer that holds one record. */
  one<Item = WireRecord>(path: string): Promise<Item>;
  /** The data of an answer that holds several records. */
  list<Item = WireRecord>(path: string): Promise<Item[]>;
  /** Every record of a cursor list, page by page. */
  walk(path: string): Promise<WireRecord[]>;
}

/** Fixed, so that times and data are the same in every run. */
export const START = new Date("2026-11-20T10:00:00.000Z");

export class TestClock {
  private at = START.getTime();
  readonly now = () => new Date(this.at);

  advance(seconds: number): void {
    this.at += seconds * 1_000;
  }

  reset(): void {
    this.at = START.getTime();
  }
}

const running: Simulator[] = [];

export async function start(options: SimulatorOptions = {}): Promise<Simulator> {
  const simulator = await startSimulator({ deals: 60, now: () => START, ...options });
  running.push(simulator);
  return simulator;
}

/** For afterEach or afterAll: no test leaves a port open. */
export async function stopAll(): Promise<void> {
  await Promise.all(running.splice(0).map((simulator) => simulator.stop()));
}

/** A simulator for each test of a file, by a clock that moves only when told, and a client that a user has authorized. */
export function useClient(options: SimulatorOptions = {}) {
  const clock = new TestClock();
  let simulator: Simulator | undefined;
  let client: Client | undefined;
  /** Another simulator than all tests of the file have. */
  const begin = async (others: SimulatorOptions) => {
    simulator = await start({ now: clock.now, ...others });
    client = await connect(simulator);
  };
  beforeEach(() => {
    clock.reset();
    return begin(options);
  });
  afterEach(stopAll);
  const parts = { clock, simulator: standIn(() => simulator), client: standIn(() => client) };
  /** The user, or another one, authorizes anew. */
  const authorize = async (userId?: number) => {
    client = await connect(parts.simulator, userId);
  };
  return { ...parts, begin, authorize };
}

export function token(
  simulator: Simulator,
  form: Record<string, string>,
  secret = simulator.clientSecret,
): Promise<Reply<TokenAnswer>> {
  const basic = Buffer.from(`${simulator.clientId}:${secret}`).toString("base64");
  return request(`${simulator.url}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams(form),
  });
}

export function redeem(
  simulator: Simulator,
  code: string,
  redirect = simulator.redirectUrl,
): Promise<Reply<TokenAnswer>> {
  return token(simulator, { grant_type: "authorization_code", code, redirect_uri: redirect });
}

export function refresh(simulator: Simulator, refreshToken: string): Promise<Reply<TokenAnswer>> {
  return token(simulator, { grant_type: "refresh_token", refresh_token: refreshToken });
}

export function tokensOf({ body }: Reply<TokenAnswer>): Tokens {
  if ("error" in body) throw new Error(`no tokens but ${body.error}: ${body.message}`);
  return body;
}

export async function connect(simulator: Simulator, userId?: number): Promise<Client> {
  if (userId !== undefined) simulator.control.signIn(userId);
  const tokens = tokensOf(await redeem(simulator, simulator.control.approve()));
  return clientWith(simulator, tokens.access_token, tokens.refresh_token);
}

export function clientWith(simulator: Simulator, accessToken: string, refreshToken = ""): Client {
  const get = <Body>(path: string) =>
    request<Body>(`${simulator.url}${path}`, { headers: { authorization: `Bearer ${accessToken}` } });
  const send = <Body>(method: string, path: string, body: unknown) =>
    request<Body>(`${simulator.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${accessToken}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const data = async <Data>(path: string) => (await get<{ data: Data }>(path)).body.data;
  const one = <Item>(path: string) => data<Item>(path);
  const list = <Item>(path: string) => data<Item[]>(path);
  const walk = async (path: string) => {
    const records: WireRecord[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const mark = path.includes("?") ? "&" : "?";
      const { body }: Reply<CursorPage> = await get(cursor === "" ? path : `${path}${mark}cursor=${cursor}`);
      records.push(...body.data);
      cursor = body.additional_data.next_cursor;
    }
    return records;
  };
  return { accessToken, refreshToken, get, send, one, list, walk };
}

export async function request<Body>(url: string, init?: RequestInit): Promise<Reply<Body>> {
  const response = await fetch(url, { redirect: "manual", ...init });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

export function idsOf(records: readonly object[]): number[] {
  return records.map((record) => (record as { id: number }).id);
}
