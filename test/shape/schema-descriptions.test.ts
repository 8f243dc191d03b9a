import {
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
} from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";

/** Every type, field, argument, input field and enum value, by coordinate, with its description. */
function described(): [string, string][] {
  const types = Object.values(buildGraphQLSchema().getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
  return types.flatMap((type) => {
    const found: [string, string][] = [[type.name, type.description ?? ""]];
    const add = (name: string, text?: string | null) => found.push([`${type.name}.${name}`, text ?? ""]);
    if (isEnumType(type)) for (const { name, description } of type.getValues()) add(name, description);
    if (isInputObjectType(type))
      for (const { name, description } of Object.values(type.getFields())) add(name, description);
    if (!isObjectType(type) && !isInterfaceType(type)) return found;
    for (const { name, description, args } of Object.values(type.getFields())) {
      add(name, description);
      for (const argument of args) add(`${name}(${argument.name})`, argument.description);
    }
    return found;
  });
}

test("every type, field, argument, input and enum value of the schema is described", () => {
  expect(described().flatMap(([name, text]) => (text.trim() === "" ? [name] : []))).toEqual([]);
});

test("a description is a plain sentence, and says more than the name", () => {
  const plain = (text: string) => text.replace(/\W/g, "").toLowerCase();
  const odd = described().filter(([name, text]) => {
    const [last = ""] = name.split(/[.(]/).slice(-1);
    return !/[.:]$/.test(text.trim()) || (plain(text) === plain(last) && name !== "Crm.PIPEDRIVE") || text.length > 300;
  });
  expect(odd).toEqual([]);
});
