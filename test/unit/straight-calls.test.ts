import { type GraphQLResolveInfo, type GraphQLSchema, isObjectType } from "graphql";
import { getMetadataStorage } from "type-graphql";
import { buildGraphQLSchema, callStraight } from "../../src/resolvers/graphql-schema";

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

type Field = ReturnType<typeof answered>[number];

/** The methods that were called instead of ours: on what, and with what. */
const calls: { method: string; on: object; given: unknown[] }[] = [];
const restore: (() => void)[] = [];

beforeAll(() => {
  for (const { target, methodName: method } of getMetadataStorage().fieldResolvers) {
    const own = Object.getOwnPropertyDescriptor(target.prototype, method);
    // A getter of a type's class is no method.
    if (!own?.value) continue;
    const value = function (this: object, ...given: unknown[]) {
      while (given.length > 0 && given.at(-1) === undefined) given.pop();
      calls.push({ method: `${target.name}.${method}`, on: this, given });
      return method;
    };
    Object.defineProperty(target.prototype, method, { ...own, value });
    restore.push(() => Object.defineProperty(target.prototype, method, own));
  }
});
afterAll(() => {
  for (const one of restore) one();
});

/** What a field answers, and what is called for it. */
async function answerOf({ name, args, resolve }: Field) {
  calls.length = 0;
  const given = Object.fromEntries(args.map((argument) => [argument.name, argument.name]));
  const info = { fieldName: name } as GraphQLResolveInfo;
  const answer = await (async () => resolve?.({ is: "root" }, given, { is: "context" }, info))().catch(String);
  return { name, answer, calls: [...calls] };
}

// Seen red with: a shared class's method called on an instance of that class; a method of a type's class called on an empty
// object; an interface's method in place of the type's own; a fourth parameter left out; a middleware passed by; methods with
// arguments; a parameter in another's place.
test("a field answers the same, by the same method of the same class, whether or not it is called straight", async () => {
  const schema = buildGraphQLSchema();
  const before = answered(schema);
  const after = answered(callStraight(schema));
  expect(after).toHaveLength(before.length);
  for (const [index, field] of before.entries())
    expect(await answerOf(after[index] ?? field)).toStrictEqual(await answerOf(field));
});

// Seen red with: none called straight; those of the interface left out, and those of a class that resolvers share.
test("fields of which an answer has many are called straight: of a type, of its interface, of a class that resolvers share", () => {
  const schema = buildGraphQLSchema();
  const before = new Map(answered(schema).map(({ name, resolve }) => [name, resolve]));
  const straight = answered(callStraight(schema)).filter(({ name, resolve }) => resolve !== before.get(name));
  expect(straight.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["Deal.id", "Deal.stage", "Meeting.attendees", "Note.author", "NoteWrite.state"]),
  );
});
