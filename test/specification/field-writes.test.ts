import { all, statesOf, useFieldStory } from "../support/field-story";
import {
  ENTITIES,
  type FieldValue,
  fieldOf,
  fieldsIn,
  heldIn,
  listPath,
  listsAreOld,
  patches,
  recordPath,
  setMapping,
  writeFields,
} from "../support/fields";
import { type Service, startService } from "../support/service";
import { countStatements, type Sent, type StatementCounter, transactions } from "../support/statements";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";

// Seen red with: the targets proved in a transaction of their own, and again with the receipts.

const story = useFieldStory();
const { simulator, database, service, ids, keyOf, nominate, held } = story;
let meetingId: string;
beforeAll(() => {
  meetingId = story.meetingId;
});

/** The keys of the custom fields that the copy has of a deal. */
async function copiedOf(dealId: number): Promise<string[]> {
  const copied = await database.query<{ keys: string[] }>(
    "SELECT ARRAY (SELECT jsonb_object_keys(custom_fields)) AS keys FROM deal WHERE crm_id = $1",
    [dealId],
  );
  return copied.flatMap(({ keys }) => keys);
}

describe("Values of one mutation", () => {
  test("reach the deal, the person and the organization of the meeting, one request each, and are readable at once", async () => {
    const answer = await writeFields(service, meetingId, all("Trial agreed"));
    expect(answer).toMatchObject({
      allWritten: true,
      writes: ENTITIES.map((entity) => ({
        entity,
        fieldKey: keyOf(entity),
        state: "WRITTEN",
        error: null,
        requestedBy: "anna",
        meeting: { id: meetingId },
      })),
    });
    expect(ENTITIES.map((entity) => held(entity))).toEqual(Array(3).fill("Trial agreed"));
    expect(simulator.log.all().map(({ method, path, body }) => [method, path, body])).toEqual(
      ENTITIES.map((entity) => [
        "PATCH",
        recordPath(entity, ids[entity]),
        { custom_fields: { [keyOf(entity)]: "Trial agreed" } },
      ]),
    );
    for (const [position, entity] of ENTITIES.entries()) {
      const kind = { DEAL: "Deal", PERSON: "Person", ORGANIZATION: "Organization" }[entity];
      const query = `query ($id: ID!) { node(id: $id) { ... on ${kind} { customFields } } }`;
      const id = answer.writes?.[position]?.target?.id;
      const { node } = dataOf(await service.ask<{ node: { customFields: object } }>(query, { id }));
      expect(node.customFields).toMatchObject({ [keyOf(entity)]: "Trial agreed" });
    }
    // Planted and seen red: lists that are sorted by it had the deal where it was before, until it changed again.
    const changed = new Date(simulator.company.deals.get(ids.DEAL)?.update_time ?? "");
    const times = `SELECT d.update_time, s.changed_at FROM deal d JOIN deal_silence s USING (tenant_id, copy_id)
      WHERE d.crm_id = $1 AND s.deal_id = d.crm_id`;
    expect((await database.query(times, [ids.DEAL]))[0]).toEqual({ update_time: changed, changed_at: changed });
  });

  test("are reported in the order sent, and one that does not fit hides none that does", async () => {
    const answer = await writeFields(service, meetingId, [
      { entity: "ORGANIZATION", value: "fits" },
      { entity: "DEAL", value: { no: "text" } },
      { entity: "PERSON", value: "fits too" },
    ]);
    expect(statesOf(answer)).toEqual(["WRITTEN", "VALUE_REJECTED", "WRITTEN"]);
    expect(answer.allWritten).toBe(false);
    expect(answer.writes?.[1]?.error?.message).toMatch(
      /^Not written: it is not text\. The field "Reference" \(varchar\) expects .*, for example "REF-1042"; "" clears it\.$/,
    );
    expect(patches(simulator).map(({ path }) => path)).toEqual(
      (["ORGANIZATION", "PERSON"] as const).map((entity) => recordPath(entity, ids[entity])),
    );
    const history = `{ crmWrites(first: 3) { nodes { ... on FieldWrite { entity state error { code } } } } }`;
    const { crmWrites } = dataOf(await service.ask<{ crmWrites: { nodes: object[] } }>(history));
    expect(crmWrites.nodes).toHaveLength(3);
  });

  test("that are empty text clear the field", async () => {
    await writeFields(service, meetingId, [{ entity: "DEAL", value: "something" }]);
    expect(held("DEAL")).toBe("something");
    expect(await copiedOf(ids.DEAL)).toContain(keyOf("DEAL"));
    expect(statesOf(await writeFields(service, meetingId, [{ entity: "DEAL", value: "" }]))).toEqual(["WRITTEN"]);
    expect(held("DEAL")).toBeNull();
    expect(patches(simulator).at(-1)?.body).toEqual({ custom_fields: { [keyOf("DEAL")]: null } });
    expect(await copiedOf(ids.DEAL)).not.toContain(keyOf("DEAL"));
  });

  test("after the CRM says that its limit is used up are not sent", async () => {
    simulator.control.fail({ match: "/api/v2/persons/", method: "PATCH", with: { kind: "throttle" } });
    const answer = await writeFields(service, meetingId, all("limited"));
    expect(statesOf(answer)).toEqual(["WRITTEN", "RATE_LIMITED", "RATE_LIMITED"]);
    expect(patches(simulator).map(({ path }) => path)).toEqual(
      (["DEAL", "PERSON"] as const).map((entity) => recordPath(entity, ids[entity])),
    );
  });
});

