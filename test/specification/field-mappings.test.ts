import type { ActorClaims } from "../support/actors";
import { earlier } from "../support/database";
import {
  clearMapping,
  ENTITIES,
  type Entity,
  fieldOf,
  fieldsIn,
  listPath,
  mappingsOf,
  setMapping,
  showFields,
} from "../support/fields";
import { connect, dataOf, syncEnds, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 20 });
afterEach(() => simulator.control.clearFaults());

let tenants = 0;
/** A tenant of its own, connected and with its first sync behind it. */
async function connected(): Promise<ActorClaims & { tenant: string }> {
  tenants += 1;
  const as = { tenant: `tenant-${tenants}` };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await until("the jobs after the run are done", async () => (await openJobs()) === 0);
  simulator.log.clear();
  return as;
}
const openJobs = async () => {
  const [count] = await database.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM graphile_worker.jobs WHERE task_identifier IN ('sync_run', 'sync_run_ended')",
  );
  return count?.n ?? 0;
};

async function sync(as: ActorClaims): Promise<void> {
  await service.ask("mutation { requestSync { __typename } }", {}, as);
  await syncEnds(service, as);
  await until("the jobs after the run are done", async () => (await openJobs()) === 0);
}

const FIELDS = `query ($entity: CrmEntity!, $customOnly: Boolean) {
  connection { fields(entity: $entity, customOnly: $customOnly) { key name type custom writable options { crmId label } } } }`;
interface Field {
  key: string;
  name: string;
  type: string;
  custom: boolean;
  writable: boolean;
  options: { crmId: string; label: string }[];
}
const fieldsOf = (as: ActorClaims, entity: Entity, customOnly?: boolean) =>
  service.ask<{ connection: { fields: Field[] } } | null>(FIELDS, { entity, customOnly }, as);

