import type { Entity, RecordOf } from "../model/records";
import { plainView, type View } from "../model/texts";
import { PURGE_AFTER_SECONDS, seconds, v2Time } from "../model/times";
import { comparePlaces, type Place, type Sort, type SortKey, sortValue } from "../model/views";
import { jsonText, notFound } from "./answer";
import { cursorAt, placeOf } from "./cursor";
import type { Call, Operation, World } from "./operation";
import { shownBy } from "./page-twists";
import { anyText, oneOf, PAGE_DEFAULT, pageLimit, type Query, type Rules, strictQuery, wholeNumber } from "./query";

type Keep<T> = (record: T) => boolean;

export interface Listing<E extends Entity> {
  readonly entity: E;
  readonly path: string;
  readonly cost: number;
  /** Parameters beyond sorting and paging. */
  readonly rules: Rules;
  readonly sorts: readonly SortKey[];
  /** Parameters that belong to the single read as well. */
  readonly viewRules: Rules;
  /** Which of the visible records the list shows. */
  keep(query: Query, world: World): Keep<RecordOf[E]>;
  text(record: RecordOf[E], view: View, world: World): string;
}

const SINGLE_COST = 1;

export function listOperation<E extends Entity>(listing: Listing<E>, world: World): Operation {
  const rules: Rules = {
    ...listing.rules,
    ...listing.viewRules,
    sort_by: oneOf(...listing.sorts),
    sort_direction: oneOf("asc", "desc"),
    limit: pageLimit,
    cursor: anyText,
  };
  return {
    path: listing.path,
    cost: listing.cost,
    answer: (call) => listAnswer(listing, world, call, strictQuery(call.query, rules)),
  };
}

function listAnswer<E extends Entity>(listing: Listing<E>, world: World, call: Call, query: Query) {
  const sort: Sort = {
    field: (query.sort_by ?? "id") as SortKey,
    direction: query.sort_direction === "desc" ? "desc" : "asc",
  };
  const limit = Number(query.limit ?? PAGE_DEFAULT);
  const records = world.views.list(call.user, listing.entity, sort);
  const keep = listing.keep(query, world);
  const isShown = shownBy(call.twist);
  const view = viewOf(query);
  const texts: string[] = [];
  let last: RecordOf[E] | undefined;
  let isMore = false;
  const from = query.cursor === undefined ? 0 : firstAfter(records, placeOf(query.cursor, sort), sort);
  for (let index = from; index < records.length && !isMore; index++) {
    const record = records[index];
    if (record === undefined || !keep(record) || !isShown(record)) continue;
    if (texts.length === limit) {
      isMore = true;
    } else {
      texts.push(listing.text(record, view, world));
      last = record;
    }
  }
  const next = isMore && last ? cursorAt({ value: sortValue(last, sort.field), id: last.id }, sort) : null;
  return jsonText(
    `{"success":true,"data":[${texts.join(",")}],"additional_data":{"next_cursor":${JSON.stringify(next)}}}`,
  );
}

/** Where the records behind a place begin: by halving, as the list is in order. */
function firstAfter(records: readonly { id: number }[], place: Place, sort: Sort): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const record = records[middle];
    if (record === undefined) break;
    const here = { value: sortValue(record, sort.field), id: record.id };
    if (comparePlaces(here, place, sort) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function singleOperation<E extends Entity>(listing: Listing<E>, name: string, world: World): Operation {
  return {
    path: `${listing.path}/:id`,
    cost: SINGLE_COST,
    answer: (call) => {
      const query = strictQuery(call.query, listing.viewRules);
      const id = call.params.id ?? "";
      if (wholeNumber(id) !== undefined) throw notFound(name);
      const record = world.views.find(call.user, listing.entity, Number(id));
      if (record === undefined || isPurged(record, world)) throw notFound(name);
      return jsonText(`{"success":true,"data":${listing.text(record, viewOf(query), world)}}`);
    },
  };
}

/** Deleted records answer single reads until they are purged. */
export function isPurged(record: object, world: World): boolean {
  if (!("is_deleted" in record) || record.is_deleted !== true || !("update_time" in record)) return false;
  return String(record.update_time) < purgeLimit(world);
}

/** What was deleted before this time is gone for good. */
export function purgeLimit(world: World): string {
  return v2Time(seconds(world.now()) - PURGE_AFTER_SECONDS);
}

function viewOf(query: Query): View {
  if (!query.include_fields && !query.custom_fields && query.include_option_labels !== "true") return plainView;
  return {
    includeFields: query.include_fields ? [...new Set(query.include_fields.split(","))] : [],
    customFields: query.custom_fields ? query.custom_fields.split(",") : null,
    optionLabels: query.include_option_labels === "true",
  };
}