describe("Every writable type", () => {
  const stories = simulatorFreeValues();
  test.each(stories)("a %s is written, echoed by the CRM and counted as written", async (type, make) => {
    const [value, expected] = make();
    await nominate(type);
    expect(statesOf(await writeFields(service, meetingId, all(value)))).toEqual(["WRITTEN", "WRITTEN", "WRITTEN"]);
    for (const entity of ENTITIES) expect({ is: held(entity, type) }).toMatchObject({ is: expected });
    expect(patches(simulator)).toHaveLength(3);
  });
  afterAll(() => nominate("varchar"));
});

/** Type, and what is sent with what the CRM then holds. */
function simulatorFreeValues(): [string, () => [unknown, unknown]][] {
  const optionId = (type: string, label: string) =>
    fieldOf(simulator, "DEAL", type).options?.find((option) => option.label === label)?.id ?? 0;
  const same =
    (value: unknown): (() => [unknown, unknown]) =>
    () => [value, value];
  return [
    ["varchar", same("REF-77")],
    ["varchar_auto", same("Website")],
    ["text", same("one\ntwo")],
    ["phone", same("+372 5123 456")],
    ["double", () => ["1250.50", 1250.5]],
    ["int", () => ["250", 250]],
    [
      "monetary",
      () => [
        { value: "99.95", currency: "eur" },
        { value: 99.95, currency: "EUR" },
      ],
    ],
    ["date", same("2026-12-24")],
    ["daterange", same({ value: "2026-12-24", until: "2027-01-06" })],
    ["time", () => ["9:15", { value: "09:15:00" }]],
    [
      "timerange",
      () => [
        { value: "09:00", until: "17:30", timezone_name: "Europe/Tallinn" },
        { value: "09:00:00", until: "17:30:00", timezone_name: "Europe/Tallinn" },
      ],
    ],
    ["enum", () => ["Enterprise", optionId("enum", "Enterprise")]],
    [
      "set",
      () => [
        ["Analytics", "Compliance"],
        [optionId("set", "Analytics"), optionId("set", "Compliance")],
      ],
    ],
    [
      "user",
      () => [String(simulator.company.stories.singleDeal.ownerId), simulator.company.stories.singleDeal.ownerId],
    ],
    ["org", () => [ids.ORGANIZATION, ids.ORGANIZATION]],
    ["people", () => [ids.PERSON, ids.PERSON]],
    ["address", () => ["Hauptstraße 5, Köln", { value: "Hauptstraße 5, Köln" }]],
  ];
}

