import type { CrmField as LiveField } from "../crm/parsing/fields";
import type { FieldMappingRow } from "../entities/field-mapping";
import { CrmField, FieldMapping } from "../schema/connection";

export const presentField = ({ key, name, type, custom, writable, options }: LiveField): CrmField =>
  Object.assign(new CrmField(), {
    ...{ key, name, type, custom, writable },
    options: options.map(({ id, label }) => ({ id: String(id), label })),
  });

/** @param connected whether the CRM can be asked now: of what nobody can look at, nothing is known */
export const presentFieldMapping = (row: FieldMappingRow, connected: boolean): FieldMapping =>
  Object.assign(new FieldMapping(), {
    entity: row.entity,
    fieldKey: row.fieldKey,
    fieldName: row.fieldName || null,
    fieldType: row.fieldType || null,
    health: connected ? row.health : "UNKNOWN",
    checkedAt: row.checkedAt,
  });
