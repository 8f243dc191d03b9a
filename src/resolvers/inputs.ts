import { type ValidationError, validate } from "class-validator";
import { GraphQLError, getNullableType, isUnionType } from "graphql";
import { Arg, ArgumentValidationError, type ClassType, Int, type MiddlewareFn } from "type-graphql";
import { isPosition, type ListOrder, type Page, type PageRequest, type Position } from "../database/keyset";
import { type Refused, refused } from "../platform/errors";
import type { PageArgs, RelayPage } from "../schema/base";
import { Refusal, type RefusalCode } from "../schema/refusal";
import type { OperationContext } from "./context";

/** Kinds of things that have a global id. */
export type NodeType =
  | "Connection"
  | "QuietSettings"
  | "SyncRun"
  | "CrmUser"
  | "Pipeline"
  | "Stage"
  | "Deal"
  | "Person"
  | "Organization"
  | "Activity"
  | "Note"
  | "Meeting"
  | "NoteWrite"
  | "FieldWrite";

export interface DecodedId {
  type: string;
  parts: string[];
}

/** Opaque to clients. A record's id names the copy that it was read in, so another tenant's id never means a record here. */
export function encodeId(type: string, ...parts: (string | number)[]): string {
  return Buffer.from([type, ...parts].join(":")).toString("base64url");
}

/** null for anything that this service never issued in this form. */
export function decodeId(id: string): DecodedId | null {
  const text = Buffer.from(id, "base64url").toString("utf8");
  const [type, ...parts] = text.split(":");
  if (!type || parts.length === 0 || Buffer.from(text).toString("base64url") !== id) return null;
  return { type, parts };
}

/** The CRM id in a record's global id; null where it is of another kind or another copy. */
export function crmIdIn(id: string, type: NodeType, copyId: number): number | null {
  const decoded = decodeId(id);
  if (decoded?.type !== type || decoded.parts.length !== 2 || decoded.parts[0] !== String(copyId)) return null;
  const crmId = Number(decoded.parts[1]);
  // As it was issued: neither "01" nor "0x1" nor " 1" is another name of the same record.
  return Number.isSafeInteger(crmId) && crmId > 0 && String(crmId) === decoded.parts[1] ? crmId : null;
}

/** The record that a global id names, as far as it is one of the copy that the tenant sees. */
export async function recordIn(
  { copy }: Pick<OperationContext, "copy">,
  id: string,
  type: NodeType,
): Promise<{ copyId: number; crmId: number } | null> {
  const seen = await copy();
  const crmId = seen && crmIdIn(id, type, seen.copyId);
  return seen && crmId !== null ? { copyId: seen.copyId, crmId } : null;
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** The UUID in the global id of what has one; null where it is of another kind or none of ours. */
export function uuidIn(id: string, type: NodeType): string | null {
  const decoded = decodeId(id);
  const [uuid = "", ...others] = decoded?.type === type ? decoded.parts : [];
  return others.length === 0 && UUID.test(uuid) ? uuid : null;
}

/** The record's page in the CRM; null where the company's domain is not known. */
export async function crmUrl(
  connection: () => Promise<{ companyDomain: string | null } | null>,
  kind: "deal" | "person" | "organization",
  crmId: number,
): Promise<string | null> {
  const domain = (await connection())?.companyDomain;
  return domain ? `https://${domain}.pipedrive.com/${kind}/${crmId}` : null;
}

/** The document or its variables cannot be used as they are: the client's mistake, said clearly. */
export function badInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_USER_INPUT" } });
}

const MAX_PAGE = 100;
const MAX_NESTED = 50;

/** `first` of a page; null is the client's way of not saying. @throws GraphQLError BAD_USER_INPUT */
const pageSize = (first: number | null) => within(first ?? 20, MAX_PAGE);

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

/** A field is named before the fields within it. @returns the path with points: `attendees.3.email` */
function firstFault(faults: readonly ValidationError[], within = ""): { path: string; message: string } {
  const [fault] = faults;
  if (!fault) throw new Error("class-validator refused an input without a reason");
  const path = `${within}${fault.property}`;
  const [words] = Object.values(fault.constraints ?? {});
  return words === undefined ? firstFault(fault.children ?? [], `${path}.`) : { path, message: `${path} ${words}.` };
}

/** A list of which cursors are issued. A cursor of one list is none of another. */
export interface PagedList {
  name: string;
  /** Whose: the tenant, or its copy; null where there is none now, and so no cursor that holds. */
  of: string | number | null;
  order: ListOrder;
  /** Where a list has several orders. */
  orderName?: string;
}

const encodeCursor = ({ name, of, orderName = "" }: PagedList, position: Position) =>
  Buffer.from(JSON.stringify([name, orderName, of, ...position])).toString("base64url");

/** @throws GraphQLError BAD_USER_INPUT */
export const positionIn = (list: PagedList, after: string | null | undefined): Position | null =>
  after == null ? null : decodeCursor(list, after);

function decodeCursor(list: PagedList, cursor: string): Position {
  const [name, orderName, of, ...position] = partsOf(cursor);
  if (name !== list.name) throw badInput(`after is not a cursor of ${list.name}. ${HOW}`);
  if (orderName !== (list.orderName ?? ""))
    throw badInput(`after is a cursor of ${list.name} in another order. Leave after out when the order changes.`);
  if (of === null || of !== list.of)
    throw badInput("after is a cursor of another CRM connection. Leave after out and begin again.");
  if (!isPosition(list.order, position)) throw badInput(`after is not a cursor of ${list.name}. ${HOW}`);
  return position;
}

const HOW = "Pass endCursor of the page before, or a cursor of its edges, unchanged.";

function partsOf(cursor: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}

/** Reads a page of a list. @throws GraphQLError BAD_USER_INPUT for a size or cursor that is none */
export async function relayPage<Row extends object>(
  list: PagedList,
  { first, after }: PageArgs,
  read: (page: PageRequest) => Promise<Page<Row>>,
): Promise<RelayPage<Row>> {
  const position = positionIn(list, after);
  const found = await read({ order: list.order, first: pageSize(first), after: position });
  const edges = found.rows.map((row) => ({ cursor: encodeCursor(list, row.position), node: row }));
  return {
    edges,
    nodes: edges.map(({ node }) => node),
    pageInfo: {
      hasNextPage: found.hasMore,
      hasPreviousPage: position !== null,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}