describe("A field that is not as it was", () => {
  test("an option that was added since is found in the CRM's list, and one that is nowhere is refused", async () => {
    const key = simulator.control.addCustomField("deal", { name: "Tier", type: "enum", options: ["Gold"] });
    await setMapping(service, "DEAL", key);
    simulator.control.changeFieldType("deal", key, "enum", ["Gold", "Silver"]);
    await listsAreOld(database);
    simulator.log.clear();
    expect(statesOf(await writeFields(service, meetingId, [{ entity: "DEAL", value: "Silver" }]))).toEqual(["WRITTEN"]);
    expect(simulator.log.all().map(({ method, path }) => [method, path])).toEqual([
      ["GET", listPath("DEAL")],
      ["PATCH", recordPath("DEAL", ids.DEAL)],
    ]);
    const refused = await writeFields(service, meetingId, [{ entity: "DEAL", value: "Bronze" }]);
    expect(refused.writes?.[0]?.error?.message).toContain('is none of the options "Gold"');
    // Seen red: a list for each value that is refused, whatever its age.
    expect(simulator.log.all()).toHaveLength(2);
    await nominate("varchar");
  });

  // Seen red: "Red" refused the first time, and with swapped labels written as "Blue".
  test("a label is the option's that has it now, where the list is older than a minute", async () => {
    const key = simulator.control.addCustomField("deal", { name: "Colour", type: "enum", options: ["Red", "Blue"] });
    await setMapping(service, "DEAL", key);
    const blue = fieldsIn(simulator, "DEAL").find(({ field_code }) => field_code === key)?.options?.[1]?.id ?? 0;
    const relabel = async (options: { id: number; label: string }[]) => {
      simulator.control.describeField("deal", key, { options });
      await listsAreOld(database);
      simulator.log.clear();
    };
    const write = async (value: unknown) =>
      statesOf(await writeFields(service, meetingId, [{ entity: "DEAL", value }]));
    const sent = () => simulator.log.all().map(({ method }) => method);
    await relabel([
      { id: blue, label: "Blue" },
      { id: 9_001, label: "Red" },
    ]);
    expect(await write("Red")).toEqual(["WRITTEN"]);
    expect(heldIn(simulator, "DEAL", ids.DEAL, key)).toBe(9_001);
    expect(await write("Blue")).toEqual(["WRITTEN"]);
    expect(sent()).toEqual(["GET", "PATCH", "PATCH"]);
    await relabel([
      { id: blue, label: "Red" },
      { id: 9_001, label: "Blue" },
    ]);
    expect(await write(9_001)).toEqual(["WRITTEN"]);
    expect(sent()).toEqual(["PATCH"]);
    expect(await write("Red")).toEqual(["WRITTEN"]);
    expect(heldIn(simulator, "DEAL", ids.DEAL, key)).toBe(blue);
    await nominate("varchar");
  });

  // Seen red: the old option written and said to be WRITTEN, and "is none of the options" of what nobody had looked at.
  test("a value in doubt fails, and may be tried again, where the CRM's list cannot be read; others are sent", async () => {
    const key = simulator.control.addCustomField("deal", { name: "Size", type: "enum", options: ["Big", "Small"] });
    await setMapping(service, "DEAL", key);
    const id = fieldsIn(simulator, "DEAL").find(({ field_code }) => field_code === key)?.options?.[0]?.id ?? 0;
    simulator.control.describeField("deal", key, { options: [{ id, label: "Small" }] });
    await listsAreOld(database);
    for (const value of ["Big", "Newest"]) {
      simulator.log.clear();
      simulator.control.fail({ match: listPath("DEAL"), times: 1, with: { status: 503 } });
      const { writes } = await writeFields(service, meetingId, [
        { entity: "DEAL", value },
        { entity: "PERSON", value: "certain" },
      ]);
      expect(writes?.map(({ state, error }) => error?.code ?? state)).toEqual(["CRM_UNAVAILABLE", "WRITTEN"]);
      expect(writes?.[0]?.error?.message).toBe(
        "Not written: its field could not be looked at in the CRM. The CRM could not be reached or is down. Try again in a while. Use a new idempotency key for that.",
      );
      expect(patches(simulator).map(({ path }) => path)).toEqual([recordPath("PERSON", ids.PERSON)]);
    }
    await nominate("varchar");
  });

  // Seen red: VALUE_REJECTED after two requests, "Change it ...", which never helps.
  test("of a deal that was archived is not written, and the record is said to be the reason", async () => {
    simulator.control.archive(ids.DEAL);
    simulator.log.clear();
    const { writes } = await writeFields(service, meetingId, [{ entity: "DEAL", value: "out of sight" }]);
    expect(writes?.[0]?.error).toMatchObject({ code: "RECORD_NOT_FOUND" });
    expect(simulator.log.all().map(({ method, path }) => [method, path])).toEqual([
      ["PATCH", recordPath("DEAL", ids.DEAL)],
      ["GET", "/api/v2/deals"],
    ]);
    simulator.control.change("deal", ids.DEAL, { is_archived: false });
  });

  test("a field that the CRM no longer has fails alone, and is then known to be missing", async () => {
    const key = simulator.control.addCustomField("person", { name: "Doomed", type: "varchar" });
    await setMapping(service, "PERSON", key);
    simulator.control.removeCustomField("person", key);
    await listsAreOld(database);
    const first = await writeFields(service, meetingId, all("still here?"));
    expect(statesOf(first)).toEqual(["WRITTEN", "FIELD_NOT_FOUND", "WRITTEN"]);
    simulator.log.clear();
    const second = await writeFields(service, meetingId, [{ entity: "PERSON", value: "and now?" }]);
    expect(statesOf(second)).toEqual(["FIELD_NOT_FOUND"]);
    expect(patches(simulator)).toEqual([]);
    await nominate("varchar");
  });
});

