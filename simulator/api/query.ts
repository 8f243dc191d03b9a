import { invalid } from "./answer";

/** Says what is wrong with a value, or nothing. */
export type Rule = (value: string) => string | undefined;
export type Rules = Readonly<Record<string, Rule>>;
export type Query = Readonly<Record<string, string>>;

/** Parameters outside the rules are refused: that is how pipelines and stages answer to updated_since. */
export function strictQuery(raw: Readonly<Record<string, unknown>>, rules: Rules): Query {
  for (const name of Object.keys(raw)) if (!(name in rules)) throw invalid(`${name}: "${name}" is not allowed`);
  return lenientQuery(raw, rules);
}

/** Version 1 overlooks parameters that it does not know. */
export function lenientQuery(raw: Readonly<Record<string, unknown>>, rules: Rules): Query {
  const query: Record<string, string> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const value = raw[name];
    if (value === undefined) continue;
    if (typeof value !== "string") throw invalid(`${name}: must be given once`);
    const problem = rule(value);
    if (problem !== undefined) throw invalid(`${name}: ${problem}`);
    query[name] = value;
  }
  return query;
}

export const wholeNumber: Rule = (value) => (/^\d{1,15}$/.test(value) ? undefined : "must be an integer");

export function between(low: number, high: number): Rule {
  return (value) =>
    wholeNumber(value) ?? (Number(value) < low || Number(value) > high ? `must be from ${low} to ${high}` : undefined);
}

export function oneOf(...values: readonly string[]): Rule {
  return (value) => (values.includes(value) ? undefined : `must be one of [${values.join(", ")}]`);
}

export function listOf(values: readonly string[]): Rule {
  return (value) => {
    const wrong = value.split(",").find((item) => !values.includes(item));
    return wrong === undefined ? undefined : `"${wrong}" is not one of [${values.join(", ")}]`;
  };
}

export const flag = oneOf("true", "false");
export const numericFlag = oneOf("0", "1");
export const anyText: Rule = () => undefined;

const MOST_IDS = 100;
const MOST_CUSTOM_FIELDS = 15;

export const idList: Rule = (value) => {
  const ids = value.split(",");
  if (ids.length > MOST_IDS) return `must hold at most ${MOST_IDS} ids`;
  return ids.every((id) => wholeNumber(id) === undefined) ? undefined : "must be a comma separated list of integers";
};

export const fieldCodeList: Rule = (value) =>
  value.split(",").length > MOST_CUSTOM_FIELDS ? `must hold at most ${MOST_CUSTOM_FIELDS} field codes` : undefined;

/** A fraction of a second is refused, which catches every client that sends toISOString() as it is. */
export const timeStamp: Rule = (value) =>
  /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([Zz]|[+-]\d\d:\d\d)$/.test(value) && !Number.isNaN(Date.parse(value))
    ? undefined
    : "must be in RFC3339 format";

export const day: Rule = (value) =>
  /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)) ? undefined : "must be in YYYY-MM-DD format";

/** In the form in which records hold their times, so that the two compare as text. */
export function asStored(timeStampValue: string): string {
  return new Date(timeStampValue).toISOString().replace(".000Z", "Z");
}

export const PAGE_DEFAULT = 100;
const PAGE_MOST = 500;
export const pageLimit = between(1, PAGE_MOST);
