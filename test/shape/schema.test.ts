import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { GraphQLObjectType, isIntrospectionType, isObjectType } from "graphql";
import { buildGraphQLSchema, printedSchema, SCHEMA_FILE } from "../../src/resolvers/graphql-schema";

test("the committed schema is what the resolvers build (npm run schema writes it)", () => {
  expect(readFileSync(SCHEMA_FILE, "utf8")).toBe(printedSchema(buildGraphQLSchema()));
});

test("the page's operations are valid on the committed schema, and their types are fresh (npm run schema writes them)", () => {
  execFileSync(process.execPath, ["web/generate-types.mjs", "--check"], { stdio: "pipe" });
});

test("the codes in docs/api.md are those of the service and its schema (npm run schema writes them)", () => {
  execFileSync(process.execPath, ["docs/generate-codes.mjs", "--check"], { stdio: "pipe" });
});

// Seen red: CrmFieldOption and MeetingDeleted. Normalized caches made two options with one id into one, and Relay the deleted meeting its answer.
test("what has an id is a Node, or goes", () => {
  const types = Object.values(buildGraphQLSchema().getTypeMap()).flatMap((type) => (isObjectType(type) ? [type] : []));
  const others = types.filter((type) => type.getInterfaces().every(({ name }) => name !== "Node"));
  const named = others.filter((type) => type.getFields().id && !type.getFields().id?.deprecationReason);
  expect(named.map(({ name }) => name)).toEqual([]);
});

test("no field of the API carries a secret's name", () => {
  const types = Object.values(buildGraphQLSchema().getTypeMap()).filter((type) => !isIntrospectionType(type));
  const names = types.flatMap((type) => (type instanceof GraphQLObjectType ? Object.keys(type.getFields()) : []));
  expect(names.filter((name) => /token|secret|credential|password/i.test(name))).toEqual([]);
});