describe("A mutation seen from the database", () => {
  let counter: StatementCounter;
  let counted: Service;
  beforeAll(async () => {
    counter = await countStatements(database.url);
    counted = await startService(simulator, database, { databaseUrl: counter.url, roles: new Set(["api"]) });
    // A tenant that a process has never seen is looked up once.
    await counted.ask("{ viewer { userId } }");
  });
  afterAll(async () => {
    await counted.stop();
    await counter.close();
  });

  const statementsOf = async (values: FieldValue[]) => {
    const sent = await counter.sentDuring(() => writeFields(counted, meetingId, values));
    const has = (pattern: RegExp) => (statement: Sent) => pattern.test(statement.sql);
    // On a cluster each statement is in a transaction, also one that reads alone.
    const writing = transactions(sent).filter((one) => one.some(has(/FOR SHARE|UPDATE field_write /)));
    return { proofs: sent.filter(has(/FROM meeting .* FOR SHARE/)).length, transactions: writing.length };
  };

  test("proves its targets once, with the receipts, settles each record by itself, and copies all at the end", async () => {
    expect(await statementsOf(all("counted"))).toEqual({ proofs: 1, transactions: 5 });
    expect(await statementsOf(all("counted").slice(0, 1))).toEqual({ proofs: 1, transactions: 3 });
  });

  test("proves them again only where a value was in doubt and the CRM's list was read", async () => {
    const values = [{ entity: "DEAL" as const, value: { no: "text" } }];
    await listsAreOld(database);
    // The third one keeps the list that was read, for what records show by it.
    expect(await statementsOf(values)).toEqual({ proofs: 2, transactions: 3 });
  });
});

