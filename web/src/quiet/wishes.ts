import type { DealFilter, DealOrder, QuietVerdict } from "../api/operations.generated";
import { AMOUNT } from "../ui/words";

/** What somebody wants to see of the board. It stands in the address, so that it can be kept, sent and gone back to. */
export interface Wishes {
  verdicts: readonly QuietVerdict[];
  ownerId: string | null;
  pipelineId: string | null;
  stageId: string | null;
  /** Decimal text; without the currency that it is in it is no wish. */
  least: string | null;
  currency: string | null;
  order: DealOrder;
  /** Those that somebody has explained, in place of those that nobody has. */
  snoozed: boolean;
}

/** Those that a board can be asked for, the worst first. */
export const VERDICTS: readonly QuietVerdict[] = ["GHOSTED", "QUIET", "COOLING", "UNKNOWN"];
const AT_FIRST: readonly QuietVerdict[] = ["GHOSTED", "QUIET"];
const ORDERS: readonly DealOrder[] = ["QUIET_DAYS_DESC", "VALUE_DESC", "UPDATED_AT_DESC"];
const CURRENCY = /^[A-Z]{3}$/;

/** Of any address: what makes no sense is as if it were not there. */
export function readWishes(search: string): Wishes {
  const given = new URLSearchParams(search);
  const verdicts = VERDICTS.filter((verdict) => given.get("verdict")?.split(",").includes(verdict));
  const currency = fitting(given.get("currency"), CURRENCY);
  const order = ORDERS.find((one) => one === given.get("order"));
  return {
    verdicts: verdicts.length > 0 ? verdicts : AT_FIRST,
    ownerId: given.get("owner") || null,
    pipelineId: given.get("pipeline") || null,
    stageId: given.get("stage") || null,
    least: currency && fitting(given.get("min"), AMOUNT),
    currency,
    order: order ?? "QUIET_DAYS_DESC",
    snoozed: given.get("snoozed") === "1",
  };
}

const fitting = (text: string | null, pattern: RegExp): string | null => (text && pattern.test(text) ? text : null);

/** The shortest address that says it; the board at first has none. */
export function writeWishes(wishes: Wishes): string {
  const { verdicts, ownerId, pipelineId, stageId, least, currency, order, snoozed } = wishes;
  const isAtFirst = verdicts.join() === AT_FIRST.join();
  const parts = {
    verdict: isAtFirst ? null : verdicts.join(","),
    owner: ownerId,
    pipeline: pipelineId,
    stage: stageId,
    min: least,
    currency: least ? currency : null,
    order: order === "QUIET_DAYS_DESC" ? null : order,
    snoozed: snoozed ? "1" : null,
  };
  const said = Object.entries(parts).filter((part): part is [string, string] => part[1] !== null);
  return said.length === 0 ? "" : `?${new URLSearchParams(said)}`;
}

export function filterOf({ verdicts, ownerId, pipelineId, stageId, least, currency, snoozed }: Wishes): DealFilter {
  return {
    status: ["OPEN"],
    verdict: [...verdicts],
    snoozed,
    ...(ownerId && { ownerId }),
    ...(pipelineId && { pipelineId }),
    ...(stageId && { stageId }),
    ...(least && currency && { minValue: least, currency }),
  };
}

/** Whether there may be quiet deals that are not asked for. */
export const isNarrowed = ({ verdicts, ownerId, pipelineId, stageId, least, snoozed }: Wishes): boolean =>
  [ownerId, pipelineId, stageId, least].some((wish) => wish !== null) ||
  snoozed ||
  AT_FIRST.some((verdict) => !verdicts.includes(verdict));
