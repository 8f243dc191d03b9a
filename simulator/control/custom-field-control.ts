import { createHash } from "node:crypto";
import type { World } from "../api/operation";
import { recordsOf } from "../model/company";
import type { Field, FieldEntity, FieldType } from "../model/fields";
import type { CustomFields } from "../model/records";
import { emptyFields, optionsOf, subfieldsOf } from "../seed/custom-fields";

export interface NewCustomField {
  name: string;
  type: FieldType;
  /** For enum and set. Their ids are in the field list. */
  options?: readonly string[];
  isWritable?: boolean;
}

export interface FieldWords {
  name?: string;
  options?: readonly { id: number; label: string }[];
  isWritable?: boolean;
}

/** What an admin of the CRM does to its custom fields. No record's update time moves. */
export class CustomFieldControl {
  private made = 0;

  constructor(private readonly world: World) {}

  /** Returns the field's code; every record has the field, unset. */
  add(entity: FieldEntity, { name, type, options, isWritable }: NewCustomField): string {
    const { fields } = this.world.company;
    const code = createHash("sha1")
      .update(`added/${entity}/${this.made++}`)
      .digest("hex");
    const field: Field = {
      field_name: name,
      field_code: code,
      field_type: type,
      options: optionsOf(type, fields[entity].length, options),
      subfields: subfieldsOf(type, code, name),
      is_custom_field: true,
      is_optional_response_field: false,
      is_writable: isWritable,
    };
    fields[entity] = [...fields[entity], field];
    this.reshape(entity, (values) => ({ ...values, [code]: null }));
    return code;
  }

  /** The field vanishes from the list and from every record. */
  remove(entity: FieldEntity, code: string): void {
    const { fields } = this.world.company;
    this.field(entity, code);
    fields[entity] = fields[entity].filter((field) => field.field_code !== code);
    this.reshape(entity, ({ [code]: _removed, ...rest }) => rest);
  }

  /** Another name or other options, or another is to fill it; no value changes, also where it is none of the options any more. */
  describe(entity: FieldEntity, code: string, words: FieldWords): void {
    const { fields } = this.world.company;
    const old = this.field(entity, code);
    const changed: Field = {
      ...old,
      field_name: words.name ?? old.field_name,
      options: words.options?.map(({ id, label }) => ({ id, label, color: null })) ?? old.options,
      is_writable: words.isWritable ?? old.is_writable,
    };
    fields[entity] = fields[entity].map((field) => (field === old ? changed : field));
  }

  /** As if the field had been made anew under its old code: every record's value is gone. */
  changeType(entity: FieldEntity, code: string, type: FieldType, options?: readonly string[]): void {
    const { fields } = this.world.company;
    const old = this.field(entity, code);
    const changed: Field = {
      ...old,
      field_type: type,
      options: optionsOf(type, fields[entity].indexOf(old), options),
      subfields: subfieldsOf(type, code, old.field_name),
    };
    fields[entity] = fields[entity].map((field) => (field === old ? changed : field));
    this.reshape(entity, (values) => ({ ...values, [code]: null }));
  }

  private field(entity: FieldEntity, code: string): Field {
    const field = this.world.company.fields[entity].find((one) => one.is_custom_field && one.field_code === code);
    if (!field) throw new RangeError(`there is no custom ${entity} field ${code}`);
    return field;
  }

  private reshape(entity: FieldEntity, change: (values: CustomFields) => CustomFields): void {
    const { company } = this.world;
    const before = company.emptyCustomFields[entity];
    const empty = emptyFields(company.fields[entity]);
    company.emptyCustomFields[entity] = empty;
    for (const record of recordsOf(company, entity).values()) {
      const values = record.custom_fields;
      record.custom_fields = values === before || values === null ? empty : change(values);
    }
    // Custom fields are no part of the texts that are kept of a record: nothing else is stale.
  }
}