describe("The idempotency key", () => {
  test("gives the same report again without a request, and is refused with another input", async () => {
    const key = { idempotencyKey: "once" };
    const first = await writeFields(service, meetingId, all("once"), key);
    simulator.log.clear();
    expect(await writeFields(service, meetingId, all("once"), key)).toEqual(first);
    const reused = { code: "IDEMPOTENCY_KEY_REUSED", field: "idempotencyKey" };
    const other = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
    expect(await writeFields(service, other.id, all("once"), key)).toMatchObject(reused);
    const named = all("once").map((value) => ({ ...value, targetId: "another" }));
    for (const values of [all("twice"), all("once").slice(1), all("once").reverse(), named])
      expect(await writeFields(service, meetingId, values, key)).toMatchObject(reused);
    expect(simulator.log.all()).toEqual([]);
  });

  test("of eight callers at once sends once, and all get the same report", async () => {
    simulator.control.fail({ match: "/api/v2/", method: "PATCH", with: { kind: "delay", ms: 200 } });
    const key = { idempotencyKey: "together" };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => writeFields(service, meetingId, all("together"), key)),
    );
    expect(answers.every(({ allWritten }) => allWritten)).toBe(true);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(patches(simulator)).toHaveLength(3);
  });

  test("of two callers with other inputs at once: one writes, the other is refused once that one has ended", async () => {
    simulator.control.fail({ match: "/api/v2/", method: "PATCH", with: { kind: "delay", ms: 500 } });
    const key = { idempotencyKey: "rivals" };
    const sending = "SELECT 1 FROM field_write WHERE idempotency_key = 'rivals' AND state = 'SENDING'";
    const write = async (values: FieldValue[]) => {
      const answer = await writeFields(service, meetingId, values, key);
      // Seen red refused at once: what was sent instead, under another key, could be overtaken.
      expect(await database.query(sending)).toEqual([]);
      return answer;
    };
    const answers = await Promise.all([all("mine"), all("yours").slice(0, 1)].map(write));
    expect(answers.filter(({ allWritten }) => allWritten)).toHaveLength(1);
    expect(answers.filter(({ code }) => code === "IDEMPOTENCY_KEY_REUSED")).toHaveLength(1);
    const winner = answers[0]?.allWritten ? 3 : 1;
    expect(patches(simulator)).toHaveLength(winner);
    expect(await database.query("SELECT 1 FROM field_write WHERE idempotency_key = 'rivals'")).toHaveLength(winner);
  });
});

describe("The life of the connection", () => {
  test("a value whose answer comes after a disconnect is reported as written, and touches no copy", async () => {
    const as = { tenant: "leaver" };
    await connect(service, simulator, as);
    await syncEnds(service, as);
    await setMapping(service, "DEAL", keyOf("DEAL"), as);
    const { id: meeting } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
    simulator.log.clear();
    simulator.control.fail({ match: "/api/v2/deals", method: "PATCH", with: { kind: "delay", ms: 400 } });
    const writing = writeFields(service, meeting, [{ entity: "DEAL", value: "late" }], { as });
    await until("the request is on its way", async () => patches(simulator).length > 0);
    await service.ask("mutation { disconnect { __typename } }", {}, as);
    expect(await writing).toMatchObject({ allWritten: true, writes: [{ state: "WRITTEN", target: null }] });
    expect(held("DEAL")).toBe("late");
  });

  test("a grant that is revoked fails every value after one question, and later ones are refused without any", async () => {
    const as = { tenant: "revoked" };
    simulator.control.signIn(
      [...simulator.company.users.values()].find(
        (user) => user.id !== simulator.company.stories.singleDeal.ownerId && user.is_admin === 1,
      )?.id ?? 0,
    );
    await connect(service, simulator, as);
    await syncEnds(service, as);
    for (const entity of ENTITIES) await setMapping(service, entity, keyOf(entity), as);
    const { id: meeting } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
    const bound = simulator.log.all().at(-1)?.userId ?? 0;
    simulator.control.revoke(bound);
    simulator.log.clear();
    expect(statesOf(await writeFields(service, meeting, all("revoked"), { as }))).toEqual(
      Array(3).fill("NEEDS_REAUTHORIZATION"),
    );
    expect(patches(simulator)).toHaveLength(1);
    simulator.log.clear();
    expect(await writeFields(service, meeting, all("revoked"), { as })).toMatchObject({
      code: "NEEDS_REAUTHORIZATION",
    });
    expect(simulator.log.all()).toEqual([]);
  });
});
