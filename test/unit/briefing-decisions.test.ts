import { beginningOf, netChanges } from "../../web/src/briefing/changed";
import { draftSlot, sentSlot, tooMany } from "../../web/src/briefing/draft-slots";
import {
  asFilled,
  asText,
  settled,
  targetOf,
  unchanged,
  unwritten,
  valuesOf,
} from "../../web/src/briefing/field-values";
import { withLastWord } from "../../web/src/briefing/last-word";
import { markCounted, nearChange, sortReasons } from "../../web/src/briefing/silence";
import { duration, found } from "../../web/src/settings/figures";
import { valueFrom } from "../../web/src/ui/field-types";

/** What a briefing, its forms and the settings decide by themselves, without a browser. */

type Reason = Parameters<typeof sortReasons>[1][number];
type Mapping = Parameters<typeof valuesOf>[0][number];
type Briefing = Parameters<typeof valuesOf>[2];
type Contact = Parameters<typeof markCounted>[0][number];

const SINCE = "2026-10-13T00:00:00.000Z";
const HENRIK = { id: "henrik", name: "Henrik" };
const reason = (code: Reason["code"], evidence: Reason["evidence"] = []): Reason => ({
  code,
  since: SINCE,
  sinceDay: null,
  message: code,
  evidence,
});
const mail = (kind: Contact["kind"], at: string): Contact => ({ kind, at, day: null, person: HENRIK, activity: null });
const BUYER = { __typename: "Person", ...HENRIK, lastIncomingMailAt: SINCE } as const;

describe("Silence", () => {
  test("only what decided the verdict is its reason, and what tells of contact alone is no news beside it", () => {
    const reasons = [
      reason("NO_RECENT_ACTIVITY"),
      reason("GHOSTED"),
      reason("NO_NEXT_STEP"),
      reason("CLOSE_DATE_PASSED"),
      reason("OWNER_INACTIVE"),
    ];
    const codes = (verdict: Parameters<typeof sortReasons>[0]) => {
      const { fired, besides } = sortReasons(verdict, reasons);
      return [fired.map(({ code }) => code), besides.map(({ code }) => code)];
    };
    const besides = ["CLOSE_DATE_PASSED", "OWNER_INACTIVE"];
    expect(codes("GHOSTED")).toEqual([["GHOSTED"], besides]);
    expect(codes("QUIET")).toEqual([["NO_RECENT_ACTIVITY"], besides]);
    expect(codes("COOLING")).toEqual([["NO_RECENT_ACTIVITY", "NO_NEXT_STEP"], besides]);
    expect(codes("ACTIVE")).toEqual([[], besides]);
  });

  test("the contact that counts is marked, and added where the timeline does not go back so far", () => {
    const ours = mail("OUTGOING_MAIL", "2026-11-10T00:00:00.000Z");
    const theirs = mail("INCOMING_MAIL", SINCE);
    for (const timeline of [[ours], [ours, theirs]])
      expect(markCounted(timeline, "GHOSTED", [reason("GHOSTED", [BUYER])])).toEqual([
        { ...ours, counts: false, buyer: false },
        { ...theirs, counts: true, buyer: true },
      ]);
  });

  test("a silence that is counted from the deal's adding marks no contact", () => {
    const deal = { __typename: "Deal", id: "deal" } as Reason["evidence"][number];
    expect(markCounted([], "QUIET", [reason("NO_RECENT_ACTIVITY", [deal])])).toEqual([]);
  });

  test("a change of the verdict is told where it is near", () => {
    const now = Date.parse("2026-11-20T00:00:00Z");
    expect(nearChange(null, now)).toBeNull();
    expect(nearChange("2026-11-27T00:00:00Z", now)).toBe("2026-11-27T00:00:00Z");
    expect(nearChange("2027-01-27T00:00:00Z", now)).toBeNull();
    expect(nearChange("2026-11-19T00:00:00Z", now)).toBeNull();
  });
});

test("what has changed goes from the first state to the last, and what went back has not changed", () => {
  const change = (
    kind: "STAGE" | "VERDICT" | "CLOSE_DATE",
    from: string | null,
    to: string | null,
    seenAt: string,
  ) => ({
    kind,
    from,
    to,
    seenAt,
  });
  const changes = [
    change("CLOSE_DATE", null, "2027-03-01", "4"),
    change("STAGE", "Offer", "Contract", "3"),
    change("VERDICT", "COOLING", "ACTIVE", "2"),
    change("STAGE", "First talk", "Offer", "1"),
    change("VERDICT", "ACTIVE", "COOLING", "0"),
  ];
  expect(netChanges(changes).map(({ kind, from, to, seenAt }) => [kind, from, to, seenAt])).toEqual([
    ["CLOSE_DATE", "none", expect.stringContaining("2027"), "4"],
    ["STAGE", "First talk", "Contract", "3"],
  ]);
});

