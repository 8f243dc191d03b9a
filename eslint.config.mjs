import graphql from "@graphql-eslint/eslint-plugin";

/**
 * What the rules find and is meant, each with its reason: by what the line that they name says. The schema is printed
 * from the resolvers, so that no comment can stand beside it.
 */
const MEANT = [
  // "Connection" is the product's word for the tenant's link to its CRM, and was in the contract before any list.
  /^type Connection implements Node \{$/,
  /^ {2}\w+: Connection!$/,
  // A security event is never asked for by its id: nothing may refer to it.
  /^type AuditEventEdge \{$/,
];

/** Biome has all other files. */
export default [
  {
    files: ["schema.graphql"],
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: "schema.graphql" } } },
    plugins: { "@graphql-eslint": graphql },
    processor: exceptMeant(),
    rules: {
      ...graphql.configs["flat/schema-recommended"].rules,
      ...graphql.configs["flat/schema-relay"].rules,
      // What can be asked for by id is a Node; a value (a page, a threshold, a reason) is not.
      "@graphql-eslint/strict-id-in-types": "off",
      // Cursors hold while syncs change a list, which only the way forward can promise.
      "@graphql-eslint/relay-arguments": ["error", { includeBoth: false }],
      // Pages have `nodes` beside `edges`, and what is short and closed (reasons, thresholds) is a plain list.
      "@graphql-eslint/relay-edge-types": ["error", { listTypeCanWrapOnlyEdgeType: false }],
    },
  },
];

function exceptMeant() {
  let lines = [];
  return {
    preprocess(text) {
      lines = text.split("\n");
      return [text];
    },
    postprocess: ([messages]) =>
      messages.filter(({ line }) => !MEANT.some((meant) => meant.test(lines[line - 1] ?? ""))),
  };
}
