import { fateOf } from "../../web/src/briefing/wording";
import { aboutOf } from "../../web/src/meetings/about";
import * as meetings from "../../web/src/meetings/wishes";
import { dotsOf, inWords, lanesOf, linesOf, scaleFor } from "../../web/src/quiet/chart-layout";
import { byStrength, headline, type QuietDeal, silenceOf } from "../../web/src/quiet/silence";
import * as board from "../../web/src/quiet/wishes";
import { draftOf, faultOf, inputOf } from "../../web/src/silence/draft";
import { keyed } from "../../web/src/ui/keys";
import { money } from "../../web/src/ui/words";

/** What the page decides by itself, without a browser. */

const SINCE = "2026-10-13T00:00:00.000Z";
const reason = (code: QuietDeal["quiet"]["reasons"][number]["code"], thresholdDays: number | null = null) => ({
  code,
  since: SINCE,
  thresholdDays,
  message: code,
});
const deal = (id: string, quietDays: number | null, part: Partial<QuietDeal> = {}): QuietDeal => ({
  id,
  title: id,
  crmUrl: null,
  value: null,
  owner: null,
  organization: null,
  pipeline: { id: "p", name: "New business" },
  stage: { id: "s", name: "Offer", position: 1 },
  snooze: null,
  quiet: { verdict: "QUIET", quietSince: SINCE, quietDays, businessDays: false, reasons: [] },
  ...part,
});

test("a board's address says what is wished, and says it back; what makes no sense in it is not there", () => {
  const search =
    "?verdict=GHOSTED%2CCOOLING&owner=u1&pipeline=p1&stage=s1&min=1250.50&currency=EUR&order=VALUE_DESC&snoozed=1";
  expect(board.writeWishes(board.readWishes(search))).toBe(search);
  expect(board.filterOf(board.readWishes(search))).toEqual({
    status: ["OPEN"],
    verdict: ["GHOSTED", "COOLING"],
    snoozed: true,
    ownerId: "u1",
    pipelineId: "p1",
    stageId: "s1",
    minValue: "1250.50",
    currency: "EUR",
  });
  expect(board.writeWishes(board.readWishes("?verdict=LOUD&min=much&currency=euro&order=up&snoozed=yes"))).toBe("");
  expect(board.filterOf(board.readWishes("?min=100"))).not.toHaveProperty("minValue");
});

// Seen red: with ?verdict=COOLING and nothing cooling, "No deal has gone quiet" beside ghosted deals that were not asked for.
test("that no deal is quiet is said by who has asked for all that are, and by nobody else", () => {
  const isNarrowed = (search: string) => board.isNarrowed(board.readWishes(search));
  expect(["", "?verdict=GHOSTED,QUIET,COOLING", "?order=VALUE_DESC"].map(isNarrowed)).toEqual([false, false, false]);
  const narrower = ["?verdict=COOLING", "?verdict=GHOSTED", "?verdict=UNKNOWN", "?owner=u1", "?snoozed=1"];
  expect(narrower.map(isNarrowed)).toEqual(narrower.map(() => true));
});

test("those of a list that have all in common have keys of their own, which stay where others come before them", () => {
  const keys = (list: string[]) => keyed(list, (one) => one).map(([key]) => key);
  expect(keys(["mail", "call", "mail"])).toEqual(["mail 1", "call 1", "mail 2"]);
  expect(keys(["note", "mail", "mail"])).toEqual(["note 1", "mail 1", "mail 2"]);
});

test("a value that the CRM took as another is not told as not written", () => {
  const fate = (kind: "NoteWrite" | "FieldWrite", state: "WRITTEN" | "FAILED" | "UNKNOWN", code?: string) =>
    fateOf({ ...(kind === "NoteWrite" && { reference: "CRM-1" }), state, error: code ? { code } : null }).text;
  expect(["NOT_APPLIED", "ANSWER_LOST"].map((code) => fate("FieldWrite", "FAILED", code))).toEqual([
    "Not as sent",
    "Not as sent",
  ]);
  expect(fate("FieldWrite", "FAILED", "VALUE_REJECTED")).toBe("Not written");
  expect(fate("NoteWrite", "FAILED", "ANSWER_LOST")).toBe("Not written");
  expect(fate("FieldWrite", "UNKNOWN", "ANSWER_LOST")).toBe("Not known yet");
  expect(fate("FieldWrite", "WRITTEN")).toBe("Written");
});

