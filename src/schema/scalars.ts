import { GraphQLScalarType } from "graphql";
import { GraphQLDateTime, GraphQLJSON, GraphQLJSONObject } from "graphql-scalars";

export const DateTimeScalar = new GraphQLScalarType<Date, string>({
  ...GraphQLDateTime.toConfig(),
  description: "An instant, RFC 3339 in UTC, for example 2026-11-20T09:30:00.000Z.",
  serialize: (value) => (value as Date).toISOString(),
});

export const DateScalar = new GraphQLScalarType({
  name: "Date",
  description: "A calendar day, YYYY-MM-DD.",
  serialize: String,
});

export const DecimalScalar = new GraphQLScalarType({
  name: "Decimal",
  description: 'An exact decimal number as a string, for example "1250.50". Money is never a float.',
  serialize: String,
});

export const JsonObjectScalar = new GraphQLScalarType({
  ...GraphQLJSONObject.toConfig(),
  description: "A JSON object: custom fields as the CRM holds them, keyed by field key.",
});

export const JsonScalar = new GraphQLScalarType({
  ...GraphQLJSON.toConfig(),
  description: "Any JSON value: what is written into a custom field. Its shape depends on the field's type.",
});
