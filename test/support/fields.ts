import type { Simulator } from "../../simulator";
import type { ActorClaims } from "./actors";
import type { Service } from "./service";
import { dataOf, type Refusal } from "./stories";

export const ENTITIES = ["DEAL", "PERSON", "ORGANIZATION"] as const;
export type Entity = (typeof ENTITIES)[number];

const kind = (entity: Entity) => entity.toLowerCase() as "deal" | "person" | "organization";
export const listPath = (entity: Entity) => `/api/v2/${kind(entity)}Fields`;

/** The entity's fields as the simulated company has them. */
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
