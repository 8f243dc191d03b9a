import { GraphQLError, GraphQLScalarType } from "graphql";
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

const DECIMAL = /^-?\d{1,20}(\.\d{1,10})?$/;

export const DecimalScalar = new GraphQLScalarType({
  name: "Decimal",
  description: 'An exact decimal number as a string, for example "1250.50". Money is never a float.',
  serialize: String,
  parseValue(value) {
    if (typeof value === "string" && DECIMAL.test(value)) return value;
    throw new GraphQLError(
      'A Decimal is a string of at most 20 digits and 10 behind the point, for example "1250.50".',
    );
  },
});

export const JsonObjectScalar = new GraphQLScalarType({
  ...GraphQLJSONObject.toConfig(),
  description: "A JSON object: custom fields as the CRM holds them, keyed by field key.",
});

export const JsonScalar = new GraphQLScalarType({
  ...GraphQLJSON.toConfig(),
  description: "Any JSON value: what is written into a custom field. Its shape depends on the field's type.",
});
