import type { Field, FieldEntity } from "../../simulator";
import { type CursorPage, useClient } from "./client";

const { simulator, client } = useClient({ deals: 10, fieldsPerPage: 3 });

const entities: FieldEntity[] = ["deal", "person", "organization"];
const idOf = (entity: FieldEntity) => {
  const { dealId, personId, orgId } = simulator.company.stories.singleDeal;
  return { deal: dealId, person: personId, organization: orgId }[entity];
};
const listed = async (entity: FieldEntity): Promise<Field[]> => {
  const fields: unknown[] = await client.walk(`/api/v2/${entity}Fields?limit=500`);
  return fields as Field[];
};
const valuesOf = async (entity: FieldEntity) =>
  (await client.one<{ custom_fields: Record<string, unknown> }>(`/api/v2/${entity}s/${idOf(entity)}`)).custom_fields;

test("a field list comes in pages as small as the option says, whatever the limit", async () => {
  for (const entity of entities) {
    const { body } = await client.get<CursorPage>(`/api/v2/${entity}Fields?limit=500`);
    expect(body.data).toHaveLength(3);
    expect(body.additional_data.next_cursor).not.toBeNull();
    expect(await listed(entity)).toMatchObject(simulator.company.fields[entity]);
  }
});

test("each entity has a custom field of every type, and every record every key", async () => {
  for (const entity of entities) {
    const custom = (await listed(entity)).filter((field) => field.is_custom_field);
    expect(new Set(custom.map((field) => field.field_type)).size).toBe(17);
    expect(Object.keys(await valuesOf(entity))).toEqual(custom.map((field) => field.field_code));
  }
});

describe.each(entities)("a custom field of a %s", (entity) => {
  const write = (code: string, value: unknown) =>
    client.send("PATCH", `/api/v2/${entity}s/${idOf(entity)}`, { custom_fields: { [code]: value } });

  test("that is added is listed, is null on every record and takes a value", async () => {
    const code = simulator.control.addCustomField(entity, { name: "Mood", type: "enum", options: ["good", "bad"] });
    const field = (await listed(entity)).at(-1);
    expect(field).toMatchObject({ field_name: "Mood", field_code: code, field_type: "enum", is_custom_field: true });
    expect(field?.options?.map(({ label }) => label)).toEqual(["good", "bad"]);
    expect((await valuesOf(entity))[code]).toBeNull();
    const records = await client.walk(`/api/v2/${entity}s?limit=500`);
    expect(records.every(({ custom_fields }) => (custom_fields as Record<string, unknown>)[code] === null)).toBe(true);
    expect((await write(code, field?.options?.[1]?.id)).status).toBe(200);
    expect((await valuesOf(entity))[code]).toBe(field?.options?.[1]?.id);
  });

  test("that is removed is gone from list and records, and refused", async () => {
    const code = simulator.control.addCustomField(entity, { name: "Short-lived", type: "varchar" });
    await write(code, "x");
    simulator.control.removeCustomField(entity, code);
    expect((await listed(entity)).map((field) => field.field_code)).not.toContain(code);
    expect((await client.get(`/api/v2/${entity}Fields/${code}`)).status).toBe(404);
    expect(await valuesOf(entity)).not.toHaveProperty(code);
    expect((await write(code, "y")).status).toBe(400);
    expect(() => simulator.control.removeCustomField(entity, code)).toThrow(`there is no custom ${entity} field`);
  });

  test("that changes its type keeps its code, loses its values and takes the new type", async () => {
    const code = simulator.control.addCustomField(entity, { name: "Score", type: "varchar" });
    await write(code, "12");
    simulator.control.changeFieldType(entity, code, "double");
    expect(await client.one(`/api/v2/${entity}Fields/${code}`)).toMatchObject({ field_type: "double" });
    expect((await valuesOf(entity))[code]).toBeNull();
    expect((await write(code, "12")).status).toBe(400);
    expect((await write(code, 12)).status).toBe(200);
  });
});

test("records made after a field was added have it", async () => {
  const code = simulator.control.addCustomField("deal", { name: "New", type: "varchar" });
  const id = simulator.control.add("deal");
  expect(simulator.control.fieldsOf("deal", id)).toHaveProperty(code, null);
});
