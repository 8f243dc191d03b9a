import { type ValidationError, validate } from "class-validator";
import { GraphQLError, getNullableType, isUnionType } from "graphql";
import { Arg, ArgumentValidationError, type ClassType, Int, type MiddlewareFn } from "type-graphql";
import { type Refused, refused } from "../platform/errors";
import { Refusal, type RefusalCode } from "../schema/refusal";

/** The document or its variables cannot be used as they are: the client's mistake, said clearly. */
export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_USER_INPUT" } });
}

const MAX_PAGE = 100;
const MAX_NESTED = 50;

/** `first` of a page; null is the client's way of not saying. @throws GraphQLError BAD_USER_INPUT */
export const pageSize = (first: number | null) => within(first ?? 20, MAX_PAGE);

/** The `first` of a list inside a record: bounded more tightly, because it is multiplied by its parents. */
export const First = (standard: number) =>
  Arg("first", () => Int, {
    nullable: true,
    defaultValue: standard,
    description: `How many at most, from 1 to ${MAX_NESTED}.`,
  });

export const nestedSize = (first: number) => within(first, MAX_NESTED);

function within(first: number, most: number): number {
  if (first < 1 || first > most) throw badInput(`first must be from 1 to ${most}.`);
  return first;
}

export const presentRefusal = ({ code, message, field, retryAt }: Refused<RefusalCode>): Refusal =>
  Object.assign(new Refusal(), { code, message, field: field ?? null, retryAt: retryAt ?? null });

/** The `input` of an operation, whose class says what is checked before the resolver is called. */
export const Input = (type: () => ClassType, description: string) =>
  Arg("input", type, { validate: true, description });

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
