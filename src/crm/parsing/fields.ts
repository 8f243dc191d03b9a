import { z } from "zod";
import { allCustomFields, id, optionalFlag, optionalInstant, storableText } from "./values";

/** The three kinds of records that have custom fields which this service may write. */
const CRM_ENTITIES = ["DEAL", "PERSON", "ORGANIZATION"] as const;
export type CrmEntity = (typeof CRM_ENTITIES)[number];

export interface CrmRecordRef {
  entity: CrmEntity;
  id: number;
}

/** Custom field types whose values can be written (wire facts 7.2); others, formulas for one, only the CRM fills. */
const WRITABLE_TYPES = [
  "varchar",
  "varchar_auto",
  "text",
  "phone",
  "double",
  "int",
  "monetary",
  "date",
  "daterange",
  "time",
  "timerange",
  "enum",
  "set",
  "user",
  "org",
  "people",
  "address",
] as const;
export type WritableType = (typeof WRITABLE_TYPES)[number];

export function isWritableType(type: string): type is WritableType {
  return WRITABLE_TYPES.some((known) => known === type);
}

declare const ofCustomField: unique symbol;
/** The code of a custom field. No standard field has one like it, so that a write cannot name a standard field. */
export type CustomFieldKey = string & { readonly [ofCustomField]: true };

const CUSTOM_FIELD_KEY = /^[0-9a-f]{40}$/i;

export function isCustomFieldKey(key: string): key is CustomFieldKey {
  return CUSTOM_FIELD_KEY.test(key);
}

interface CustomFieldValue {
  key: CustomFieldKey;
  /** As the wire has it; null clears the field. */
  value: unknown;
}

/** At least one: an empty `custom_fields` is reported to clear every custom field of a record (wire fact 7.3). */
export type CustomFieldValues = readonly [CustomFieldValue, ...CustomFieldValue[]];

export interface CrmFieldOption {
  id: number | string;
  label: string;
}

/** Free of what jsonb refuses. */
const label = storableText.transform((value) => value.replace(/\p{Surrogate}/gu, "\ufffd"));

/** Choices of a field. Of a list that is longer none is known, so none can be written. */
const MAX_OPTIONS = 10_000;

const options = z
  .array(z.object({ id: z.union([z.number(), label.pipe(z.string().min(1))]), label }))
  .max(MAX_OPTIONS)
  .nullish()
  .catch(null)
  .transform((list): CrmFieldOption[] => list ?? []);

/** A field of an entity. Only its code must be readable: types and options are an open list on the wire. */
export const fieldRecord = z
  .object({
    field_code: storableText.pipe(z.string().min(1)),
    field_name: storableText,
    field_type: storableText,
    is_custom_field: optionalFlag,
    // One report alone tells of it (wire fact 7.3): what makes no sense must not cost the whole list.
    is_writable: optionalFlag.catch(null),
    options,
  })
  .transform((field) => {
    const key = field.field_code;
    const custom = field.is_custom_field === true && isCustomFieldKey(key);
    return {
      key,
      name: field.field_name,
      type: field.field_type,
      custom,
      writable: custom && isWritableType(field.field_type) && field.is_writable !== false,
      options: field.options,
    };
  });
export type CrmField = z.output<typeof fieldRecord>;

/** A record's custom fields as they are in the CRM now: the answer to a write, and to a look at one record. */
export const customFieldsRecord = z
  .object({ id, update_time: optionalInstant, custom_fields: allCustomFields, is_deleted: optionalFlag })
  .transform(({ id, update_time: updateTime, custom_fields: customFields, is_deleted }) => ({
    ...{ id, updateTime, customFields },
    // One alone is shown for as long as it is in the bin (wire fact 5).
    deleted: is_deleted === true,
  }));
export type CrmCustomFields = z.output<typeof customFieldsRecord>;
