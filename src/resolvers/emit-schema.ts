import { writeFileSync } from "node:fs";
import { printSchema } from "graphql";
import { buildGraphQLSchema } from "./graphql-schema";

export const SCHEMA_FILE = "schema.graphql";

export function printedSchema(): string {
  const header =
    "# The public contract. Emitted from the resolvers by `npm run schema`; a test holds it up to date.\n\n";
  return `${header}${printSchema(buildGraphQLSchema())}\n`;
}

if (require.main === module) writeFileSync(SCHEMA_FILE, printedSchema());
