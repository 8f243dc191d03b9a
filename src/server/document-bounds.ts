import { type DocumentNode, type FieldNode, GraphQLError, Kind, type ValidationRule, visit } from "graphql";
import { LRUCache } from "lru-cache";
import { errorOf } from "./codes";

/** Errors that one document is told; the library would tell a hundred, each with all of its places. */
const MAX_ERRORS = 20;
/** Line breaks: each place that an error names is found by counting them from the beginning. A token has a line at most. */
const MAX_LINES = 2_000;
/** Characters of a name; errors repeat names, and look for similar ones. */
const MAX_NAME_LENGTH = 200;
/**
 * Comparisons that the rules may come to: fields that could be merged with each other, fragments with each other, and
 * what each operation reaches. The largest document of the page comes to 722.
 */
const MAX_COMPARISONS = 100_000;

/** Directives at one place; `@skip` and `@include` are all that mean anything here. Each that is wrong would be an error of its own. */
const MAX_DIRECTIVES = 5;

/** Values in the variables, those within lists and objects among them: each is checked. A meeting of 500 attendees has 1,507. */
const MAX_VALUES = 5_000;
/** Characters of all documents that are kept, some hundreds of a frontend's; parsed they take up to 300 times as much. */
const MAX_KEPT = 256 * 1024;

/** For `validate` and for Apollo, so that both transports stop alike. */
export const VALIDATION_OPTIONS = { maxErrors: MAX_ERRORS };
/** Values of variables that do not fit and are told; each is told with the whole that it is in. */
export const EXECUTION_OPTIONS = { maxCoercionErrors: 5 };

/**
 * A rule that refuses a document whose validation would take long, before any other rule looks into it. It measures in
 * time linear in the document, and at worst: what could meet counts as met.
 */
export const boundedDocument: ValidationRule = (context) => ({
  Document(document) {
    const refusal = refusalOfDocument(document);
    if (!refusal) return undefined;
    context.reportError(refusal);
    // To the visitor: this node is gone. So nothing below it is visited, by any rule.
    return null;
  },
});

/**
 * Valid documents, so that one that comes again is not parsed again. They weigh what their text does, because they hold
 * it: a comment of 500 KB is nothing in what Apollo would weigh, the parsed fields alone.
 */
export function keptDocuments(): LRUCache<string, DocumentNode> {
  return new LRUCache({
    maxSize: MAX_KEPT,
    sizeCalculation: ({ loc }) => Math.max(1, loc?.source.body.length ?? 0),
  });
}

/** @returns why variables are not looked into; null where they are */
export function refusalOfVariables(variables: Readonly<Record<string, unknown>>): GraphQLError | null {
  // Not by calls of itself: the values may be nested as deeply as a body holds brackets.
  const open: unknown[] = Object.values(variables);
  for (let seen = 1; open.length > 0; seen += 1) {
    const value = open.pop();
    const within = typeof value === "object" && value !== null ? Object.values(value) : [];
    if (seen + open.length + within.length > MAX_VALUES) return tooManyValues();
    open.push(...within);
  }
  return null;
}

function tooManyValues(): GraphQLError {
  const what = `The variables have more than ${MAX_VALUES} values. Send several operations with fewer values each.`;
  return errorOf("TOO_MANY_VALUES", what);
}

function refusalOfDocument(document: DocumentNode): GraphQLError | null {
  if (hasMoreLines(document.loc?.source.body ?? "", MAX_LINES))
    return tooComplex(`It has more than ${MAX_LINES} lines`);
  const { comparisons, longestName, directives } = measure(document);
  if (directives > MAX_DIRECTIVES)
    return tooComplex(`One place has ${directives} directives, more than ${MAX_DIRECTIVES}`);
  if (longestName > MAX_NAME_LENGTH)
    return tooComplex(`A name has ${longestName} characters, more than ${MAX_NAME_LENGTH}`);
  if (comparisons <= MAX_COMPARISONS) return null;
  return tooComplex(`Its fields and fragments would be compared ${comparisons} times, more than ${MAX_COMPARISONS}`);
}

function tooComplex(what: string): GraphQLError {
  const advice = "Repeat fewer of them, put texts into variables, or send several documents.";
  return errorOf("DOCUMENT_TOO_COMPLEX", `The document is not validated. ${what}. ${advice}`);
}

interface Work {
  comparisons: number;
  longestName: number;
  /** At the place that has most. */
  directives: number;
}

/** How much the rules would compare. */
function measure(document: DocumentNode): Work {
  const fields = new Map<string, { count: number; weight: number }>();
  let [operations, spreads, distinctSpreads, variables, longestName, directives] = [0, 0, 0, 0, 0, 0];
  visit(document, {
    Directive(_node, _key, beside) {
      directives = Math.max(directives, Array.isArray(beside) ? beside.length : 1);
    },
    Name({ value }) {
      longestName = Math.max(longestName, value.length);
    },
    OperationDefinition() {
      operations += 1;
    },
    Variable() {
      variables += 1;
    },
    SelectionSet({ selections }) {
      const names = selections.flatMap((node) => (node.kind === Kind.FRAGMENT_SPREAD ? [node.name.value] : []));
      spreads += names.length;
      distinctSpreads += new Set(names).size;
    },
    Field(node: FieldNode) {
      const name = (node.alias ?? node.name).value;
      const { count, weight } = fields.get(name) ?? { count: 0, weight: 0 };
      fields.set(name, { count: count + 1, weight: weight + 1 + (node.arguments?.length ?? 0) });
    },
  });
  let comparisons = distinctSpreads ** 2 + operations * (spreads + variables);
  for (const { count, weight } of fields.values()) comparisons += count * weight;
  return { comparisons, longestName, directives };
}

function hasMoreLines(text: string, most: number): boolean {
  let lines = 1;
  for (const _break of text.matchAll(/\r\n|[\n\r]/g)) {
    lines += 1;
    if (lines > most) return true;
  }
  return false;
}
