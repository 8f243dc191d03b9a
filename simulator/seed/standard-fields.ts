import type { Field, FieldEntity, FieldType } from "../model/fields";

type Line = readonly [code: string, name: string, type: FieldType];

const common: readonly Line[] = [
  ["id", "ID", "int"],
  ["owner_id", "Owner", "user"],
  ["add_time", "Created", "date"],
  ["update_time", "Updated", "date"],
  ["visible_to", "Visible to", "visible_to"],
  ["label_ids", "Label", "set"],
];

const lines: Readonly<Record<FieldEntity, readonly Line[]>> = {
  deal: [
    ["title", "Title", "varchar"],
    ["value", "Value", "monetary"],
    ["person_id", "Contact person", "people"],
    ["org_id", "Organization", "org"],
    ["pipeline_id", "Pipeline", "double"],
    ["stage_id", "Stage", "stage"],
    ["status", "Status", "status"],
    ["probability", "Probability", "int"],
    ["expected_close_date", "Expected close date", "date"],
    ["lost_reason", "Lost reason", "varchar_options"],
    ["stage_change_time", "Last stage change", "date"],
  ],
  person: [
    ["name", "Name", "varchar"],
    ["emails", "Email", "varchar"],
    ["phones", "Phone", "phone"],
    ["org_id", "Organization", "org"],
    ["job_title", "Job title", "varchar"],
    ["birthday", "Birthday", "date"],
  ],
  organization: [
    ["name", "Name", "varchar"],
    ["address", "Address", "address"],
    ["website", "Website", "varchar"],
    ["linkedin", "LinkedIn profile", "varchar"],
    ["industry", "Industry", "enum"],
    ["employee_count", "Number of employees", "int"],
    ["annual_revenue", "Annual revenue", "double"],
  ],
};

/** Fields that records carry only when include_fields asks for them. */
const optional: Readonly<Record<FieldEntity, readonly Line[]>> = {
  deal: [
    ["last_incoming_mail_time", "Last email received", "date"],
    ["last_outgoing_mail_time", "Last email sent", "date"],
  ],
  person: [
    ["last_incoming_mail_time", "Last email received", "date"],
    ["last_outgoing_mail_time", "Last email sent", "date"],
  ],
  organization: [["people_count", "People", "int"]],
};

export function standardFieldsOf(entity: FieldEntity): Field[] {
  return [
    ...[...common, ...lines[entity]].map((line) => standardField(line, false)),
    ...optional[entity].map((line) => standardField(line, true)),
  ];
}

function standardField([code, name, type]: Line, isOptional: boolean): Field {
  return {
    field_name: name,
    field_code: code,
    field_type: type,
    options: type === "enum" || type === "set" ? [{ id: 1, label: "Default", color: "green" }] : null,
    subfields:
      type === "monetary"
        ? [
            { field_code: "value", field_name: `Amount of ${name}`, field_type: "double" },
            { field_code: "currency", field_name: `Currency of ${name}`, field_type: "varchar" },
          ]
        : null,
    is_custom_field: false,
    is_optional_response_field: isOptional,
  };
}
