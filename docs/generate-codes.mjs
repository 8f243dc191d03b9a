// Writes the codes into docs/api.md: those of errors and sockets from src/server/errors.ts (compiled), those of refusals,
// gaps and troubles from the enums of schema.graphql. With --check it writes nothing and fails where the page would change.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSchema } from "graphql";
import codes from "../dist/src/server/errors.js";

const docs = dirname(fileURLToPath(import.meta.url));
const page = join(docs, "api.md");
const schema = buildSchema(readFileSync(join(docs, "..", "schema.graphql"), "utf8"));
const valuesOf = (name) => schema.getType(name).getValues();

/** Enums that share codes, by where a client meets them; a shared one is described by the first. */
const SHARED = [
  ["GapCode", "gap"],
  ["TroubleCode", "trouble"],
  ["SyncErrorCode", "run"],
  ["WriteErrorCode", "write"],
  ["ReauthorizationReason", "reauthorization"],
];

const table = (head, rows) => [`|${head.join("|")}|`, `|${head.map(() => "---").join("|")}|`, ...rows].join("\n");
/** What a description begins with: the schema has the rest, and so have clients that read it. */
const beginning = (description) => description.replace(/; .*$/s, ".");
const row = (code, ...cells) => `|\`${code}\`|${cells.join("|")}|`;

function sharedRows() {
  const met = new Map();
  for (const [name, where] of SHARED) {
    for (const { name: code, description } of valuesOf(name)) {
      const known = met.get(code) ?? { places: [], description };
      met.set(code, { ...known, places: [...known.places, where] });
    }
  }
  return [...met].map(([code, { places, description }]) => row(code, places.join(", "), beginning(description)));
}

/** The status of an answer; and that of one with nothing executed, where that is another. */
function statusOf(code, executed) {
  if (executed === null) return "socket";
  const bare = codes.statusOf([{ extensions: { code } }]);
  return bare === executed ? executed : `${executed}/${bare}`;
}

const errors = [...codes.ERROR_CODES].map(([code, [status, words]]) => row(code, statusOf(code, status), words));
const refusals = valuesOf("RefusalCode").map(({ name, description }) => row(name, beginning(description)));
const closes = [...codes.CLOSE_CODES].map(([code, words]) => row(code, words));

const written = [
  table(["code of an error", "HTTP", ""], errors),
  table(["code of a refusal", ""], refusals),
  table(["code", "of a", ""], sharedRows()),
  table(["close code", "because"], closes),
].join("\n\n");

const MARKED = /(<!-- codes: .*? -->\n).*?(<!-- \/codes -->)/s;
const before = readFileSync(page, "utf8");
const after = before.replace(MARKED, (_all, start, end) => `${start}\n${written}\n\n${end}`);

if (!process.argv.includes("--check")) writeFileSync(page, after);
else if (after !== before || !MARKED.test(before)) {
  process.stderr.write("The codes in docs/api.md are stale: npm run schema writes them.\n");
  process.exit(1);
}
