import { randomUUID } from "node:crypto";
import { unwrapResolverError } from "@apollo/server/errors";
import { GraphQLError, type GraphQLFormattedError } from "graphql";
import { DeadlineError, heldUpOf } from "../database/session-limits";
import { ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";

/** Characters of a message: the library repeats what does not fit, and would repeat half a megabyte for each thing wrong. */
const LONGEST_MESSAGE = 1_000;

export type FormatError = (formatted: GraphQLFormattedError, error: unknown) => GraphQLFormattedError;

/** What graphql-js adds where a name is not there: names of the schema that resemble it. */
const SUGGESTIONS = / Did you mean [^?]*\?/g;

/**
 * What a client sees of an error. GraphQL's own errors and the client's mistakes are shown as they are; anything else
 * is a bug of ours: the log has it under an id, and the client gets that id and nothing more.
 * @param introspection whether the schema may be read: where not, no message tells names of it either
 */
export function maskErrors(logger: Logger, introspection: boolean): FormatError {
  const shown = (error: GraphQLFormattedError) => bounded(introspection ? error : withoutSuggestions(error));
  return (formatted, error) => {
    const original = unwrapResolverError(error);
    if (original instanceof GraphQLError && formatted.extensions?.code !== "INTERNAL_SERVER_ERROR")
      return shown({ ...formatted, extensions: { code: codeWithin(original) ?? formatted.extensions?.code } });
    if (original instanceof DeadlineError) return shown({ ...formatted, extensions: { code: original.code } });
    const heldUp = heldUpOf(original);
    if (heldUp) {
      logger.warn({ err: original, path: formatted.path }, "an operation was held up and called off");
      return shown({ ...formatted, message: heldUp.message, extensions: { code: heldUp.code } });
    }
    const errorId = randomUUID();
    const code = original instanceof ServiceError ? original.code : undefined;
    logger.error({ errorId, code, err: original, path: formatted.path }, "an operation failed for a reason of our own");
    return {
      message: `Something went wrong on our side. Give this id to support: ${errorId}`,
      locations: formatted.locations,
      path: formatted.path,
      extensions: { code: "INTERNAL_SERVER_ERROR", errorId },
    };
  };
}

/** Apollo gives each error of validation its own code; a rule of ours has said a closer one. */
function codeWithin({ originalError }: GraphQLError): unknown {
  return originalError instanceof GraphQLError ? originalError.extensions.code : undefined;
}

const withoutSuggestions = (error: GraphQLFormattedError) => ({
  ...error,
  message: error.message.replace(SUGGESTIONS, ""),
});

function bounded({ message, locations, path, extensions }: GraphQLFormattedError): GraphQLFormattedError {
  const words = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}...` : message;
  return { message: words, locations, path, extensions: { code: extensions?.code ?? "BAD_REQUEST" } };
}
