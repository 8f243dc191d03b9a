import type { CrmEntity, FieldValueInput, MappingFragment, WriteState } from "../api/operations.generated";
import { missingPart, valueFrom } from "../ui/field-types";
import type { Briefing, Target } from "./targets";
import { RECORD } from "./wording";

/** What was filled in for the nominated field of one kind of record. */
export interface Filled {
  /** Another field may be nominated by now: what was filled in is none of that one's. */
  fieldKey: string;
  /** The record that it is for; absent: not chosen yet, or the only one, whichever that is by then. */
  targetId?: string;
  parts: string[];
  /** The receipt of its sending while that is UNKNOWN: so long it is neither changed nor sent. */
  writeId?: string;
}
export type FilledFields = Partial<Record<CrmEntity, Filled>>;

/** The records of a briefing that a field of their kind can be written on. */
export function recordsOf(entity: CrmEntity, { deal, persons, organizations }: Briefing): Target[] {
  if (entity === "DEAL") return deal ? [{ id: deal.id, name: deal.title }] : [];
  return (entity === "PERSON" ? persons : organizations).map(({ id, name }) => ({ id, name }));
}

/** Whether another record of a kind may come to be meant: as the match says it, or where a company may not be there yet. */
export const mayChangeOf = (entity: CrmEntity, { asOf, gaps }: Briefing, mayChange: boolean): boolean =>
  mayChange ||
  (entity === "ORGANIZATION" && asOf === null && gaps.some(({ resource }) => resource === "ORGANIZATIONS"));

/**
 * Which record is meant: the one that it was filled in for, while it belongs to the meeting; for none, the only one.
 * @param mayChange whether another one may come to be meant: then a person says it
 */
export function targetOf(records: readonly Target[], filled: Filled | undefined, mayChange: boolean): Target | null {
  const [only, ...others] = records;
  if (only && others.length === 0 && !filled?.targetId && !mayChange) return only;
  return records.find(({ id }) => id === filled?.targetId) ?? null;
}

/** What was filled in for the field that is nominated now. */
export function filledOf({ entity, fieldKey }: MappingFragment, filled: FilledFields): Filled | undefined {
  const kept = filled[entity];
  return kept?.fieldKey === fieldKey ? kept : undefined;
}

/** The values to send: of every field that is filled in whole, whose record is known, and that may not have been written. */
export function valuesOf(
  mappings: readonly MappingFragment[],
  filled: FilledFields,
  briefing: Briefing,
  mayChange: boolean,
): FieldValueInput[] {
  return mappings.flatMap((mapping) => {
    const { entity, fieldType } = mapping;
    const kept = filledOf(mapping, filled);
    const value = valueFrom(fieldType, kept?.parts ?? []);
    const target = targetOf(recordsOf(entity, briefing), kept, mayChangeOf(entity, briefing, mayChange));
    return value !== undefined && target && !kept?.writeId ? [{ entity, targetId: target.id, value }] : [];
  });
}

/** What a field lacks that is filled in in part, and so is not sent; null where that is nothing. */
export function missingOf(
  { entity, fieldType }: MappingFragment,
  records: readonly Target[],
  filled: Filled | undefined,
  mayChange: boolean,
): string | null {
  if (!filled || filled.writeId) return null;
  const isChosen = valueFrom(fieldType, filled.parts) === undefined || targetOf(records, filled, mayChange) !== null;
  // Where there is one record alone, the form says for which other one it was filled in.
  const isSaid = isChosen || (records.length === 1 && !mayChange);
  return missingPart(fieldType, filled.parts) ?? (isSaid ? null : `Choose the ${RECORD[entity]}`);
}

interface Write {
  id: string;
  entity: CrmEntity;
  state: WriteState;
}

/** Of what was sent, what stands there as it was. */
export function unchanged(
  sent: readonly FieldValueInput[],
  filled: FilledFields,
  mappings: readonly MappingFragment[],
): FieldValueInput[] {
  return sent.filter(({ entity, targetId, value }) => {
    const mapping = mappings.find((one) => one.entity === entity);
    const kept = mapping && filledOf(mapping, filled);
    if (!kept || kept.writeId || (kept.targetId ?? targetId) !== targetId) return false;
    return JSON.stringify(valueFrom(mapping.fieldType, kept.parts)) === JSON.stringify(value);
  });
}

/** After a report: what is left of what was sent is for the record that it was sent to, and known by its receipt. */
export function unwritten(
  filled: FilledFields,
  sent: readonly FieldValueInput[],
  report: readonly Write[],
): FilledFields {
  const left = sent.flatMap(({ entity, targetId }) => {
    const one = filled[entity];
    const receipt = report.find((write) => write.entity === entity);
    return one && receipt ? [[entity, { ...one, targetId, writeId: receipt.id }] as const] : [];
  });
  return settled({ ...filled, ...Object.fromEntries(left) }, report);
}

/** By what is known now: what is written goes, what is not can be changed, and what may be stays as it was sent. */
export function settled(filled: FilledFields, receipts: readonly Write[]): FilledFields {
  const left = (Object.entries(filled) as [CrmEntity, Filled][]).flatMap(([entity, one]) => {
    const state = receipts.find(({ id }) => id === one.writeId)?.state;
    if (state === "WRITTEN") return [];
    return [[entity, state === "FAILED" ? editable(one) : one] as const];
  });
  return Object.fromEntries(left);
}

export function editable({ fieldKey, targetId, parts }: Filled): Filled {
  return { fieldKey, targetId, parts };
}

export const asText = (filled: FilledFields): string => (Object.keys(filled).length > 0 ? JSON.stringify(filled) : "");

/** @param text of a draft; another version of the page may have kept something else */
export function asFilled(text: string): FilledFields {
  try {
    const kept = JSON.parse(text) as Record<string, Partial<Filled> | null>;
    const isWhole = ([, one]: [string, Partial<Filled> | null]) => Array.isArray(one?.parts);
    return Object.fromEntries(Object.entries(kept).filter(isWhole));
  } catch {
    return {};
  }
}
