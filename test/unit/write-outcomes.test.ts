import { ConnectionGoneError, NeedsReauthorizationError } from "../../src/connections/connection";
import { CrmError, failureOfStatus } from "../../src/crm/errors";
import { OAuthError } from "../../src/crm/oauth";
import {
  certainFailureOf,
  inSight,
  isOfTheCrm,
  NotSentInTimeError,
  outOfSight,
  pauseBefore,
  SETTLED_AFTER_MS,
  verdictOf,
} from "../../src/writeback/outcomes";

// Seen red with: a 5xx or a proxy's page taken for a refusal; an absence believed before three minutes are over.

const answered = (status: number, { html = false, crmCode = undefined as string | undefined } = {}) =>
  new CrmError(failureOfStatus(status, html), "an answer", { status, crmCode });
const codeOf = (error: unknown) => certainFailureOf(error)?.code ?? "UNKNOWN";

describe("what the answer to a write says of it", () => {
  test.each([
    [400, "VALUE_REJECTED"],
    [401, "NEEDS_REAUTHORIZATION"],
    [402, "CRM_ACCOUNT_CLOSED"],
    [403, "FORBIDDEN"],
    [404, "RECORD_NOT_FOUND"],
    [405, "VALUE_REJECTED"],
    [410, "RECORD_NOT_FOUND"],
    [413, "VALUE_REJECTED"],
    [422, "VALUE_REJECTED"],
    [429, "RATE_LIMITED"],
  ])("%i is a refusal: FAILED with %s", (status, code) => expect(codeOf(answered(status))).toBe(code));

  test.each([301, 302, 307, 408, 409, 500, 502, 503, 504, 520, 524])(
    "%i leaves open what was done: UNKNOWN",
    (status) => expect(codeOf(answered(status))).toBe("UNKNOWN"),
  );

  test.each([400, 401, 403, 404, 500])("%i with a proxy's page says nothing of the CRM: UNKNOWN", (status) =>
    expect(codeOf(answered(status, { html: true }))).toBe("UNKNOWN"),
  );

  test.each([
    ["a record in the bin", answered(400, { crmCode: "ERR_DEAL_DELETED" }), "RECORD_NOT_FOUND"],
    ["a fault beside the word for one", answered(500, { crmCode: "ERR_DEAL_DELETED" }), "UNKNOWN"],
    ["a conflict beside it", answered(409, { crmCode: "ERR_DEAL_DELETED" }), "UNKNOWN"],
    ["a time-out of the CRM beside it", answered(408, { crmCode: "ERR_DEAL_DELETED" }), "UNKNOWN"],
    ["no connection came about", new CrmError("UNAVAILABLE", "refused", { neverSent: true }), "CRM_UNAVAILABLE"],
    ["a reset or a time-out", new CrmError("UNAVAILABLE", "reset", { neverSent: false }), "UNKNOWN"],
    ["a success that cannot be read", new CrmError("UNREADABLE", "not JSON", { status: 201 }), "UNKNOWN"],
    ["a success that is too large", new CrmError("UNREADABLE", "too large"), "UNKNOWN"],
    ["the token could not be renewed", new OAuthError("UNKNOWN", "no answer"), "CRM_UNAVAILABLE"],
    ["whose the token is was refused", new OAuthError("OUTAGE", "", { cause: answered(400) }), "FORBIDDEN"],
    ["whose the token is was not answered", new OAuthError("OUTAGE", "", { cause: answered(503) }), "CRM_UNAVAILABLE"],
    ["the token came too late", new NotSentInTimeError("late"), "CRM_UNAVAILABLE"],
    ["the grant is refused", new NeedsReauthorizationError("revoked"), "NEEDS_REAUTHORIZATION"],
    ["disconnected meanwhile", new ConnectionGoneError("gone"), "NEEDS_REAUTHORIZATION"],
    ["a fault of our own", new TypeError("undefined is no function"), "UNKNOWN"],
  ])("%s", (_, error, code) => expect(codeOf(error)).toBe(code));

  // Seen red: of what waited behind others it was said that the CRM could not be reached.
  test("what was never sent may have waited behind other calls, and may be written later", () => {
    const error = new CrmError("UNAVAILABLE", "no connection", { neverSent: true });
    expect(certainFailureOf(error)?.message).toBe(
      "The CRM could not be reached, or other calls to it were in front of this one for too long. Try again later with a new idempotency key.",
    );
  });
});

