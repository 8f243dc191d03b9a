import { dealTimes } from "../model/deal-times";
import type { FieldEntity } from "../model/fields";
import type { CustomFields, CustomValue, Deal, RecordOf, User } from "../model/records";
import { plainView } from "../model/texts";
import { seconds, v2Time } from "../model/times";
import { inTheBin, invalid, invalidField, jsonText, notFound, refusedV1 } from "./answer";
import { customValue } from "./custom-value";
import type { Call, Operation, Twist, World } from "./operation";
import { strictQuery, wholeNumber } from "./query";
import { type Body, bodyOf, isObject } from "./request-body";
import { standardMembers } from "./standard-members";
import { isPurged, type Listing } from "./v2-list";

const COST = 5;

/** Keys that are not sent stay as they are; one bad key or value refuses the whole body. */
export function patchOperation<E extends FieldEntity>(listing: Listing<E>, name: string, world: World): Operation {
  const { entity } = listing;
  return {
    method: "PATCH",
    path: `${listing.path}/:id`,
    cost: COST,
    answer: (call) => {
      strictQuery(call.query, {});
      const body = bodyOf(call);
      checkMembers(entity, body);
      const record = writable(listing, name, world, call);
      const written = writtenFields(world, call.user, entity, body.custom_fields);
      if (call.twist?.kind !== "ignored") {
        apply(world, entity, record, body, twisted(written, call.twist));
      }
      return jsonText(`{"success":true,"data":${listing.text(record, plainView, world)}}`);
    },
  };
}

function checkMembers(entity: FieldEntity, body: Body): void {
  const members = standardMembers[entity];
  if (Object.keys(body).length === 0) throw invalid("the body must have at least one member");
  for (const [name, value] of Object.entries(body)) {
    if (name === "custom_fields") {
      if (!isObject(value)) throw invalid("custom_fields: must be an object");
    } else if (!(name in members)) {
      throw invalid(`${name}: "${name}" is not allowed`);
    } else if (members[name]?.(value) !== true) {
      throw invalid(`${name}: is not of the right type`);
    }
  }
}

function writable<E extends FieldEntity>({ entity }: Listing<E>, name: string, world: World, call: Call): RecordOf[E] {
  const id = call.params.id ?? "";
  const record = wholeNumber(id) === undefined ? world.views.find(call.user, entity, Number(id)) : undefined;
  if (record === undefined || isPurged(record, world)) throw notFound(name);
  if (record.is_deleted) throw inTheBin(name);
  if ("is_archived" in record && record.is_archived) throw refusedV1(400, "Archived deals cannot be changed");
  return record;
}

/** Null: nothing was sent. An empty object clears every custom field, which one report of the real CRM warns of. */
function writtenFields(world: World, user: User, entity: FieldEntity, sent: unknown): CustomFields | null {
  if (!isObject(sent)) return null;
  const codes = Object.keys(sent);
  if (codes.length === 0) return world.company.emptyCustomFields[entity];
  const written: Record<string, CustomValue> = {};
  for (const code of codes) {
    const field = world.company.fields[entity].find((one) => one.is_custom_field && one.field_code === code);
    if (!field) throw invalidField(code, "is not a custom field");
    if (field.is_writable === false) throw invalidField(code, "is filled by the CRM");
    const outcome = customValue(sent[code], { world, user, field });
    if ("problem" in outcome) throw invalidField(code, outcome.problem);
    written[code] = outcome.value;
  }
  return written;
}

function twisted(written: CustomFields | null, twist: Twist | undefined): CustomFields | null {
  if (twist?.kind !== "storedAs" || written === null) return written;
  return Object.fromEntries(Object.keys(written).map((code) => [code, twist.value]));
}

function apply<E extends FieldEntity>(
  world: World,
  entity: E,
  record: RecordOf[E],
  body: Body,
  written: CustomFields | null,
): void {
  const now = seconds(world.now());
  const { custom_fields: _sent, ...standard } = body;
  const times = entity === "deal" ? dealTimes(record as Deal, standard, now) : {};
  Object.assign(record, { update_time: v2Time(now) }, times, standard);
  if (written !== null) record.custom_fields = { ...record.custom_fields, ...written };
  world.changed(entity, record.id);
}
