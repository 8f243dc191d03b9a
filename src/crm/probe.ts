import { request } from "undici";
import { messageOf } from "../platform/errors";

const TIMEOUT_MS = 10_000;
/** More of an answer than anyone needs to tell what answered. */
const MAX_BYTES = 64 * 1024;

/** What stands at an address: its answer to a GET without a token, or why none came. */
export type Probe =
  | {
      reached: true;
      status: number;
      contentType: string;
      location: string | null;
      aheadMs: number | null;
      text: string;
    }
  | { reached: false; why: string };

/** One GET for the operator's eyes, without a token; redirects are shown and not followed. */
export async function probe(url: string): Promise<Probe> {
  const askedAt = Date.now();
  try {
    const answer = await request(url, { signal: AbortSignal.timeout(TIMEOUT_MS), headers: { accept: "*/*" } });
    const text = (await answer.body.text()).slice(0, MAX_BYTES);
    const sentAt = Date.parse(String(answer.headers.date));
    return {
      reached: true,
      status: answer.statusCode,
      text,
      contentType: String(answer.headers["content-type"] ?? ""),
      location: answer.headers.location === undefined ? null : String(answer.headers.location),
      aheadMs: Number.isNaN(sentAt) ? null : ahead(sentAt, askedAt, Date.now()),
    };
  } catch (error) {
    return { reached: false, why: messageOf(error) };
  }
}

/** The header is in whole seconds and was written between asking and answer: only what is certain counts. */
function ahead(sentAt: number, askedAt: number, answeredAt: number): number {
  if (sentAt > answeredAt) return sentAt - answeredAt;
  return Math.min(0, sentAt + 1_000 - askedAt);
}