test("silence is said in the days that it was counted in", () => {
  const quiet = { ...deal("d", 15).quiet, businessDays: true };
  expect(silenceOf(quiet)).toEqual({ days: "15 business days", of: "no contact" });
  expect(inWords([deal("d", 15, { quiet })])).toContain("the longest silence is 15 business days");
  expect(silenceOf(deal("d", 15).quiet).days).toBe("15 days");
});

test("what makes the verdict is the strongest reason", () => {
  const reasons = [reason("NO_RECENT_ACTIVITY", 14), reason("GHOSTED", 7), reason("NO_NEXT_STEP", 3)];
  const of = (verdict: "GHOSTED" | "QUIET" | "COOLING") => byStrength({ ...deal("d", 1).quiet, verdict, reasons });
  expect(of("GHOSTED").strongest?.code).toBe("GHOSTED");
  expect(of("GHOSTED").others.map(({ code }) => code)).toEqual(["NO_RECENT_ACTIVITY", "NO_NEXT_STEP"]);
  expect(of("QUIET").strongest?.code).toBe("NO_RECENT_ACTIVITY");
  expect(of("COOLING").strongest?.code).toBe("NO_RECENT_ACTIVITY");
  expect(byStrength(deal("d", 1).quiet)).toEqual({ strongest: null, others: [] });
});

test("the silence of a ghosted deal is the buyer's, and what is not known is not zero", () => {
  expect(silenceOf({ ...deal("d", 40).quiet, verdict: "GHOSTED" })).toEqual({ days: "40 days", of: "buyer silent" });
  expect(silenceOf(deal("d", 1).quiet)).toEqual({ days: "1 day", of: "no contact" });
  expect(silenceOf(deal("d", null).quiet).days).toBe("not known");
});

test("a heading counts and sums as the service does, and guesses nothing above what it counts", () => {
  const totals = [
    { amount: "1200.00", currency: "EUR" },
    { amount: "5", currency: "XX" },
  ];
  expect(headline({ totalCount: 1, totals })).toMatch(/^1 deal, worth .*1.?200.* and 5 XX$/);
  expect(headline({ totalCount: null, totals: null })).toBe("More than 10,000 deals");
});

test("dots of one stage that would cover each other stand in lines of their own, in as many as fit", () => {
  const deals = [5, 5, 5, 30].map((days, n) => deal(`d${n}`, days));
  const dots = dotsOf(deals, (days) => days * 10, 24);
  expect(dots.map(({ days, line }) => [days, line])).toEqual([
    [30, 0],
    [5, 0],
    [5, 1],
    [5, 2],
  ]);
  const many = Array.from({ length: 40 }, (_, n) => deal(`m${n}`, 5));
  expect(linesOf(dotsOf(many, (days) => days, 24))).toBe(6);
});

test("a lane shows the days from which on its deals are called quiet, where they count from the same day", () => {
  const quiet = { ...deal("a", 40).quiet, reasons: [reason("NO_RECENT_ACTIVITY", 14), reason("STALLED_IN_STAGE", 30)] };
  const other = { ...quiet, reasons: [{ ...reason("GHOSTED", 7), since: "2026-11-01T00:00:00.000Z" }] };
  const lanes = lanesOf([deal("a", 40, { quiet }), deal("b", 12, { quiet: other }), deal("c", 3, { stage: null })]);
  expect(lanes.map(({ name, thresholds }) => [name, thresholds])).toEqual([
    ["Offer", [{ verdict: "QUIET", days: 14 }]],
    ["Stage not known", []],
  ]);
  expect(scaleFor(lanes)).toEqual({ step: 10, most: 40, ticks: [0, 10, 20, 30, 40] });
  expect(scaleFor([]).most).toBeGreaterThan(0);
});

test("meetings fall into today, what comes and what has been by the reader's midnight", () => {
  const [today, upcoming, past] = meetings.sectionsAt(new Date(2026, 10, 22, 15, 30));
  expect(today?.within).toEqual({
    from: new Date(2026, 10, 22).toISOString(),
    to: new Date(2026, 10, 23).toISOString(),
  });
  expect([upcoming?.within.from, past?.within.to]).toEqual([today?.within.to, today?.within.from]);
  expect([today, upcoming, past].map((section) => section?.orderBy)).toEqual([
    "STARTS_AT_ASC",
    "STARTS_AT_ASC",
    "STARTS_AT_DESC",
  ]);
});

