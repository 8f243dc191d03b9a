import { type ValidationError, validate } from "class-validator";
import { getNullableType, isUnionType } from "graphql";
import { Arg, ArgumentValidationError, type ClassType, type MiddlewareFn } from "type-graphql";
import { refused } from "../platform/errors";
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
    const { path, message } = firstFault(error.extensions.validationErrors);
    const answer = getNullableType(info.returnType);
    const canRefuse = isUnionType(answer) && answer.getTypes().some(({ name }) => name === Refusal.name);
    if (!canRefuse) throw badInput(message);
    return presentRefusal(refused("INVALID_INPUT", message, path));
  }
};

/**
 * Checks one of many inputs, of which each is refused for itself.
 * @param path where it stands: `inputs.3`
 */
export async function refusalOfInput(input: object, path: string): Promise<Refusal | null> {
  const faults = await validate(input, { skipMissingProperties: true });
  if (faults.length === 0) return null;
  const fault = firstFault(faults, `${path}.`);
  return presentRefusal(refused("INVALID_INPUT", fault.message, fault.path));
}

/** Of a field and its own fields, the outermost. @returns the path with points: `attendees.3.email` */
function firstFault(faults: readonly ValidationError[], within = ""): { path: string; message: string } {
  const [fault] = faults;
  if (!fault) throw new Error("class-validator refused an input without a reason");
  const path = `${within}${fault.property}`;
  const [words] = Object.values(fault.constraints ?? {});
  return words === undefined ? firstFault(fault.children ?? [], `${path}.`) : { path, message: `${path} ${words}.` };
}