test("changes are told of since the connection where it is later than what is asked for, and none was seen before it", () => {
  const now = Date.parse("2026-11-28T00:00:00Z");
  const at = (day: string) => `2026-${day}T00:00:00.000Z`;
  const previousMeeting = { id: "1", title: "Call", startsAt: at("11-20") };
  const seen = (kind: "STAGE" | "VERDICT", day: string) => ({ kind, from: null, to: "x", seenAt: at(day) });
  const of = (
    connected: string | null,
    previous: typeof previousMeeting | null,
    ...changes: ReturnType<typeof seen>[]
  ) => beginningOf({ changes, previousMeeting: previous }, connected && at(connected), now);
  expect([of("10-28", null), of("11-19", previousMeeting), of(null, null)]).toEqual([null, null, null]);
  expect([of("10-30", null), of("11-21", previousMeeting)]).toEqual([at("10-30"), at("11-21")]);
  expect(of("11-21", null, seen("STAGE", "11-22"), seen("VERDICT", "11-20"))).toBe(at("11-21"));
  // Somebody has authorized again.
  expect(of("11-21", null, seen("STAGE", "11-22"), seen("STAGE", "11-20"))).toBeNull();
});

test("who was heard of last comes first, by mail or by what they took part in", () => {
  const person = (id: string, lastIncomingMailAt: string | null) => ({
    id,
    name: id,
    crmUrl: null,
    lastIncomingMailAt,
    emails: [],
    organization: null,
  });
  const [activity, day] = [{ id: "1", subject: "Call", type: "call" }, "2026-11-04"];
  const timeline = [{ kind: "ACTIVITY" as const, at: "2026-11-03", day, person: { id: "c", name: "c" }, activity }];
  const people = [person("a", null), person("b", "2026-11-02"), person("c", "2026-11-01")];
  expect(withLastWord(people, timeline).map(({ person: { id }, last }) => [id, last?.what, last?.day])).toEqual([
    ["c", "Call (call)", day],
    ["b", null, null],
    ["a", undefined, undefined],
  ]);
});