describe("The fields on the connection", () => {
  test.each(ENTITIES)("of a %s are those of the CRM, standard and custom, with their options", async (entity) => {
    const as = await connected();
    const shown = dataOf(await fieldsOf(as, entity))?.connection.fields;
    const known = fieldsIn(simulator, entity);
    expect(shown?.map(({ key }) => key)).toEqual(known.map((field) => field.field_code));
    expect(shown?.filter(({ writable }) => writable)).toHaveLength(17);
    expect(shown?.every(({ custom, writable }) => custom || !writable)).toBe(true);
    const segment = fieldOf(simulator, entity, "enum");
    expect(shown?.find(({ key }) => key === segment.field_code)).toEqual({
      key: segment.field_code,
      name: segment.field_name,
      type: "enum",
      custom: true,
      writable: true,
      options: segment.options?.map(({ id, label }) => ({ crmId: String(id), label })),
    });
    const custom = dataOf(await fieldsOf(as, entity, true))?.connection.fields;
    expect(custom).toEqual(shown?.filter((field) => field.custom));
    expect(simulator.log.all().map(({ path, query }) => [path, query.limit])).toEqual([[listPath(entity), "500"]]);
  });

  test("are read to the last page, and once in an operation that asks for them twice", async () => {
    const as = await connected();
    const [first, ...others] = fieldsIn(simulator, "DEAL");
    const page = (data: unknown[], next_cursor: string | null) => ({
      status: 200,
      body: { success: true, data, additional_data: { next_cursor } },
    });
    simulator.control.fail({ match: listPath("DEAL"), times: 1, with: page([first], "more") });
    simulator.control.fail({ match: listPath("DEAL"), times: 1, with: page(others, null) });
    const query = `{ connection { a: fields(entity: DEAL) { key } b: fields(entity: DEAL, customOnly: true) { key } } }`;
    const { connection } = dataOf(await service.ask<{ connection: { a: unknown[]; b: unknown[] } }>(query, {}, as));
    expect([connection.a.length, connection.b.length]).toEqual([others.length + 1, 17]);
    expect(simulator.log.all().map(({ query: { cursor } }) => cursor)).toEqual([undefined, "more"]);
  });

  test("that the CRM's list never ends is an error after the first page that shows nothing new", async () => {
    const as = await connected();
    const body = { success: true, data: [], additional_data: { next_cursor: "more" } };
    simulator.control.fail({ match: listPath("DEAL"), with: { status: 200, body } });
    expect((await fieldsOf(as, "DEAL")).errors?.[0]?.extensions.code).toBe("CRM_UNAVAILABLE");
    expect(simulator.log.all()).toHaveLength(1);
  });

  test.each([
    ["is down", { status: 503 }],
    ["throttles", { kind: "throttle" }],
    ["answers with a page of its front door", { kind: "html" }],
    ["answers null", { kind: "null" }],
    ["answers something that cannot be read", { kind: "garbage" }],
    [
      "shows a field without a code",
      { status: 200, body: { success: true, data: [{}], additional_data: { next_cursor: null } } },
    ],
    ["cuts the connection", { kind: "reset" }],
    ["has closed the company's account", { status: 402 }],
    ["refuses for want of a permission", { status: 403 }],
  ] as const)("are an error with a code, and no empty list, where the CRM %s", async (_what, fault) => {
    const as = await connected();
    simulator.control.fail({ match: listPath("PERSON"), with: fault });
    const { data, errors } = await fieldsOf(as, "PERSON");
    expect(data).toBeNull();
    expect(errors?.[0]?.extensions.code).toBe("CRM_UNAVAILABLE");
    expect(simulator.log.all()).toHaveLength(1);
  });

  // Seen red: once the token was an hour old, "The access token could not be renewed for now. Try again in a while."
  test.each([
    ["has closed the account", { status: 402 }, "Settle that with the CRM."],
    ["refuses", { status: 403 }, "Ask the CRM's admin."],
    ["throttles", { kind: "throttle" }, "request limit is used up"],
  ] as const)("are an error that says what to do where the CRM %s as the token is renewed", async (_, fault, what) => {
    const as = await connected();
    await makeStale(database, as.tenant);
    simulator.control.fail({ match: "/api/v1/users/me", with: fault });
    expect((await fieldsOf(as, "DEAL")).errors?.[0]?.message).toContain(what);
  });

  test("are an error with a code where nothing is connected, and where someone has to authorize again", async () => {
    const { errors } = await fieldsOf({ tenant: "nobody" }, "DEAL");
    expect(errors?.[0]?.extensions.code).toBe("NOT_CONNECTED");
    const as = await connected();
    await database.query(
      `UPDATE connection SET state = 'NEEDS_REAUTHORIZATION', reauthorization_reason = 'GRANT_REVOKED' WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
      [as.tenant],
    );
    expect((await fieldsOf(as, "DEAL")).errors?.[0]?.extensions.code).toBe("NEEDS_REAUTHORIZATION");
    expect(simulator.log.all()).toEqual([]);
  });
});

describe("Nominating a field", () => {
  test("stores it for its entity; again it is the same; another one takes its place", async () => {
    const as = await connected();
    const [reference, summary] = [fieldOf(simulator, "DEAL", "varchar"), fieldOf(simulator, "DEAL", "text")];
    const budget = fieldOf(simulator, "ORGANIZATION", "monetary");
    await setMapping(service, "DEAL", reference.field_code, as);
    await setMapping(service, "DEAL", reference.field_code, as);
    await setMapping(service, "ORGANIZATION", budget.field_code, as);
    const { mappings } = await setMapping(service, "DEAL", summary.field_code, as);
    const expected = [
      { entity: "DEAL", fieldKey: summary.field_code, fieldName: "Meeting summary", fieldType: "text", health: "OK" },
      { entity: "ORGANIZATION", fieldKey: budget.field_code, fieldName: "Yearly budget", fieldType: "monetary" },
    ];
    expect(mappings).toMatchObject(expected);
    expect(await mappingsOf(service, as)).toMatchObject(expected);
    expect(await mappingsOf(service, { tenant: "another" })).toEqual([]);
    expect(simulator.log.all().every(({ method }) => method === "GET")).toBe(true);
  });

  // A cache knows the connection by its id, and would show the mappings of before until it is asked again.
  test("answers with the connection as it is after each mutation of a document", async () => {
    const as = await connected();
    const key = fieldOf(simulator, "DEAL", "varchar").field_code;
    const answer = "... on FieldMappingSuccess { connection { id fieldMappings { fieldKey } } }";
    const query = `mutation ($key: String!) {
      set: setFieldMapping(input: { entity: DEAL, fieldKey: $key }) { ${answer} }
      cleared: clearFieldMapping(entity: DEAL) { ${answer} } }`;
    const { connection } = dataOf(await service.ask<{ connection: { id: string } }>("{ connection { id } }", {}, as));
    expect(dataOf(await service.ask(query, { key }, as))).toEqual({
      set: { connection: { ...connection, fieldMappings: [{ fieldKey: key }] } },
      cleared: { connection: { ...connection, fieldMappings: [] } },
    });
  });

  test("is refused for a field that is missing, standard or of a type that only the CRM fills, and changes nothing", async () => {
    const as = await connected();
    const kept = fieldOf(simulator, "DEAL", "varchar").field_code;
    await setMapping(service, "DEAL", kept, as);
    const formula = "f".repeat(40);
    showFields(simulator, "DEAL", [
      ...fieldsIn(simulator, "DEAL"),
      { field_code: formula, field_name: "Margin", field_type: "formula", options: null, is_custom_field: true },
      { field_code: "odd", field_name: "Odd", field_type: "varchar", options: null, is_custom_field: true },
    ]);
    const refusals = [
      ["0".repeat(40), "FIELD_NOT_FOUND"],
      [fieldOf(simulator, "PERSON", "varchar").field_code, "FIELD_NOT_FOUND"],
      ["title", "FIELD_NOT_WRITABLE"],
      [formula, "FIELD_NOT_WRITABLE"],
      ["odd", "FIELD_NOT_WRITABLE"],
      ["", "INVALID_INPUT"],
      ["k".repeat(101), "INVALID_INPUT"],
    ] as const;
    for (const [key, code] of refusals) {
      expect(await setMapping(service, "DEAL", key, as)).toMatchObject({ code, field: "fieldKey" });
    }
    expect(await mappingsOf(service, as)).toMatchObject([{ fieldKey: kept }]);
  });

  test("is refused while the CRM cannot be asked, and the field before it stays", async () => {
    const as = await connected();
    const [kept, wanted] = ["varchar", "text"].map((type) => fieldOf(simulator, "DEAL", type).field_code);
    await setMapping(service, "DEAL", kept ?? "", as);
    simulator.control.fail({ match: listPath("DEAL"), with: { status: 503 } });
    expect(await setMapping(service, "DEAL", wanted ?? "", as)).toMatchObject({ code: "CRM_UNAVAILABLE" });
    expect(await mappingsOf(service, as)).toMatchObject([{ fieldKey: kept, health: "UNKNOWN" }]);
    expect(await setMapping(service, "DEAL", wanted ?? "", { tenant: "nobody" })).toMatchObject({
      code: "NOT_CONNECTED",
    });
  });

  test.each([
    ["a member, and so is clearing it", { role: "member" }, "NOT_ALLOWED_FOR_ROLE", false],
    ["an owner whose plan has lapsed, who may clear it", { role: "owner", plan: "free" }, "NOT_ALLOWED_ON_PLAN", true],
  ])("is refused to %s, without a request to the CRM", async (_who, actor, code, mayClear) => {
    const as = await connected();
    const key = fieldOf(simulator, "DEAL", "varchar").field_code;
    await setMapping(service, "DEAL", key, as);
    simulator.log.clear();
    expect(
      await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "text").field_code, { ...as, ...actor }),
    ).toMatchObject({ code });
    expect(await mappingsOf(service, { ...as, ...actor })).toMatchObject([{ fieldKey: key }]);
    const cleared = await clearMapping(service, "DEAL", { ...as, ...actor });
    expect(cleared).toMatchObject(mayClear ? { mappings: [] } : { code });
    expect(await mappingsOf(service, as)).toHaveLength(mayClear ? 0 : 1);
    expect(simulator.log.all()).toEqual([]);
  });

  test("can be taken back, twice as well and also where nothing is connected", async () => {
    const as = await connected();
    await setMapping(service, "PERSON", fieldOf(simulator, "PERSON", "phone").field_code, as);
    await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "phone").field_code, as);
    simulator.log.clear();
    expect((await clearMapping(service, "PERSON", as)).mappings).toMatchObject([{ entity: "DEAL" }]);
    expect((await clearMapping(service, "PERSON", as)).mappings).toHaveLength(1);
    expect((await clearMapping(service, "DEAL", { tenant: "nobody" })).mappings).toEqual([]);
    expect(simulator.log.all()).toEqual([]);
  });
});

describe("A nominated field and the life of the connection", () => {
  test("disconnecting forgets it, and a later connect does not bring it back", async () => {
    const as = await connected();
    await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code, as);
    await service.ask("mutation { disconnect { __typename } }", {}, as);
    expect(await mappingsOf(service, as)).toEqual([]);
    expect(
      await database.query(
        "SELECT 1 FROM field_mapping WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
        [as.tenant],
      ),
    ).toEqual([]);
    await connect(service, simulator, as);
    expect(await mappingsOf(service, as)).toEqual([]);
    await syncEnds(service, as);
  });

  test("a nomination whose list was on its way while the CRM was disconnected is refused and leaves nothing", async () => {
    const as = await connected();
    simulator.control.fail({ match: listPath("DEAL"), with: { kind: "delay", ms: 500 } });
    const nominating = setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code, as);
    await until("the list is asked for", async () => simulator.log.of("GET", listPath("DEAL")).length > 0);
    await service.ask("mutation { disconnect { __typename } }", {}, as);
    expect(await nominating).toMatchObject({ code: "NOT_CONNECTED" });
    expect(
      await database.query(
        "SELECT 1 FROM field_mapping WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
        [as.tenant],
      ),
    ).toEqual([]);
  });

  test("needing re-authorization leaves it with unknown health; the same company again has it as before", async () => {
    const as = await connected();
    const key = fieldOf(simulator, "DEAL", "varchar").field_code;
    await setMapping(service, "DEAL", key, as);
    const userId = simulator.company.stories.singleDeal.ownerId;
    simulator.control.revoke(userId);
    expect((await fieldsOf(as, "DEAL")).errors?.[0]?.extensions.code).toBe("NEEDS_REAUTHORIZATION");
    expect(await mappingsOf(service, as)).toMatchObject([{ fieldKey: key, health: "UNKNOWN" }]);
    simulator.log.clear();
    const other = fieldOf(simulator, "DEAL", "text").field_code;
    expect(await setMapping(service, "DEAL", other, as)).toMatchObject({ code: "NEEDS_REAUTHORIZATION" });
    expect(simulator.log.all()).toEqual([]);
    await connect(service, simulator, as);
    await syncEnds(service, as);
    await until("its health is known", async () => (await mappingsOf(service, as))[0]?.health === "OK");
    expect(await mappingsOf(service, as)).toMatchObject([{ fieldKey: key }]);
  });
});

describe("The health of a nominated field", () => {
  const anHourLater = ({ tenant }: { tenant?: string }) =>
    database.query(
      `UPDATE field_mapping SET ${["checked_at", "nominated_at"].map((at) => earlier(at, "1 hour"))}
       WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
      [tenant],
    );

  test("is looked at after each sync: renamed, of another type, missing, and there again", async () => {
    const as = await connected();
    const field = fieldOf(simulator, "DEAL", "varchar");
    await setMapping(service, "DEAL", field.field_code, as);
    const others = fieldsIn(simulator, "DEAL").filter((one) => one !== field);
    const mapping = async () => (await mappingsOf(service, as))[0];

    const restore = [showFields(simulator, "DEAL", [{ ...field, field_name: "Contract" }, ...others])];
    await anHourLater(as);
    await sync(as);
    expect(await mapping()).toMatchObject({ fieldName: "Contract", fieldType: "varchar", health: "OK" });
    restore.pop()?.();
    restore.push(showFields(simulator, "DEAL", [{ ...field, field_type: "double" }, ...others]));
    await anHourLater(as);
    await sync(as);
    expect(await mapping()).toMatchObject({ fieldType: "double", health: "TYPE_CHANGED" });
    // Seen red: one of another type, or gone for good, was looked at after each sync, some 960 tokens a day.
    simulator.log.clear();
    await sync(as);
    expect(simulator.log.of("GET", listPath("DEAL"))).toEqual([]);
    expect(await mapping()).toMatchObject({ health: "TYPE_CHANGED" });
    restore.pop()?.();
    restore.push(showFields(simulator, "DEAL", others));
    await anHourLater(as);
    await sync(as);
    expect(await mapping()).toMatchObject({ fieldType: "double", health: "MISSING_IN_CRM" });
    restore.pop()?.();
    await anHourLater(as);
    await sync(as);
    expect(await mapping()).toMatchObject({ fieldName: "Reference", fieldType: "varchar", health: "OK" });
  });

  test("is also renewed when the fields are read for another reason; nominating again accepts a new type", async () => {
    const as = await connected();
    const field = fieldOf(simulator, "PERSON", "varchar");
    await setMapping(service, "PERSON", field.field_code, as);
    showFields(simulator, "PERSON", [{ ...field, field_type: "text" }]);
    await fieldsOf(as, "PERSON");
    expect(await mappingsOf(service, as)).toMatchObject([{ fieldType: "text", health: "TYPE_CHANGED" }]);
    await setMapping(service, "PERSON", field.field_code, as);
    expect(await mappingsOf(service, as)).toMatchObject([{ fieldType: "text", health: "OK" }]);
  });

  test("is unknown where the look fails, keeps the moment of the last one, and the sync is a success all the same", async () => {
    const as = await connected();
    await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code, as);
    await anHourLater(as);
    const [before] = await mappingsOf(service, as);
    simulator.control.fail({ match: listPath("DEAL"), with: { status: 503 } });
    await sync(as);
    expect((await syncEnds(service, as)).state).toBe("SUCCEEDED");
    expect(await mappingsOf(service, as)).toEqual([{ ...before, health: "UNKNOWN" }]);
  });

  // Seen red: with three nominated fields and a sync each quarter of an hour the lists alone cost 2,880 tokens a day.
  test("costs one list for each nominated field after a sync, none within the hour, and none where none is nominated", async () => {
    const as = await connected();
    await sync(as);
    expect(simulator.log.of("GET", /Fields$/)).toEqual([]);
    for (const entity of ["DEAL", "PERSON"] as const) {
      await setMapping(service, entity, fieldOf(simulator, entity, "varchar").field_code, as);
    }
    simulator.log.clear();
    await anHourLater(as);
    await sync(as);
    await sync(as);
    expect(simulator.log.of("GET", /Fields$/).map(({ path }) => path)).toEqual([listPath("DEAL"), listPath("PERSON")]);
  });

  // Seen red: ten tokens for each, after each of the looks whether there are any.
  test("is not looked at while the company's tokens are left to its other apps, and stays as it was seen", async () => {
    const as = await connected();
    await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code, as);
    await anHourLater(as);
    const seen = await mappingsOf(service, as);
    simulator.log.clear();
    await database.query(
      "UPDATE crm_budget SET daily_limit = 30000, remaining = 2000, told_at = now(), day_began_at = now()",
    );
    const runs = `SELECT tenant_id AS "tenantId", id AS "runId" FROM sync_run WHERE tenant_id = $1`;
    const [run] = await database.query(runs, [await database.tenantId(as.tenant)]);
    await database.query("SELECT graphile_worker.add_job('sync_run_ended', $1)", [run]);
    await until("the job is done", async () => (await openJobs()) === 0);
    expect(simulator.log.of("GET", /Fields$/)).toEqual([]);
    expect(await mappingsOf(service, as)).toEqual(seen);
    await database.query("DELETE FROM crm_budget");
  });
});
