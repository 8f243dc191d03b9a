import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator";

export interface Reply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the wire's shapes are what these tests are about
  body: any;
}

export interface Client {
  accessToken: string;
  refreshToken: string;
  get(path: string): Promise<Reply>;
  /** Every record of a cursor list, page by page. */
  walk(path: string): Promise<Record<string, unknown>[]>;
}

/** Fixed, so that times and data are the same in every run. */
export const START = new Date("2026-11-20T10:00:00.000Z");

export class TestClock {
  private at = START.getTime();
  readonly now = () => new Date(this.at);

  advance(seconds: number): void {
    this.at += seconds * 1_000;
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

export function token(
  simulator: Simulator,
  form: Record<string, string>,
  secret = simulator.clientSecret,
): Promise<Reply> {
  const basic = Buffer.from(`${simulator.clientId}:${secret}`).toString("base64");
  return request(`${simulator.url}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams(form),
  });
}

export function redeem(simulator: Simulator, code: string, redirect = simulator.redirectUrl): Promise<Reply> {
  return token(simulator, { grant_type: "authorization_code", code, redirect_uri: redirect });
}

export function refresh(simulator: Simulator, refreshToken: string): Promise<Reply> {
  return token(simulator, { grant_type: "refresh_token", refresh_token: refreshToken });
}

export async function connect(simulator: Simulator, userId?: number): Promise<Client> {
  if (userId !== undefined) simulator.control.signIn(userId);
  const { body } = await redeem(simulator, simulator.control.approve());
  return clientWith(simulator, body.access_token, body.refresh_token);
}

export function clientWith(simulator: Simulator, accessToken: string, refreshToken = ""): Client {
  const get = (path: string) =>
    request(`${simulator.url}${path}`, { headers: { authorization: `Bearer ${accessToken}` } });
  const walk = async (path: string) => {
    const records: Record<string, unknown>[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const mark = path.includes("?") ? "&" : "?";
      const { body } = await get(cursor === "" ? path : `${path}${mark}cursor=${cursor}`);
      records.push(...body.data);
      cursor = body.additional_data.next_cursor;
    }
    return records;
  };
  return { accessToken, refreshToken, get, walk };
}

export async function request(url: string, init?: RequestInit): Promise<Reply> {
  const response = await fetch(url, { redirect: "manual", ...init });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") ?? false;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

export function idsOf(records: readonly object[]): number[] {
  return records.map((record) => (record as { id: number }).id);
}