describe("What is typed", () => {
  test("a draft belongs to a user of a tenant, a meeting and a use, whatever their names are", () => {
    const slots = [
      draftSlot({ tenantId: "a", userId: "b" }, "m", "note"),
      draftSlot({ tenantId: "a,b", userId: "" }, "m", "note"),
      draftSlot({ tenantId: "a", userId: "c" }, "m", "note"),
      draftSlot({ tenantId: "a", userId: "b" }, "m", "fields"),
    ];
    expect(new Set(slots).size).toBe(4);
    expect(
      new Set([...slots, sentSlot({ tenantId: "a", userId: "b" }, "m"), sentSlot({ tenantId: "a", userId: "c" }, "m")])
        .size,
    ).toBe(6);
  });

  test("the oldest drafts go where there are too many", () => {
    const drafts = Array.from({ length: 21 }, (_, at) => ({ slot: `${at}`, at }));
    expect(tooMany(drafts.slice(0, 19))).toEqual([]);
    expect(tooMany(drafts).sort()).toEqual(["0", "1"]);
  });

  test("a field's value is sent as its type has it, and not before it is whole", () => {
    expect(valueFrom("varchar", ["  Decides "])).toBe("Decides");
    expect(valueFrom("varchar", ["  "])).toBeUndefined();
    expect(valueFrom("monetary", ["1250.50", "eur"])).toEqual({ value: "1250.50", currency: "EUR" });
    expect(valueFrom("monetary", ["1250.50", ""])).toBeUndefined();
    expect(valueFrom("monetary", ["a lot", "eur"])).toEqual({ value: "a lot", currency: "EUR" });
    expect(valueFrom("double", [" "])).toBeUndefined();
    expect(
      ["1,200.5", "-12.5", "\u2212 7", "12,34,567", "1.2.3", "about 5"].map((typed) => valueFrom("double", [typed])),
    ).toEqual(["1200.5", "-12.5", "-7", "1234567", "1.2.3", "about 5"]);
    expect(valueFrom("daterange", ["2026-11-20", "2026-12-20"])).toEqual({ value: "2026-11-20", until: "2026-12-20" });
    // As numbers: a text may be the label of one option and the id of another.
    expect(valueFrom("set", ["1", "3"])).toEqual([1, 3]);
    expect(valueFrom("enum", ["101"])).toBe(101);
    expect(valueFrom("enum", ["open"])).toBe("open");
    expect(valueFrom("enum", [])).toBeUndefined();
    expect(valueFrom("set", [])).toBeUndefined();
  });

  test("after a report what failed, or was not sent, can be written, and what may be written stays until that is known", () => {
    const one = { fieldKey: "key", parts: ["x"] };
    const filled = { DEAL: one, PERSON: one, ORGANIZATION: one };
    const deal = (state: "WRITTEN" | "FAILED" | "UNKNOWN") => ({ id: "1", entity: "DEAL" as const, state });
    const person = { id: "2", entity: "PERSON" as const, state: "FAILED" as const };
    const sent = [
      { entity: "DEAL" as const, targetId: "d", value: "x" },
      { entity: "PERSON" as const, targetId: "p", value: "x" },
    ];
    const [ofDeal, ofPerson] = sent.map(({ targetId }) => ({ ...one, targetId }));
    expect(unwritten(filled, sent, [deal("WRITTEN"), person])).toEqual({ PERSON: ofPerson, ORGANIZATION: one });
    const left = unwritten(filled, sent, [deal("UNKNOWN"), person]);
    expect(left).toEqual({ DEAL: { ...ofDeal, writeId: "1" }, PERSON: ofPerson, ORGANIZATION: one });
    const later = [[], [deal("UNKNOWN")], [deal("FAILED")], [deal("WRITTEN")]].map((now) => settled(left, now).DEAL);
    expect(later).toEqual([left.DEAL, left.DEAL, ofDeal, undefined]);
    expect(asFilled(asText(left))).toEqual(left);
    expect(asFilled('{"DEAL":1}')).toEqual({});
    expect(asFilled("no JSON")).toEqual({});
  });

  test("a report is not about what was changed since its values were sent", () => {
    const mapping = { entity: "DEAL", fieldKey: "key", fieldName: "Plan", fieldType: "set" } as Mapping;
    const sent = [{ entity: "DEAL" as const, targetId: "d", value: [1, 2] }];
    const sameAs = (now: object) =>
      unchanged(sent, { DEAL: { fieldKey: "key", parts: ["1", "2"], ...now } }, [mapping]).length > 0;
    expect([{}, { targetId: "d" }].map(sameAs)).toEqual([true, true]);
    const others = [{ parts: ["1"] }, { targetId: "e" }, { fieldKey: "another" }, { writeId: "1" }];
    expect(others.map(sameAs)).toEqual(others.map(() => false));
    expect(unchanged(sent, {}, [mapping])).toEqual([]);
  });

  test("of several records one is meant where it was chosen and still belongs to the meeting", () => {
    const [a, b] = [
      { id: "a", name: "A" },
      { id: "b", name: "B" },
    ];
    expect(targetOf([a], undefined, false)).toBe(a);
    expect([targetOf([a], undefined, true), targetOf([a, b], undefined, false)]).toEqual([null, null]);
    expect(targetOf([a, b], { fieldKey: "key", targetId: "b", parts: [] }, false)).toBe(b);
    expect(targetOf([a, b], { fieldKey: "key", targetId: "gone", parts: [] }, false)).toBeNull();
    expect(targetOf([a], { fieldKey: "key", parts: [] }, false)).toBe(a);
    expect(targetOf([a], { fieldKey: "key", targetId: "gone", parts: [] }, false)).toBeNull();
  });

  // Seen red: it was sent to the other deal.
  test("what was filled in for one deal is not sent to another that the meeting is about by now", () => {
    const mapping = { entity: "DEAL" as const, fieldKey: "key", fieldName: "Plan", fieldType: "varchar" };
    const briefing = { deal: { id: "D2", title: "Second" } } as Briefing;
    const sendable = (targetId?: string) =>
      valuesOf([mapping as Mapping], { DEAL: { fieldKey: "key", targetId, parts: ["x"] } }, briefing, false).map(
        (value) => value.targetId,
      );
    expect([sendable("D1"), sendable("D2"), sendable()]).toEqual([[], ["D2"], ["D2"]]);
  });
});

test("how long a run took, and which fields fit a search", () => {
  const after = (seconds: number) => duration(SINCE, new Date(Date.parse(SINCE) + seconds * 1000).toISOString());
  expect([0, 1, 100, 180, 7_200].map(after)).toEqual([
    "less than a second",
    "1 second",
    "100 seconds",
    "3 minutes",
    "2 hours",
  ]);
  const fields = ["Old summary", "Summary", "Segment"].map((name) => ({ name }));
  expect(found(fields, " SUMM ").map(({ name }) => name)).toEqual(["Summary", "Old summary"]);
});
