import { createHash, randomInt } from "node:crypto";
import { SignJWT } from "jose";
import type { Target } from "./api-load";
import { MEETINGS_OF_TENANT } from "./briefing-data";
import { GRAPHILE_BRIEFING, GRAPHILE_QUIET } from "./briefing-graphile";

const JSON_TYPE = { "content-type": "application/json" };

/** The bearer tokens of as many tenants, each of its user of that name. */
export function signTokens(jwtSecret: string, tenants: number, user = "user"): Promise<string[]> {
  const key = new TextEncoder().encode(jwtSecret);
  const sign = (tenant: string) =>
    new SignJWT({ tenant, role: "member", plan: "sales" })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject(`${tenant}-${user}`)
      .setExpirationTime("12h")
      .sign(key);
  return Promise.all(Array.from({ length: tenants }, (_, index) => sign(`tenant-${index + 1}`)));
}

/** Tenants with numbers from one to another; each has the one copy of its number. */
export type Copies = readonly [from: number, to: number];

const tenantsOf = ([from, to]: Copies) => to - from + 1;

/** Any meeting of any tenant, so that no answer is known from before; of each tenant once before any comes again. */
function meetings([from, to]: Copies) {
  let met = from - 1;
  return (): { copy: number; meeting: string } => {
    const copy = met < to ? ++met : randomInt(from, to + 1);
    return { copy, meeting: meetingOf(copy, randomInt(1, MEETINGS_OF_TENANT + 1)) };
  };
}

/** The id of a tenant's meeting of that number, as `fill` makes it. */
function meetingOf(copy: number, number: number): string {
  const digest = createHash("md5").update(`${copy}:${number}`).digest("hex");
  return digest.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const globalId = (meeting: string) => Buffer.from(`Meeting:${meeting}`).toString("base64url");
/** The same in the API. */
export const globalMeetingOf = (copy: number, number: number) => globalId(meetingOf(copy, number));

/** GraphQL as the service has it, served by it or by another server. */
export function ourTarget(name: string, url: string, tokens: readonly string[], query: string): Target {
  const anyMeeting = meetings([1, tokens.length]);
  const request = () => {
    const { copy, meeting } = anyMeeting();
    const variables = query.includes("$id") ? { id: globalId(meeting) } : {};
    const headers = { ...JSON_TYPE, authorization: `Bearer ${tokens[copy - 1]}` };
    return { path: "/graphql", headers, body: JSON.stringify({ query, variables }) };
  };
  return { name, url, request, tenants: tokens.length };
}

export function graphileTarget(url: string, copies: Copies, kind: "briefing" | "quiet"): Target {
  const query = kind === "briefing" ? GRAPHILE_BRIEFING : GRAPHILE_QUIET;
  const anyMeeting = meetings(copies);
  const request = () => {
    const { copy, meeting } = anyMeeting();
    const variables = { tenant: String(copy), copy: String(copy), ...(kind === "briefing" && { id: meeting }) };
    return { path: "/graphql", headers: JSON_TYPE, body: JSON.stringify({ query, variables }) };
  };
  return { name: "PostGraphile", url, request, tenants: tenantsOf(copies) };
}

export function limitTarget(url: string, copies: Copies, kind: "briefing" | "quiet" | "quiet-by-index"): Target {
  const anyMeeting = meetings(copies);
  const request = () => {
    const { copy, meeting } = anyMeeting();
    const values = [copy, copy, ...(kind === "briefing" ? [meeting] : [])];
    return { path: `/${kind}`, headers: JSON_TYPE, body: JSON.stringify({ values }) };
  };
  return {
    name: `hand-written${kind === "quiet-by-index" ? ", by index" : ""}`,
    url,
    request,
    tenants: tenantsOf(copies),
  };
}
