import { type GraphQLSchema, isEnumType, isInputObjectType, isInterfaceType, isObjectType } from "graphql";
import { WORDS } from "../schema/words";

/** What of the schema may carry a description. */
interface Described {
  description?: string | null;
}

/**
 * Gives each part of the schema that has no description its words.
 * @throws Error for words of what is not there, or has a description where it is declared
 */
export function describe(schema: GraphQLSchema): GraphQLSchema {
  for (const [owner, words] of Object.entries(WORDS)) {
    const parts = partsOf(schema, owner);
    for (const [name, description] of Object.entries(words)) {
      const part = parts.get(name);
      if (!part || part.description) throw new Error(`schema/words.ts has idle words for ${owner} ${name}`);
      part.description = description;
    }
  }
  return schema;
}

/** A type's own parts by name, itself as `""`; or the arguments of `Type.field`. */
function partsOf(schema: GraphQLSchema, owner: string): Map<string, Described> {
  const [typeName = "", fieldName] = owner.split(".");
  const type = schema.getType(typeName);
  if (!type) return new Map();
  const hasFields = isObjectType(type) || isInterfaceType(type);
  if (fieldName !== undefined) return named(hasFields ? (type.getFields()[fieldName]?.args ?? []) : []);
  if (isEnumType(type)) return named(type.getValues()).set("", type);
  if (hasFields || isInputObjectType(type)) return named(Object.values(type.getFields())).set("", type);
  return new Map([["", type]]);
}

const named = (parts: readonly (Described & { name: string })[]): Map<string, Described> =>
  new Map(parts.map((part) => [part.name, part]));
