import type { Field, FieldEntity } from "../model/fields";
import { json, notFound } from "./answer";
import { cursorAt, placeOf } from "./cursor";
import type { Operation, World } from "./operation";
import { anyText, listOf, PAGE_DEFAULT, pageLimit, strictQuery } from "./query";

const includeRules = { include_fields: listOf(["ui_visibility", "important_fields", "required_fields"]) };
const sort = { field: "id", direction: "asc" } as const;

/** A list of fields and a single one, by field code. */
export function fieldOperations(entity: FieldEntity, world: World): Operation[] {
  const path = `/api/v2/${entity}Fields`;
  return [
    {
      path,
      cost: 10,
      answer: (call) => {
        const query = strictQuery(call.query, { ...includeRules, limit: pageLimit, cursor: anyText });
        const start = query.cursor === undefined ? 0 : placeOf(query.cursor, sort).id;
        const fields = world.company.fields[entity];
        const end = start + Math.min(Number(query.limit ?? PAGE_DEFAULT), world.rules.fieldsPerPage);
        const next = end < fields.length ? cursorAt({ value: end, id: end }, sort) : null;
        const data = fields.slice(start, end).map((field) => presented(entity, field, query.include_fields));
        return json(200, { success: true, data, additional_data: { next_cursor: next } });
      },
    },
    {
      path: `${path}/:code`,
      cost: 1,
      answer: (call) => {
        const query = strictQuery(call.query, includeRules);
        const field = world.company.fields[entity].find((candidate) => candidate.field_code === call.params.code);
        if (field === undefined) throw notFound("Field");
        return json(200, { success: true, data: presented(entity, field, query.include_fields) });
      },
    },
  ];
}

function presented(entity: FieldEntity, field: Field, include: string | undefined): object {
  const asked = new Set(include?.split(","));
  const flags = { add_visible_flag: !field.is_custom_field, details_visible_flag: true };
  return {
    ...field,
    // Only fields of deals have a description.
    ...(entity === "deal" ? { description: "" } : {}),
    ...(asked.has("ui_visibility") ? { ui_visibility: flags } : {}),
    ...(asked.has("important_fields") ? { important_fields: { enabled: false, stage_ids: [] } } : {}),
    ...(asked.has("required_fields") ? { required_fields: { enabled: false, stage_ids: [], statuses: {} } } : {}),
  };
}
