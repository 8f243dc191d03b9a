import * as typeGraphql from "type-graphql";

type Options = typeGraphql.ObjectTypeOptions;

/**
 * type-graphql's decorator for types whose values are plain objects, as all of ours are: a field without a resolver of
 * its own is read as a property, and not through a function of the library's.
 */
export function ObjectType(options?: Options): ClassDecorator;
export function ObjectType(name: string, options?: Options): ClassDecorator;
export function ObjectType(name?: string | Options, options?: Options): ClassDecorator {
  if (typeof name === "string") return typeGraphql.ObjectType(name, { simpleResolvers: true, ...options });
  return typeGraphql.ObjectType({ simpleResolvers: true, ...name });
}
