import type { ValidationError } from "class-validator";
import { getNullableType, isUnionType } from "graphql";
import { Arg, ArgumentValidationError, type ClassType, type MiddlewareFn } from "type-graphql";
import { refused } from "../platform/outcome";
import { Refusal } from "../schema/refusal";
import { badInput } from "./errors";
import { presentRefusal } from "./present";

/** The `input` of an operation, whose class says what is checked before the resolver is called. */
export const Input = (type: () => ClassType) => Arg("input", type, { validate: true });

/**
 * Turns what class-validator finds into INVALID_INPUT with the first field at fault and its words: a refusal where the
 * operation can answer with one, else an error.
 */
export const refuseInvalidInput: MiddlewareFn = async ({ info }, next) => {
  try {
    return await next();
  } catch (error) {
    if (!(error instanceof ArgumentValidationError)) throw error;
    const { path, words } = firstFault(error.extensions.validationErrors);
    const message = `${path} ${words}.`;
    const answer = getNullableType(info.returnType);
    const canRefuse = isUnionType(answer) && answer.getTypes().some(({ name }) => name === Refusal.name);
    if (!canRefuse) throw badInput(message);
    return presentRefusal(refused("INVALID_INPUT", message, path));
  }
};

/** Of a field and its own fields, the outermost. @returns the path with points: `attendees.3.email` */
function firstFault(faults: readonly ValidationError[], within = ""): { path: string; words: string } {
  const [fault] = faults;
  if (!fault) throw new Error("class-validator refused an input without a reason");
  const path = `${within}${fault.property}`;
  const [words] = Object.values(fault.constraints ?? {});
  return words === undefined ? firstFault(fault.children ?? [], `${path}.`) : { path, words };
}
