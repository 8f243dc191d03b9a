import { parse } from "graphql";
import { MAX_TOKENS } from "../../src/server/limits";

const repeated = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i)).join(" ");
const conflicts = (count: number) => `{ viewer { ${repeated(count, () => "a: userId a: role")} } }`;
const upTo = (most: number, spreads: (index: number) => string) =>
  `{ viewer { ...F0 } } ${repeated(most, (i) => `fragment F${i} on Viewer { ${spreads(i)} userId }`)}`;

/** Within the limit of tokens, and as much work for the rules of validation as was found in it. Invalid ones are among them. */
export const HOSTILE_DOCUMENTS: Record<string, string> = {
  "empty lines before many errors": `${"\n".repeat(240_000)}{ viewer { userId ${"@skip ".repeat(900)} } }`,
  "empty lines before many conflicts": `${"\n".repeat(240_000)}${conflicts(240)}`,
  "comments before many unknown fields": `${"#\r\n".repeat(80_000)}{ ${repeated(1_900, (i) => `x${i}`)} }`,
  "one object again and again": `{ ${repeated(490, () => "viewer { userId }")} }`,
  "one object with several fields again and again": `{ ${repeated(240, () => "viewer { userId role plan tenantId }")} }`,
  "one leaf again and again": `{ ${repeated(1_990, () => "viewer")} }`,
  "one alias for two fields": conflicts(330),
  "objects that double": `{ deal(id: "1") { ${Array.from({ length: 6 }).reduce<string>((inner) => `organization { openDeals { nodes { ${inner} } } } `.repeat(2), "id")} } }`,
  "an argument that is given again and again": `{ ${repeated(200, () => `deal(id: "${"x".repeat(1_000)}") { id }`)} }`,
  "thousands of aliases of one field": `{ viewer { ${repeated(650, (i) => `a${i}: userId`)} } }`,
  "fragments that spread all later ones": upTo(38, (i) => repeated(37 - i, (j) => `...F${i + j + 1}`)),
  "fragments that spread all": upTo(28, () => repeated(28, (j) => `...F${j}`)),
  "a chain of fragments": upTo(220, (i) => (i < 219 ? `...F${i + 1}` : "")),
  "fragments side by side": `{ viewer { ${repeated(180, (i) => `...F${i}`)} } } ${repeated(180, (i) => `fragment F${i} on Viewer { userId role }`)}`,
  "fragments that are not there": `{ ${repeated(990, (i) => `...F${i}`)} }`,
  "operations that share fragments": `${repeated(180, (i) => `query Q${i} { ...F0 }`)} ${repeated(110, (i) => `fragment F${i} on Query { ${i < 109 ? `...F${i + 1}` : "viewer { userId }"} }`)}`,
  "a nest of inline fragments": `{ viewer { ${"... { ".repeat(600)} userId ${"} ".repeat(600)} } }`,
  "inline fragments side by side": `{ deal(id: "1") { ${repeated(160, () => "... on Deal { owner { name } }")} } }`,
  "a directive again and again": `{ viewer { userId ${"@skip(if: true) ".repeat(280)} } }`,
  "a directive that is not there": `{ viewer { userId ${"@nothing ".repeat(980)} } }`,
  "a deep list": `{ deals(first: ${"[".repeat(980)}1${"]".repeat(980)}) { nodes { id } } }`,
  "values that are not there": `{ deals(orderBy: [${repeated(1_900, (i) => `NEWESTT${i}`)}]) { nodes { id } } }`,
  "variables of types that are not there": `query(${repeated(490, (i) => `$v${i}: Conection${i}`)}) { viewer { userId } }`,
  "long names that resemble others": `{ ${repeated(95, (i) => `${"deals".repeat(1_000)}${i}`)} }`,
};

export const parsed = (text: string) => parse(text, { maxTokens: MAX_TOKENS });
