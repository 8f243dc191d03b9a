import { type Answer, jsonText } from "./answer";
import type { Call, Operation } from "./operation";

/** What a fault makes of a list: true records on pages that lead nowhere, or a list that shows too little. */
export type PageTwist =
  /** Every page shows the records of the first one and names a next page that was never named before. */
  | { kind: "again" }
  /** Every page is without records and names a next page that was never named before. */
  | { kind: "empty" }
  /** Behind the last page comes the first one again. */
  | { kind: "circle" }
  /** The list shows about this share of its records, the same ones at every look. Of v2 lists, notes and users. */
  | { kind: "part"; share: number };

/** Version 2 goes by cursor, version 1 by offset; lists of one page have neither. */
interface Page {
  data: unknown[] | null;
  additional_data?: {
    next_cursor?: string | null;
    pagination?: { start: number; limit: number; more_items_in_collection: boolean; next_start?: number };
  };
}

/** The cursor behind the last page of a circle. */
const BEGINNING = "circle";
let cursorsMade = 0;

export function withPageTwists(operation: Operation): Operation {
  return {
    ...operation,
    answer: (call) => {
      switch (call.twist?.kind) {
        case "again":
        case "empty":
          return endless(operation, call, call.twist.kind);
        case "circle":
          return circling(operation, call);
        default:
          return operation.answer(call);
      }
    },
  };
}

function endless(operation: Operation, call: Call, kind: "again" | "empty"): Answer {
  const { cursor: _cursor, start: from = 0, ...query } = call.query;
  return rewritten(operation.answer({ ...call, query }), (page) => {
    const paging = page.additional_data;
    if (paging?.pagination) {
      if (kind === "empty") page.data = null;
      const start = Number(from);
      const { limit } = paging.pagination;
      paging.pagination = { start, limit, more_items_in_collection: true, next_start: start + limit };
    } else if (paging?.next_cursor !== undefined) {
      if (kind === "empty") page.data = [];
      paging.next_cursor = `again${++cursorsMade}`;
    }
  });
}

function circling(operation: Operation, call: Call): Answer {
  const { cursor, ...query } = call.query;
  const asked = cursor === BEGINNING ? { ...call, query } : call;
  return rewritten(operation.answer(asked), ({ additional_data: paging }) => {
    if (paging?.pagination && !paging.pagination.more_items_in_collection) {
      paging.pagination = { ...paging.pagination, more_items_in_collection: true, next_start: 0 };
    } else if (paging?.next_cursor === null) {
      paging.next_cursor = BEGINNING;
    }
  });
}

function rewritten(answer: Answer, change: (page: Page) => void): Answer {
  const page: Page = JSON.parse(answer.body);
  change(page);
  return jsonText(JSON.stringify(page), answer.status);
}

/** What a list may show. By a hash of the id, so that the records which are left out lie anywhere in the list. */
export function shownBy(twist: Call["twist"]): (record: { id: number }) => boolean {
  if (twist?.kind !== "part") return () => true;
  const { share } = twist;
  return ({ id }) => (Math.imul(id, 0x9e3779b1) >>> 0) / 2 ** 32 < share;
}
