import { type GraphQLSchema, specifiedRules, type ValidationRule, validate } from "graphql";
import { buildGraphQLSchema } from "../src/resolvers/graphql-schema";
import { boundedDocument, VALIDATION_OPTIONS } from "../src/server/bounds";
import { HOSTILE_DOCUMENTS, parsed } from "../test/support/hostile-documents";
import { column, say } from "./print";

const ROUNDS = 5;
const SHOWN = 8;

/** What the worst documents of 2,000 tokens cost to validate: by the library's rules alone, and bounded as the service does. */
export async function siegeDocuments(): Promise<void> {
  const schema = buildGraphQLSchema();
  const found = Object.entries(HOSTILE_DOCUMENTS).map(([name, text]) => ({
    name,
    alone: cost(schema, text, specifiedRules, {}),
    bounded: cost(schema, text, [...specifiedRules, boundedDocument], VALIDATION_OPTIONS),
  }));
  say(
    `CPU milliseconds of one validation, median of ${ROUNDS}, and errors; the ${SHOWN} dearest of ${found.length} each way`,
  );
  say(`${column("before")}${column("errors")}${column("after")}${column("errors")}`);
  const dearest = (way: "alone" | "bounded") => [...found].sort((a, b) => b[way].ms - a[way].ms).slice(0, SHOWN);
  for (const { name, alone, bounded } of new Set([...dearest("alone"), ...dearest("bounded")])) {
    const figures = [alone.ms.toFixed(1), alone.errors, bounded.ms.toFixed(1), bounded.errors];
    say(`${figures.map((figure) => column(figure)).join("")}  ${name}`);
  }
}

function cost(schema: GraphQLSchema, text: string, rules: readonly ValidationRule[], options: { maxErrors?: number }) {
  const document = parsed(text);
  let errors = 0;
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    errors = validate(schema, document, rules, options).length;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  const ms = times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
  return { ms, errors };
}
