import * as v2 from "pipedrive/v2";
import type { FieldEntity, FieldType } from "../../simulator";
import { type Reply, useClient, type WireRecord } from "./client";
import { hasShape, shapes } from "./wire-shapes";

const { simulator, client, clock, begin, authorize } = useClient({ deals: 20 });
beforeEach(() => clock.advance(60));

const LATER = "2026-11-20T10:01:00Z";
const story = () => simulator.company.stories.singleDeal;
const code = (type: FieldType, entity: FieldEntity = "deal"): string =>
  simulator.company.fields[entity].find((field) => field.is_custom_field && field.field_type === type)?.field_code ??
  "";
const patch = (body: unknown, path = `/api/v2/deals/${story().dealId}`): Promise<Reply<{ data: WireRecord }>> =>
  client.send("PATCH", path, body);
const fields = () => simulator.control.fieldsOf("deal", story().dealId);
const refusal = { success: false, code: "ERR_SCHEMA_VALIDATION_FAILED" };

test("the official client sets a field of each entity, and a read finds it", async () => {
  const configuration = new v2.Configuration({
    accessToken: client.accessToken,
    basePath: `${simulator.url}/api/v2`,
  });
  const { dealId, personId, orgId } = story();
  const custom_fields = (entity: FieldEntity) => ({ [code("varchar", entity)]: `of the ${entity}` });
  const deals = new v2.DealsApi(configuration);
  const deal = await deals.updateDeal({ id: dealId, UpdateDealRequest: { custom_fields: custom_fields("deal") } });
  hasShape([deal.data ?? {}], shapes.deal);
  expect(deal.data).toMatchObject({ update_time: LATER, custom_fields: custom_fields("deal") });
  expect((await deals.getDeal({ id: dealId })).data).toEqual(deal.data);
  const persons = new v2.PersonsApi(configuration);
  const person = await persons.updatePerson({
    id: personId,
    UpdatePersonRequest: { custom_fields: custom_fields("person") },
  });
  hasShape([person.data ?? {}], shapes.person);
  expect((await persons.getPerson({ id: personId })).data).toMatchObject({ custom_fields: custom_fields("person") });
  const organizations = new v2.OrganizationsApi(configuration);
  const organization = await organizations.updateOrganization({
    id: orgId,
    UpdateOrganizationRequest: { custom_fields: custom_fields("organization") },
  });
  hasShape([organization.data ?? {}], shapes.organization);
  expect((await organizations.getOrganization({ id: orgId })).data).toEqual(organization.data);
});

