import { type DocumentNode, type FieldNode, GraphQLError, Kind, type ValidationRule, visit } from "graphql";

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

/** For `validate` and for Apollo, so that both transports stop alike. */
export const VALIDATION_OPTIONS = { maxErrors: MAX_ERRORS };

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

function refusalOfDocument(document: DocumentNode): GraphQLError | null {
  if (hasMoreLines(document.loc?.source.body ?? "", MAX_LINES))
    return tooComplex(`It has more than ${MAX_LINES} lines`);
  const { comparisons, longestName } = measure(document);
  if (longestName > MAX_NAME_LENGTH)
    return tooComplex(`A name has ${longestName} characters, more than ${MAX_NAME_LENGTH}`);
  if (comparisons <= MAX_COMPARISONS) return null;
  return tooComplex(`Its fields and fragments would be compared ${comparisons} times, more than ${MAX_COMPARISONS}`);
}

function tooComplex(what: string): GraphQLError {
  const advice = "Repeat fewer of them, put texts into variables, or send several documents.";
  return new GraphQLError(`The document is not validated. ${what}. ${advice}`, {
    extensions: { code: "DOCUMENT_TOO_COMPLEX" },
  });
}

interface Work {
  comparisons: number;
  longestName: number;
}

/** How much the rules would compare. */
function measure(document: DocumentNode): Work {
  const fields = new Map<string, { count: number; weight: number }>();
  let [operations, spreads, distinctSpreads, variables, longestName] = [0, 0, 0, 0, 0];
  visit(document, {
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
  return { comparisons, longestName };
}

function hasMoreLines(text: string, most: number): boolean {
  let lines = 1;
  for (const _break of text.matchAll(/\r\n|[\n\r]/g)) {
    lines += 1;
    if (lines > most) return true;
  }
  return false;
}
