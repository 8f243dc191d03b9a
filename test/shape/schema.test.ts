import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { GraphQLObjectType, isIntrospectionType } from "graphql";
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

test("no field of the API carries a secret's name", () => {
  const types = Object.values(buildGraphQLSchema().getTypeMap()).filter((type) => !isIntrospectionType(type));
  const names = types.flatMap((type) => (type instanceof GraphQLObjectType ? Object.keys(type.getFields()) : []));
  expect(names.filter((name) => /token|secret|credential|password/i.test(name))).toEqual([]);
});
