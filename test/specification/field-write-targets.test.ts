import type { ActorClaims } from "../support/actors";
import { all, statesOf, useFieldStory } from "../support/field-story";
import { ENTITIES, type Entity, writeFields } from "../support/fields";
import { connect, recordMeeting, syncEnds } from "../support/stories";

const story = useFieldStory();
const { simulator, database, service, ids, nominate } = story;
let meetingId: string;
beforeAll(() => {
  meetingId = story.meetingId;
});

describe("A wrong target", () => {
  const noted = { as: undefined as ActorClaims | undefined };
  let others: Record<
    | "unmatched"
    | "ofAnother"
    | "meeting"
    | "unknownPeople"
    | "severalPeople"
    | "twoPeople"
    | "shared"
    | "free"
    | "person"
    | "user",
    string
  >;
  beforeAll(async () => {
    const copy = async (tenant: string) =>
      (
        await database.query<{ id: number }>(
          "SELECT copy_id AS id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
          [tenant],
        )
      )[0]?.id;
    const globalId = (type: string, copyId: unknown, crmId: number) =>
      Buffer.from(`${type}:${copyId}:${crmId}`).toString("base64url");
    const as = { tenant: "another" };
    await connect(service, simulator, as);
    await syncEnds(service, as);
    const { singleDeal, severalDeals, sharedAddress, freeMail } = simulator.company.stories;
    const recorded = async (...emails: string[]) => (await recordMeeting(service, emails)).id;
    const matched = new Set([singleDeal.dealId, ...severalDeals.dealIds]);
    const unmatched = [...simulator.company.deals.keys()].find((id) => !matched.has(id)) ?? 0;
    others = {
      unmatched: globalId("Deal", await copy("acme"), unmatched),
      person: globalId("Person", await copy("acme"), ids.PERSON),
      user: globalId("CrmUser", await copy("acme"), 1),
      ofAnother: globalId("Deal", await copy("another"), ids.DEAL),
      meeting: (await recordMeeting(service, [singleDeal.email], {}, as)).id,
      unknownPeople: (await recordMeeting(service, ["nobody@nowhere.example"])).id,
      twoPeople: await recorded(singleDeal.email, singleDeal.colleagueEmail),
      shared: await recorded(sharedAddress.email),
      free: await recorded(freeMail.email),
      severalPeople: (await recordMeeting(service, [severalDeals.email])).id,
    };
  });
  const value = "never sent";
  const one = (entity: Entity, targetId?: string) => [{ entity, value, targetId }];

  test.each<[string, string, string | null, () => [string, { entity: Entity; value: unknown; targetId?: string }[]]]>([
    ["a meeting that nobody recorded", "MEETING_NOT_FOUND", "meetingId", () => ["nothing", one("DEAL")]],
    ["another tenant's meeting", "MEETING_NOT_FOUND", "meetingId", () => [others.meeting, one("DEAL")]],
    [
      "a deal that is not the meeting's",
      "TARGET_NOT_MATCHED",
      "values.0.targetId",
      () => [meetingId, one("DEAL", others.unmatched)],
    ],
    [
      "a deal of another tenant's copy",
      "TARGET_NOT_MATCHED",
      "values.0.targetId",
      () => [meetingId, one("DEAL", others.ofAnother)],
    ],
    [
      "a person where a deal is meant",
      "TARGET_NOT_MATCHED",
      "values.0.targetId",
      () => [meetingId, one("DEAL", others.person)],
    ],
    ["a CRM user", "TARGET_NOT_MATCHED", "values.0.targetId", () => [meetingId, one("PERSON", others.user)]],
    ["an id that says nothing", "TARGET_NOT_MATCHED", "values.0.targetId", () => [meetingId, one("PERSON", "nothing")]],
    ["an empty id", "TARGET_NOT_MATCHED", "values.0.targetId", () => [meetingId, one("PERSON", "")]],
    [
      "a meeting of unknown people",
      "TARGET_NOT_MATCHED",
      "values.0.targetId",
      () => [others.unknownPeople, one("PERSON")],
    ],
    ["one of two people of the meeting", "NEEDS_CHOICE", "values.0.targetId", () => [others.twoPeople, one("PERSON")]],
    [
      "one of two people with one address",
      "TARGET_NOT_MATCHED",
      "values.0.targetId",
      () => [others.shared, one("PERSON")],
    ],
    [
      "the company of someone without one",
      "TARGET_NOT_MATCHED",
      "values.0.targetId",
      () => [others.free, one("ORGANIZATION")],
    ],
    ["one of several deals", "NEEDS_CHOICE", "values.0.targetId", () => [others.severalPeople, one("DEAL")]],
    ["one record twice", "INVALID_INPUT", "values.1", () => [meetingId, [...one("DEAL"), ...one("DEAL")]]],
    ["no values", "INVALID_INPUT", "values", () => [meetingId, []]],
    ["too many values", "INVALID_INPUT", "values", () => [meetingId, Array(21).fill(one("DEAL")[0])]],
    [
      "a bottomless value",
      "INVALID_INPUT",
      "values.0.value",
      () => [meetingId, [{ entity: "DEAL", value: [[[[[[1]]]]]] }]],
    ],
    [
      "a right one beside a wrong one",
      "TARGET_NOT_MATCHED",
      "values.1.targetId",
      () => [meetingId, [...one("PERSON"), ...one("DEAL", others.unmatched)]],
    ],
  ])("%s: %s, no receipt and no request", async (_what, code, field, make) => {
    const [meeting, values] = make();
    const before = await database.query("SELECT id FROM field_write");
    expect(await writeFields(service, meeting, values, noted)).toMatchObject({ code, field });
    expect(simulator.log.all()).toEqual([]);
    expect(await database.query("SELECT id FROM field_write")).toHaveLength(before.length);
  });

  test.each(ENTITIES)("a %s whose field is not nominated: FIELD_NOT_MAPPED, and no request", async (entity) => {
    const clear = `mutation ($entity: CrmEntity!) { clearFieldMapping(entity: $entity) { __typename } }`;
    await service.ask(clear, { entity });
    expect(await writeFields(service, meetingId, all(value))).toMatchObject({
      code: "FIELD_NOT_MAPPED",
      // Seen red: "a organization".
      message: `No ${entity.toLowerCase()} field is nominated. An owner or admin can choose one.`,
      field: `values.${ENTITIES.indexOf(entity)}.entity`,
    });
    expect(simulator.log.all()).toEqual([]);
    await nominate("varchar");
  });

  test("a plan that has lapsed, no CRM, and a blank key refuse without a request; a member may write", async () => {
    const lapsed = { as: { role: "owner", plan: "free" } };
    expect(await writeFields(service, meetingId, all(value), lapsed)).toMatchObject({
      code: "NOT_ALLOWED_ON_PLAN",
    });
    const alone = { tenant: "alone" };
    const { id: meeting } = await recordMeeting(service, ["a@b.example"], {}, alone);
    expect(await writeFields(service, meeting, all(value), { as: alone })).toMatchObject({ code: "NOT_CONNECTED" });
    const blank = { idempotencyKey: " " };
    expect(await writeFields(service, meetingId, all(value), blank)).toMatchObject({ field: "idempotencyKey" });
    expect(simulator.log.all()).toEqual([]);
    const member = { role: "member" };
    const written = await writeFields(service, meetingId, all("by a member"), { as: member, idempotencyKey: "member" });
    // Seen red: refused, as if it had not been written.
    const again = { ...lapsed, idempotencyKey: "member" };
    expect(await writeFields(service, meetingId, all("by a member"), again)).toEqual(written);
    expect(await writeFields(service, meetingId, all(value), again)).toMatchObject({ code: "NOT_ALLOWED_ON_PLAN" });
    expect(statesOf(written)).toEqual(["WRITTEN", "WRITTEN", "WRITTEN"]);
  });
});