describe("a value that fits its type is kept and answered", () => {
  const zone = { timezone_id: 203, timezone_name: "Europe/Tallinn" };
  const parts =
    "country admin_area_level_1 admin_area_level_2 locality sublocality route street_number postal_code formatted_address";
  const nothing = Object.fromEntries(parts.split(" ").map((part) => [part, null]));
  test.each<[FieldType, unknown, unknown?]>([
    ["varchar", "a".repeat(255)],
    ["varchar", "é".repeat(300), "é".repeat(255)],
    ["varchar", "", null],
    ["varchar_auto", "Website"],
    ["text", "line\nline"],
    ["text", "x".repeat(65_001), "x".repeat(65_000)],
    ["phone", "+372 5"],
    ["double", -1.25],
    ["double", 0],
    ["int", 7],
    ["monetary", { value: 10.5, currency: "EUR" }],
    ["date", "2024-02-29"],
    ["daterange", { value: "2026-01-01", until: "2026-01-31" }],
    ["time", { value: "08:30:00" }, { value: "08:30:00", ...zone }],
    ["time", { value: "08:30:00", timezone_id: 5 }, { value: "08:30:00", ...zone }],
    [
      "timerange",
      { value: "08:00:00", until: "09:00:00", timezone_name: "Europe/Tallinn" },
      { value: "08:00:00", until: "09:00:00", ...zone },
    ],
    ["address", { value: "Street 1" }, { value: "Street 1", ...nothing }],
    [
      "address",
      { value: "Street 1", locality: "Tartu", country: null },
      { value: "Street 1", ...nothing, locality: "Tartu" },
    ],
  ])("%s %#", async (type, sent, kept = sent) => {
    const { status, body } = await patch({ custom_fields: { [code(type)]: sent } });
    expect(status).toBe(200);
    expect(body.data.custom_fields).toMatchObject({ [code(type)]: kept });
    expect(fields()[code(type)]).toEqual(kept);
  });

  test("ids of options, users, organizations and persons", async () => {
    const options = (type: FieldType) =>
      simulator.company.fields.deal.find(({ field_code }) => field_code === code(type))?.options?.map(({ id }) => id) ??
      [];
    const { orgId, personId, ownerId } = story();
    const sent = {
      [code("enum")]: options("enum")[1],
      [code("set")]: [options("set")[0], options("set")[2]],
      [code("user")]: ownerId,
      [code("org")]: orgId,
      [code("people")]: personId,
    };
    expect((await patch({ custom_fields: sent })).body.data.custom_fields).toMatchObject(sent);
  });

  test("another zone by its name", async () => {
    const value = { value: "08:30:00", timezone_name: "America/New_York" };
    const { body } = await patch({ custom_fields: { [code("time")]: value } });
    expect(body.data.custom_fields).toMatchObject({
      [code("time")]: { ...value, timezone_id: expect.any(Number) },
    });
  });

  test("null clears a field of every type and leaves the others", async () => {
    await patch({ custom_fields: { [code("varchar")]: "stays", [code("text")]: "goes" } });
    for (const { field_type } of simulator.company.fields.deal.filter((field) => field.is_custom_field)) {
      if (field_type === "varchar") continue;
      expect((await patch({ custom_fields: { [code(field_type)]: null } })).status).toBe(200);
    }
    expect(Object.entries(fields()).filter(([, value]) => value !== null)).toEqual([[code("varchar"), "stays"]]);
  });
});

describe("a value that does not fit refuses the whole body, naming the field", () => {
  test.each<[FieldType, unknown]>([
    ["varchar", 5],
    ["varchar", ["a"]],
    ["varchar_auto", true],
    ["text", { value: "x" }],
    ["phone", 372],
    ["double", "1.5"],
    ["double", true],
    ["int", 1.5],
    ["int", "1"],
    ["monetary", 10],
    ["monetary", { value: "10", currency: "EUR" }],
    ["monetary", { value: 10 }],
    ["monetary", { value: 10, currency: "Euro" }],
    ["monetary", { value: 10, currency: "EUR", label: "x" }],
    ["date", "2026-02-30"],
    ["date", "2026-01-01T00:00:00Z"],
    ["date", "01.02.2026"],
    ["date", 20260101],
    ["daterange", "2026-01-01"],
    ["daterange", { value: "2026-01-01" }],
    ["daterange", { value: "2026-01-01", until: "tomorrow" }],
    ["time", "08:30:00"],
    ["time", { value: "08:30" }],
    ["time", { value: "25:00:00" }],
    ["time", { value: "08:30:00", timezone_name: "Mars/Base" }],
    ["time", { value: "08:30:00", until: "09:00:00" }],
    ["timerange", { value: "08:30:00" }],
    ["timerange", { value: "08:30:00", until: "9" }],
    ["enum", 99_999],
    ["enum", "210"],
    ["enum", [210]],
    ["set", []],
    ["set", 220],
    ["set", [99_999]],
    ["set", ["220"]],
    ["user", 5],
    ["user", "21000001"],
    ["org", 999_999_999],
    ["people", { id: 1 }],
    ["people", 999_999_999],
    ["address", "Street 1"],
    ["address", { locality: "Tartu" }],
    ["address", { value: "x", subpremise: "2" }],
    ["address", { value: "x", locality: 5 }],
  ])("%s: %j", async (type, value) => {
    const before = fields();
    const time = simulator.company.deals.get(story().dealId)?.update_time;
    const { status, body } = await patch({ custom_fields: { [code("varchar")]: "not kept", [code(type)]: value } });
    expect(status).toBe(400);
    expect(body).toEqual({
      ...refusal,
      error: expect.stringMatching(`^Validation failed: custom_fields.${code(type)}: `),
      additional_data: { field_code: code(type) },
    });
    expect(fields()).toEqual(before);
    expect(simulator.company.deals.get(story().dealId)?.update_time).toBe(time);
  });

  test("a key that is unknown, of another entity or of a standard field", async () => {
    for (const key of ["0".repeat(40), code("varchar", "person"), "title"]) {
      const { status, body } = await patch({ custom_fields: { [key]: "x" } });
      expect(status).toBe(400);
      expect(body).toMatchObject({ ...refusal, additional_data: { field_code: key } });
    }
  });

  test("a text too long, where the simulator is told so", async () => {
    await begin({ deals: 10, longTexts: "refuse" });
    expect((await patch({ custom_fields: { [code("varchar")]: "x".repeat(256) } })).status).toBe(400);
    expect((await patch({ custom_fields: { [code("varchar")]: "x".repeat(255) } })).status).toBe(200);
  });

  test("bodies of another shape", async () => {
    for (const body of [null, [], {}, { custom_fields: null }, { custom_fields: [] }, { fields: {} }, { title: 5 }]) {
      expect((await patch(body)).status).toBe(400);
    }
    expect((await patch({ custom_fields: {} }, `/api/v2/deals/${story().dealId}?x=1`)).status).toBe(400);
  });
});