test("a list of meetings has an address, and mine are nobody's where my address is not known", () => {
  const search = "?show=choice&q=offer&mine=1&cancelled=1";
  const wishes = meetings.readWishes(search);
  expect(meetings.writeWishes(wishes)).toBe(search);
  expect(meetings.writeWishes(meetings.readWishes("?show=everything"))).toBe("");
  const filter = { status: ["NEEDS_CHOICE"], search: "offer", includeCancelled: false };
  expect(meetings.filterOf(wishes, "a@b.example")).toEqual({ ...filter, ownerEmail: "a@b.example" });
  expect(meetings.filterOf(wishes, null)).toEqual(filter);
  expect(meetings.filterOf({ ...wishes, tab: "all" }, null)).toEqual({ search: "offer", includeCancelled: true });
});

test("'No deal' is said by who has looked, and by nobody else", () => {
  const sync = { lastSuccessAt: SINCE, matching: null };
  const connection = { id: "c", state: "CONNECTED" as const, trouble: null, sync };
  const match = {
    status: "NONE" as const,
    reason: "",
    deal: null,
    candidates: [],
  };
  const said = (changed: object, of: object = {}) =>
    aboutOf({ match: { ...match, ...of }, cancelledAt: null }, { ...connection, ...changed }).instead;
  const matching = { done: 23, total: 40 };
  expect(said({})).toBe("No deal");
  expect(said({ state: "NOT_CONNECTED" })).toBe("No CRM is connected");
  expect(said({ sync: { ...sync, lastSuccessAt: null } })).toBe("Not matched yet");
  expect(said({ sync: { ...sync, matching } })).toBe("Not matched yet");
  expect(said({}, { status: "PENDING" })).toBe("Not matched yet");
  expect(said({}, { status: "NEEDS_CHOICE" })).toBe(null);
  // Its deal could not be read.
  expect(said({}, { status: "MATCHED" })).toBe("Not known");
  expect(aboutOf({ match, cancelledAt: SINCE }, connection)).toMatchObject({
    badge: { text: "Cancelled" },
    instead: null,
  });
});

test("settings of silence go into a form and come out as they were; a line that cannot be is marked", () => {
  const settings = {
    thresholds: [
      {
        scope: "ALL" as const,
        pipeline: null,
        stage: null,
        code: "GHOSTED" as const,
        days: 9,
      },
      {
        scope: "STAGE" as const,
        pipeline: null,
        stage: { id: "s1" },
        code: "NO_NEXT_STEP" as const,
        days: 0,
      },
    ],
    version: "1",
    businessDays: true,
    twoWayActivityTypes: ["demo", "visit"],
    timeZone: "Europe/Berlin",
    timeZoneIsSet: true,
    rejudging: null,
  };
  const draft = draftOf(settings);
  expect(inputOf(draft)).toEqual({
    thresholds: [
      { code: "GHOSTED", days: 9 },
      { code: "NO_NEXT_STEP", days: 0, stageId: "s1" },
    ],
    businessDays: true,
    twoWayActivityTypes: ["demo", "visit"],
    timeZone: "Europe/Berlin",
  });
  // Saved again, a zone that nobody has set would hold whoever authorizes next.
  expect(inputOf(draftOf({ ...settings, timeZoneIsSet: false })).timeZone).toBeNull();
  const [first, second] = draft.lines;
  if (!first || !second) throw new Error("the form has no lines");
  expect(draft.lines.map((line) => faultOf(line, draft.lines))).toEqual([null, null]);
  expect(faultOf({ ...first, days: "0" }, draft.lines)).toBe("Days from 1 to 3650.");
  expect(faultOf({ ...second, days: "-1" }, draft.lines)).toBe("Days from 0 to 3650.");
  const twice = { ...second, code: first.code, scope: first.scope, days: "4" };
  expect(faultOf(twice, [first, twice])).toBe("The same is said above for the same deals.");
});

// Seen red: 0 of a currency of which there was some.
test.each([
  ["0.00001234", "BTC", "BTC\u00a00.00001234"],
  ["-0.00001", "EUR", "-€0.00001"],
  ["1234.50", "EUR", "€1,234.50"],
  ["99999999999.1234567", "USD", "$99,999,999,999.1234567"],
  ["1200.00", "EUR", "€1,200"],
])("an amount of %s %s is shown exactly", (amount, currency, shown) => {
  expect(money({ amount, currency })).toBe(shown);
});
