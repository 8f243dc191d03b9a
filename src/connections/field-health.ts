import type { CrmField } from "../crm/parsing/fields";
import type { FieldMappingRow } from "../entities/field-mapping";

export type SeenField = Pick<FieldMappingRow, "fieldName" | "fieldType" | "options" | "health">;

/**
 * What a whole field list says of a nominated field. One that is missing keeps the name and type that it had when it
 * was last seen. A changed type stays reported until the field is nominated again.
 */
export function seenIn(
  mapping: Pick<FieldMappingRow, "fieldKey" | "nominatedType" | "fieldName" | "fieldType" | "options">,
  list: readonly CrmField[],
): SeenField {
  const field = list.find(({ key, custom }) => custom && key === mapping.fieldKey);
  if (!field) {
    const { fieldName, fieldType, options } = mapping;
    return { fieldName, fieldType, options, health: "MISSING_IN_CRM" };
  }
  const health = field.type === mapping.nominatedType ? "OK" : "TYPE_CHANGED";
  return { fieldName: field.name, fieldType: field.type, options: field.options, health };
}
