import { statesOf, useFieldStory } from "../support/field-story";
import { fieldOf, listPath, mappingsOf, patches, setMapping, showFields, writeFields } from "../support/fields";
import { dataOf } from "../support/stories";

// Seen red with: the type alone asked whether a field can be written: a formula that comes as a number was offered, nominated,
// and each write to it cost 30 tokens.

const story = useFieldStory();
const { simulator, service, database } = story;

const FIELDS = "{ connection { fields(entity: DEAL) { key writable } } }";
type Shown = { connection: { fields: { key: string; writable: boolean }[] } };
const write = async (value: unknown) => writeFields(story.service, story.meetingId, [{ entity: "DEAL", value }]);
const health = async () => (await mappingsOf(service)).find(({ entity }) => entity === "DEAL")?.health;

const TYPES = ["double", "monetary", "date"] as const;

test("a field that only the CRM fills is not writable, whatever its type, and cannot be nominated", async () => {
  const before = (await mappingsOf(service)).map(({ entity, fieldKey, health: kept }) => ({
    entity,
    fieldKey,
    health: kept,
  }));
  const keys = TYPES.map((type) =>
    simulator.control.addCustomField("deal", { name: "Margin", type, isWritable: false }),
  );
  const { connection } = dataOf(await service.ask<Shown>(FIELDS));
  const readOnly = connection.fields.filter(({ writable }) => !writable).map(({ key }) => key);
  expect(readOnly).toEqual(expect.arrayContaining(keys));
  for (const [position, key] of keys.entries()) {
    const { code, message } = await setMapping(service, "DEAL", key);
    const said = `The field "Margin" (${TYPES[position]}) cannot be written. Choose one that is writable.`;
    expect([code, message]).toEqual(["FIELD_NOT_WRITABLE", said]);
  }
  expect(await mappingsOf(service)).toMatchObject(before);
});

test("a flag that is missing, true, or makes no sense says nothing against a field", async () => {
  const field = fieldOf(simulator, "DEAL", "varchar");
  for (const flag of [{}, { is_writable: true }, { is_writable: 1 }, { is_writable: null }, { is_writable: "maybe" }]) {
    const restore = showFields(simulator, "DEAL", [{ ...field, ...flag }]);
    expect((await setMapping(service, "DEAL", field.field_code)).code).toBeUndefined();
    restore();
  }
});

test("a nominated field that only the CRM fills by now says so, and nothing more is sent to it until that ends", async () => {
  const { control } = simulator;
  const key = story.keyOf("DEAL");
  await setMapping(service, "DEAL", key);
  await database.query("UPDATE field_mapping SET checked_at = now() - interval '10 minutes'");
  control.describeField("deal", key, { isWritable: false });
  const first = await write("not known yet");
  expect(statesOf(first)).toEqual(["VALUE_REJECTED"]);
  expect(first.writes?.[0]?.error?.message).toContain(
    'the field "Reference" (varchar) cannot be written in the CRM. Nominate another.',
  );
  expect(await health()).toBe("NOT_WRITABLE");

  simulator.log.clear();
  const second = await write("known by now");
  expect(second.writes?.[0]?.error).toEqual(first.writes?.[0]?.error);
  expect(patches(simulator)).toEqual([]);
  expect(simulator.log.all()).toEqual([]);

  control.describeField("deal", key, { isWritable: true });
  await database.query("UPDATE field_mapping SET checked_at = now() - interval '10 minutes'");
  expect(statesOf(await write("may be written again"))).toEqual(["WRITTEN"]);
  expect(await health()).toBe("OK");
  expect(simulator.log.of("GET", listPath("DEAL"))).toHaveLength(1);
});
