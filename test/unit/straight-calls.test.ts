import { type GraphQLSchema, isObjectType } from "graphql";
import { getMetadataStorage } from "type-graphql";
import { buildGraphQLSchema, callStraight } from "../../src/resolvers/graphql-schema";

// Planted and seen red: those of the interface left out; those with arguments among them; a parameter in another's place.

const ROOTS = ["Query", "Mutation", "Subscription"];

/** Fields that something of ours answers, by their coordinates. */
function answered(schema: GraphQLSchema) {
  const types = Object.values(schema.getTypeMap()).filter(isObjectType);
  const ours = types.filter(({ name }) => !ROOTS.includes(name) && !name.startsWith("__"));
  const fields = ours.flatMap((type) =>
    Object.values(type.getFields()).map((field) => ({ ...field, name: `${type.name}.${field.name}` })),
  );
  return fields.filter(({ resolve }) => resolve);
}

test("every field that a method answers without arguments is called straight, and no other", () => {
  const schema = buildGraphQLSchema();
  const before = new Map(answered(schema).map(({ name, resolve }) => [name, resolve]));
  const after = answered(callStraight(schema));
  const straight = after.filter(({ name, resolve }) => resolve !== before.get(name));
  // A property of another name, which no method answers.
  const renamed = getMetadataStorage().objectTypes.flatMap(({ name, fields = [] }) =>
    fields.filter(({ simple }) => simple === false).map(({ schemaName }) => `${name}.${schemaName}`),
  );
  const expected = after.filter(({ name, args }) => args.length === 0 && !renamed.includes(name));
  expect(straight.map(({ name }) => name)).toEqual(expected.map(({ name }) => name));
  expect(straight.map(({ name }) => name)).toEqual(expect.arrayContaining(["Deal.id", "Meeting.attendees"]));
});

test("a method called straight is given what it asks for, whatever the order of its parameters", () => {
  const schema = callStraight(buildGraphQLSchema());
  const type = schema.getType("Deal");
  const field = isObjectType(type) ? type.getFields().id : undefined;
  const row = { copyId: 7, crmId: 11 };
  const id = field?.resolve?.(row, {}, {}, { parentType: type } as never);
  expect(Buffer.from(String(id), "base64url").toString()).toBe("Deal:7:11");
});
