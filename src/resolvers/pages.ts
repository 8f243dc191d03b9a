import { isPosition, type ListOrder, type Page, type PageRequest, type Position } from "../database/keyset";
import type { PageArgs, RelayPage } from "../schema/base";
import { badInput, pageSize } from "./inputs";

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
