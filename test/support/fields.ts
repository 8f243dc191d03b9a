import type { Simulator } from "../../simulator";
import type { ActorClaims } from "./actors";
import type { TestDatabase } from "./database";
import type { Service } from "./service";
import { dataOf, type Refusal } from "./stories";

export const ENTITIES = ["DEAL", "PERSON", "ORGANIZATION"] as const;
export type Entity = (typeof ENTITIES)[number];

const kind = (entity: Entity) => entity.toLowerCase() as "deal" | "person" | "organization";
export const listPath = (entity: Entity) => `/api/v2/${kind(entity)}Fields`;

/** The entity's fields as the simulated company has them. */
/** What was read of the CRM's lists is by now too old to go by. */
export const listsAreOld = (database: Pick<TestDatabase, "query">) =>
  database.query("UPDATE field_mapping SET checked_at = '2020-01-01'");

export const fieldsIn = (simulator: Simulator, entity: Entity) => simulator.company.fields[kind(entity)];

export function fieldOf(simulator: Simulator, entity: Entity, type: string) {
  const field = fieldsIn(simulator, entity).find((one) => one.is_custom_field && one.field_type === type);
  if (!field) throw new Error(`the company has no custom field of type ${type}`);
  return field;
}

/** From now on the CRM shows this list in place of its own. */
export function showFields(simulator: Simulator, entity: Entity, data: readonly object[]): () => void {
  const body = { success: true, data, additional_data: { next_cursor: null } };
  return simulator.control.fail({ match: listPath(entity), with: { status: 200, body } });
}

export interface Mapping {
  entity: string;
  fieldKey: string;
  fieldName: string | null;
  fieldType: string | null;
  health: string;
  checkedAt: string;
}
export type MappingAnswer = Partial<Refusal> & { mappings?: Mapping[] };

const MAPPING = "mappings { entity fieldKey fieldName fieldType health checkedAt }";
const SET = `mutation ($input: FieldMappingInput!) { setFieldMapping(input: $input) {
  ... on FieldMappingSuccess { ${MAPPING} } ... on Refusal { code message field } } }`;
const CLEAR = `mutation ($entity: CrmEntity!) { clearFieldMapping(entity: $entity) {
  ... on FieldMappingSuccess { ${MAPPING} } ... on Refusal { code message field } } }`;

export async function setMapping(
  service: Service,
  entity: Entity,
  fieldKey: string,
  as?: ActorClaims,
): Promise<MappingAnswer> {
  const answer = await service.ask<{ setFieldMapping: MappingAnswer }>(SET, { input: { entity, fieldKey } }, as);
  return dataOf(answer).setFieldMapping;
}

export async function clearMapping(service: Service, entity: Entity, as?: ActorClaims): Promise<MappingAnswer> {
  return dataOf(await service.ask<{ clearFieldMapping: MappingAnswer }>(CLEAR, { entity }, as)).clearFieldMapping;
}

export async function mappingsOf(service: Service, as?: ActorClaims): Promise<Mapping[]> {
  const query = `{ connection { fieldMappings { entity fieldKey fieldName fieldType health checkedAt } } }`;
  return dataOf(await service.ask<{ connection: { fieldMappings: Mapping[] } }>(query, {}, as)).connection
    .fieldMappings;
}

export const recordPath = (entity: Entity, id: number) => `/api/v2/${kind(entity)}s/${id}`;

/** The value that the CRM holds now. */
export const heldIn = (simulator: Simulator, entity: Entity, id: number, key: string): unknown =>
  simulator.control.fieldsOf(kind(entity), id)[key] ?? null;

export interface FieldValue {
  entity: Entity;
  targetId?: string;
  value: unknown;
}
export interface WrittenField {
  id: string;
  entity: Entity;
  fieldKey: string;
  state: "WRITTEN" | "FAILED" | "UNKNOWN";
  error: { code: string; message: string } | null;
  requestedBy: string;
  target: { id: string } | null;
}
export type FieldsAnswer = Partial<Refusal> & { writes?: WrittenField[]; allWritten?: boolean };

const WRITE = `mutation ($input: WriteFieldsInput!) { writeFields(input: $input) {
  ... on WriteFieldsReport { allWritten writes {
    id entity fieldKey state error { code message } requestedBy target { id } meeting { id } } }
  ... on Refusal { code message field } } }`;

let keys = 0;

export async function writeFields(
  service: Service,
  meetingId: string,
  values: FieldValue[],
  { as, idempotencyKey }: { as?: ActorClaims; idempotencyKey?: string } = {},
): Promise<FieldsAnswer> {
  keys += 1;
  const input = { meetingId, values, idempotencyKey: idempotencyKey ?? `fields-${keys}` };
  return dataOf(await service.ask<{ writeFields: FieldsAnswer }>(WRITE, { input }, as)).writeFields;
}

/** What reached the CRM as a write of fields. */
export const patches = (simulator: Simulator) => simulator.log.of("PATCH", "/api/v2/");
