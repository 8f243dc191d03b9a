import { hasOptions, idsIn } from "../connections/field-lists";
import { MAX_TEXT } from "../crm/parsing/values";
import type { CopyScope } from "../database/database";
import type { MatchedEntity } from "../entities/meeting";
import { cutText } from "../platform/safe-html";
import { ALONE, inSlice } from "../platform/work";

/** A custom field of a record, as it is shown to people. */
export interface ShownField {
  key: string;
  name: string;
  type: string;
  value: unknown;
  text: string | null;
  missingOptionIds: string[];
}

/** Of a record, in the order of the CRM's list: more than any plan of the CRM has. */
const MOST_FIELDS = 500;
/** The type of a field that the CRM's list, as last read, does not have. */
const UNKNOWN = "unknown";

type Values = Readonly<Record<string, unknown>>;

/** What a field's value refers to. */
type Reference = "user" | "people" | "org";
const isReference = (type: string): type is Reference => type === "user" || type === "people" || type === "org";

/** The names of the users, and of the matched persons and organizations, with these ids. */
export type ReadNames = (kind: Reference, ids: readonly number[]) => Promise<{ crmId: number; name: string }[]>;

interface ListedField {
  key: string;
  name: string;
  type: string;
  /** Labels by id, of the options that are asked for. */
  options: ReadonlyMap<string, string>;
}

const NOTHING: ReadonlyMap<string, string> = new Map();

const isOneValue = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number";
const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isEmpty = (value: unknown) =>
  value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);

/** One value, or that in a member of it, as text; "" for anything else: what is deeper is in the raw value. */
const wordOf = (value: unknown, member = "value"): string => {
  const one = isObject(value) ? value[member] : value;
  return isOneValue(one) || typeof one === "boolean" ? String(one) : "";
};

const joined = (parts: readonly string[], by: string) => parts.filter((part) => part !== "").join(by);
const range = (value: unknown, part: (word: string) => string = String) =>
  joined([part(wordOf(value)), isObject(value) ? part(wordOf(value, "until")) : ""], " – ");
const minutes = (clock: string) => clock.replace(/^(\d{1,2}:\d{2}):00$/, "$1");
const zone = (value: unknown) => {
  const name = isObject(value) ? wordOf(value, "timezone_name") : "";
  return name && `(${name})`;
};

/** How values of a type are said to people; options and references have their own way, all others are said as they are. */
const WORDS = new Map<string, (value: unknown) => string>([
  ["monetary", (value) => joined([wordOf(value), isObject(value) ? wordOf(value, "currency") : ""], " ")],
  ["daterange", (value) => range(value)],
  ["time", (value) => joined([range(value, minutes), zone(value)], " ")],
  ["timerange", (value) => joined([range(value, minutes), zone(value)], " ")],
  ["address", (value) => wordOf(value, "formatted_address") || wordOf(value)],
]);

/** What the words of a field hang on besides its value. */
export interface Known {
  /** Labels by id. */
  options: ReadonlyMap<string, string>;
  /** By id; what is not in it is shown by its id. */
  names: ReadonlyMap<string, string>;
}

/** A value for people, and the ids of options that the list, as last read, does not have: they may be newer, or gone. */
export function wordsOf(
  type: string,
  value: unknown,
  { options, names }: Known,
): Pick<ShownField, "text" | "missingOptionIds"> {
  if (isEmpty(value)) return { text: null, missingOptionIds: [] };
  const said = (text: string) => cutText(text, MAX_TEXT) || null;
  if (isReference(type)) {
    return {
      text: said(
        joined(
          idsIn(value).map((id) => names.get(id) ?? id),
          ", ",
        ),
      ),
      missingOptionIds: [],
    };
  }
  if (!hasOptions(type)) return { text: said((WORDS.get(type) ?? wordOf)(value)), missingOptionIds: [] };
  const ids = idsIn(value);
  const labels = ids.map((id) => options.get(id) ?? `${id} (unknown option)`);
  return { text: said(labels.join(", ")), missingOptionIds: ids.filter((id) => !options.has(id)) };
}

/** The fields of an entity as the CRM's list was last read, with the labels of these options. */
async function readListed(
  { tenantId, copyId, rows }: CopyScope,
  entity: MatchedEntity,
  optionIds: readonly string[],
): Promise<ListedField[]> {
  const found = await rows<Omit<ListedField, "options"> & { options: Record<string, string> }>(
    `SELECT f.key, f.name, f.type, (
       SELECT coalesce(jsonb_object_agg(o.id, o.label), '{}') FROM jsonb_each(f.options) AS o (id, label) WHERE o.id = ANY ($4::text[])
     ) AS options
     FROM crm_field f WHERE f.tenant_id = $1 AND f.copy_id = $2 AND f.entity = $3 ORDER BY f.position LIMIT ${MOST_FIELDS}`,
    [tenantId, copyId, entity, optionIds],
    { key: "text", name: "text", type: "text", options: "json" },
  );
  return found.map((field) => ({ ...field, options: new Map(Object.entries(field.options)) }));
}

/** All listed fields, and what a record has of others. */
function fieldsOf(values: Values, listed: readonly ListedField[]): ListedField[] {
  const known = new Set(listed.map(({ key }) => key));
  const others = Object.entries(values).filter(([key, value]) => !known.has(key) && !isEmpty(value));
  const unlisted = others.map(([key]) => ({ key, name: key, type: UNKNOWN, options: NOTHING }));
  return [...listed, ...unlisted].slice(0, MOST_FIELDS);
}

/** The ids that values of a type of reference name. */
function referred(records: readonly Values[], listed: readonly ListedField[], kind: Reference): number[] {
  const keys = listed.filter(({ type }) => type === kind).map(({ key }) => key);
  const ids = records.flatMap((values) => keys.flatMap((key) => idsIn(values[key]))).map(Number);
  return [...new Set(ids.filter(Number.isSafeInteger))];
}

/** Of some hundred fields each: less than a millisecond. */
const RECORDS_A_TURN = 5;
/** The CRM's ids of options are numbers, a few standard fields' are words. */
const LONGEST_OPTION_ID = 40;
const isShort = (id: string) => id.length <= LONGEST_OPTION_ID;

/** The custom fields of records of one kind, in words: one read of the fields, and one of each kind of names. */
export async function readFields(
  copy: CopyScope,
  entity: MatchedEntity,
  records: readonly Values[],
  readNames: ReadNames,
): Promise<ShownField[][]> {
  // Any value may be an option's id: which fields have options is known afterwards.
  const optionIds = new Set(records.flatMap((values) => Object.values(values).flatMap(idsIn)).filter(isShort));
  const listed = await readListed(copy, entity, [...optionIds]);
  const namesOf = async (kind: Reference) => {
    const ids = referred(records, listed, kind);
    const found = ids.length > 0 ? await readNames(kind, ids) : [];
    return new Map(found.map(({ crmId, name }) => [String(crmId), name]));
  };
  const [user, people, org] = await Promise.all([namesOf("user"), namesOf("people"), namesOf("org")]);
  const names = { user, people, org };
  const shown: ShownField[][] = [];
  for (const values of records) {
    await inSlice(ALONE / RECORDS_A_TURN, () => {
      shown.push(
        fieldsOf(values, listed).map(({ key, name, type, options }) => {
          const value = values[key] ?? null;
          const known = { options, names: isReference(type) ? names[type] : NOTHING };
          return { key, name, type, value, ...wordsOf(type, value, known) };
        }),
      );
    });
  }
  return shown;
}