// Seen red: after a 429 the CRM was asked once more.
test.each([
  ["VALUE_REJECTED", 1, "RECORD_NOT_FOUND"],
  ["RATE_LIMITED", 0, "RATE_LIMITED"],
  ["FORBIDDEN", 0, "FORBIDDEN"],
] as const)("behind %s the list is asked %i times whether it shows the record: %s", async (code, times, then) => {
  let asked = 0;
  const api = { isShown: async () => ++asked === 0 };
  const failure = await inSight(api, { entity: "DEAL", id: 1 }, { code, message: "No." });
  expect([asked, failure?.code]).toEqual([times, then]);
});

// Planted and seen red: the record was said to be gone, because nobody had answered.
test("what was rejected stays rejected where the list cannot be asked", async () => {
  const rejected = { code: "VALUE_REJECTED", message: "No." } as const;
  const api = { isShown: async () => Promise.reject(answered(503)) };
  expect(await inSight(api, { entity: "DEAL", id: 1 }, rejected)).toBe(rejected);
});

// Seen red with: any of these left out, whose look then failed its job; every refusal taken for a record out of sight.
test("what a look-up meets in the CRM leaves it to the next one, and a record that is not shown proves nothing", () => {
  const met = [
    answered(503),
    new OAuthError("OUTAGE", ""),
    new NeedsReauthorizationError(""),
    new ConnectionGoneError(""),
  ];
  expect([...met, new TypeError()].map(isOfTheCrm)).toEqual([true, true, true, true, false]);
  expect(outOfSight(answered(404))).toBeNull();
  expect(() => outOfSight(answered(403))).toThrow("an answer");
});

const SENT_AT = new Date("2026-11-20T12:00:00Z");
const msLater = (ms: number) => new Date(SENT_AT.getTime() + ms);

describe("what a look-up says of it", () => {
  const whole = { begunAt: msLater(3 * 60_000), lookUps: 3, found: false, complete: true };

  test.each([
    ["found, however early", { ...whole, begunAt: msLater(1), found: true, complete: false }, "WRITTEN"],
    ["not found, three minutes later: so far as its record is still shown", whole, "ABSENT"],
    ["not found, a moment too early", { ...whole, begunAt: msLater(3 * 60_000 - 1) }, "UNKNOWN"],
    [
      "not found by an earlier look, whatever the clock of who looks says",
      { ...whole, begunAt: msLater(8 * 60_000), lookUps: 2 },
      "UNKNOWN",
    ],
    ["but for an hour, which no clock is off", { ...whole, begunAt: msLater(60 * 60_000), lookUps: 0 }, "ABSENT"],
    ["and not a moment earlier", { ...whole, begunAt: msLater(60 * 60_000 - 1), lookUps: 0 }, "UNKNOWN"],
    ["not found on the pages that could be read", { ...whole, complete: false }, "UNKNOWN"],
  ])("%s", (_, look, verdict) => expect(verdictOf(SENT_AT, look)).toBe(verdict));

  test("an absence can be proven by the fourth look-up, and pauses grow to six hours", () => {
    const pauses = Array.from({ length: 20 }, (_, lookUps) => pauseBefore(lookUps));
    expect(pauses.slice(0, 4).reduce((sum, pause) => sum + pause, 0)).toBeGreaterThan(SETTLED_AFTER_MS);
    expect([...pauses].sort((a, b) => a - b)).toEqual(pauses);
    expect(pauses.at(-1)).toBe(6 * 60 * 60_000);
  });
});