test("an empty custom_fields clears every custom field, as is reported of the real CRM", async () => {
  await patch({ custom_fields: { [code("varchar")]: "x", [code("double")]: 5 } });
  const { status, body } = await patch({ custom_fields: {} });
  expect(status).toBe(200);
  expect(Object.values(body.data.custom_fields as object).every((value) => value === null)).toBe(true);
  expect(Object.values(fields()).every((value) => value === null)).toBe(true);
});

test("standard members are changed without a word, and the log shows that they were sent", async () => {
  simulator.log.clear();
  const sent = { title: "Taken over", status: "won", custom_fields: { [code("varchar")]: "x" } };
  expect((await patch(sent)).body.data).toMatchObject({ title: "Taken over", status: "won", won_time: LATER });
  expect(simulator.log.of("PATCH", "/api/v2/deals").map(({ body }) => body)).toEqual([sent]);
  expect((await patch({ is_deleted: true })).body.data).toMatchObject({ is_deleted: true });
});

test("a record that is unknown, hidden, in the bin, purged or archived is refused", async () => {
  const { dealId, personId, orgId } = story();
  const body = { custom_fields: { [code("varchar")]: "x" } };
  expect(await patch(body, "/api/v2/deals/999999")).toMatchObject({ status: 404, body: { code: "ERR_NOT_FOUND" } });
  expect((await patch(body, "/api/v2/deals/one")).status).toBe(404);
  simulator.control.hide("deal", dealId);
  expect((await patch(body)).status).toBe(404);
  simulator.control.show("deal", dealId);
  simulator.control.archive(dealId);
  expect((await patch(body)).status).toBe(400);
  simulator.control.remove("deal", dealId);
  expect(await patch(body)).toMatchObject({
    status: 400,
    body: { code: "ERR_DEAL_DELETED", error: expect.stringContaining("must first restore") },
  });
  for (const [entity, id] of [["person", personId] as const, ["organization", orgId] as const]) {
    simulator.control.remove(entity, id);
    const gone = await patch({ custom_fields: { [code("varchar", entity)]: "x" } }, `/api/v2/${entity}s/${id}`);
    expect(gone).toMatchObject({ status: 400, body: { code: `ERR_${entity.toUpperCase()}_DELETED` } });
  }
  clock.advance(31 * 86_400);
  await authorize();
  expect((await patch(body)).status).toBe(404);
});

test("a PATCH costs five of the day's budget", async () => {
  const left = ({ headers }: Reply) => Number(headers.get("x-daily-ratelimit-token-remaining"));
  const before = left(await patch({ custom_fields: { [code("int")]: 1 } }));
  expect(before - left(await client.get("/api/v1/users/me"))).toBe(5);
});
