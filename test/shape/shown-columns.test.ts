import { GraphQLObjectType, isIntrospectionType } from "graphql";
import { getMetadataStorage } from "type-graphql";
import { getMetadataArgsStorage } from "typeorm";
import { entities } from "../../src/entities";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";

/** Rows are the parents of the API's fields, so what of a row is shown is said by the classes of `src/schema` alone. */

const metadata = getMetadataStorage();
/** As the classes say it, before resolvers take the place of properties. */
const dear = metadata.fields.filter(({ complexity }) => complexity !== undefined).map((field) => ({ ...field }));
const schema = buildGraphQLSchema();
const objectTypes = Object.values(schema.getTypeMap()).filter(
  (type) => type instanceof GraphQLObjectType && !isIntrospectionType(type),
);

test("each field of each type is declared at its class or has a resolver, and nothing else is in the schema", () => {
  const operations = ["Query", "Mutation", "Subscription"];
  const undeclared = objectTypes
    .filter(({ name }) => !operations.includes(name))
    .flatMap((type) => {
      const known = metadata.objectTypes.filter(({ name }) => name === type.name).flatMap(({ fields }) => fields ?? []);
      const names = new Set(known.map(({ schemaName }) => schemaName));
      return Object.keys(type instanceof GraphQLObjectType ? type.getFields() : {})
        .filter((field) => !names.has(field) && field !== "id")
        .map((field) => `${type.name}.${field}`);
    });
  expect(undeclared).toEqual([]);
});

test("a field that is read as a property is not renamed by it: another name has a way of its own", () => {
  const plain = metadata.objectTypes.flatMap(({ name: type, fields = [] }) =>
    fields
      .filter(({ name, schemaName, simple }) => name !== schemaName && simple !== false)
      .map(({ name }) => `${type}.${name}`),
  );
  expect(plain).toEqual([]);
});

test("what a field costs by its class it costs in the schema, also where a resolver answers it", () => {
  expect(dear.length).toBeGreaterThan(3);
  const cheaper = dear.filter(({ target, schemaName, complexity }) => {
    const name = metadata.objectTypes.find((type) => type.target === target)?.name;
    const type = name && schema.getType(name);
    return type instanceof GraphQLObjectType && type.getFields()[schemaName]?.extensions.complexity !== complexity;
  });
  expect(cheaper.map(({ target, schemaName }) => `${target.name}.${schemaName}`)).toEqual([]);
});

test("no class of the API is a table, so a column is shown only where a class of the API names it", () => {
  const tables = new Set<unknown>(entities);
  const types = [...metadata.objectTypes, ...metadata.interfaceTypes, ...metadata.inputTypes];
  expect(types.filter(({ target }) => tables.has(target))).toEqual([]);
  expect(types.filter(({ target }) => tables.has(Object.getPrototypeOf(target)))).toEqual([]);
});

test("columns of the service's own bookkeeping are in no type", () => {
  const shown = new Set(metadata.objectTypes.flatMap(({ fields = [] }) => fields.map(({ name }) => name)));
  const own = ["copyId", "leaseId", "inputHash", "crmCompanyId", "recordedBy", "content", "shownHtml", "websiteDomain"];
  expect(own.filter((column) => shown.has(column))).toEqual([]);
});

test("a column that is not read with its row is in no type", () => {
  const columns = getMetadataArgsStorage().columns.filter(({ options }) => options.select === false);
  expect(columns.length).toBeGreaterThan(20);
  const unread = columns.map(({ propertyName }) => propertyName);
  const isResolved = (type: unknown, field: string) =>
    metadata.fieldResolvers.some(({ methodName, getObjectType }) => methodName === field && getObjectType?.() === type);
  const asProperty = metadata.objectTypes.flatMap(({ target, fields = [] }) =>
    fields.map(({ name }) => name).filter((name) => !isResolved(target, name)),
  );
  expect(asProperty.filter((name) => unread.includes(name))).toEqual([]);
});
