import type { GraphQLSchema } from "graphql";
import { nodeTypes } from "./schema-walk";
import { OTHER, type Tenants } from "./tenants";

/** What an operation is asked with: `id` at the place that is tried, what is the asking tenant's own at the others. */
type Arguments = (id: string, own: { meeting: string; deal: string }) => Record<string, unknown>;

/** A place that takes a global id of one type. */
export interface IdRow {
  kind: "id";
  type: string;
  args: Arguments;
  /** With the own id it takes away what other rows ask about, so that one is not tried. */
  takesAway?: boolean;
}

/** A place that takes a cursor of the operation's list. */
export interface CursorRow {
  kind: "cursor";
}

/** A place that takes a text by which a tenant names its own things: what another tenant has named so is not found. */
export interface NameRow {
  kind: "name";
  args(name: string, own: { meeting: string; deal: string }): Record<string, unknown>;
  taken(tenants: Tenants): string;
  /** Whether to use it makes something new of the asking tenant's, where the others answer that nothing is there. */
  creates: boolean;
}

/** A place that names nothing of any tenant. */
interface ValueRow {
  kind: "value";
}

/** The operation itself, with arguments that are the asking tenant's own. */
export interface OperationRow {
  kind: "operation";
  args: Arguments;
}

export type Row = IdRow | CursorRow | NameRow | ValueRow | OperationRow;

const VALUE: ValueRow = { kind: "value" };
const CURSOR: CursorRow = { kind: "cursor" };
const id = (type: string, args: Arguments): IdRow => ({ kind: "id", type, args });
const takesAway = (type: string, args: Arguments): IdRow => ({ kind: "id", type, args, takesAway: true });
const asks = (args: Arguments = () => ({})): OperationRow => ({ kind: "operation", args });

let keys = 0;
const freshKey = () => `matrix-${++keys}`;
const note = (meetingId: string, targetId?: string, idempotencyKey = freshKey()) => ({
  input: { meetingId, ...(targetId === undefined ? {} : { targetId }), content: "of acme", idempotencyKey },
});
const values = (meetingId: string, targetId?: string, idempotencyKey = freshKey()) => ({
  input: {
    meetingId,
    idempotencyKey,
    values: [{ entity: "DEAL", value: "of acme", ...(targetId === undefined ? {} : { targetId }) }],
  },
});
const meeting = (externalId: string) => ({
  input: {
    externalId,
    title: "Matrix",
    startsAt: "2026-01-05T09:00:00Z",
    ownerEmail: "anna@seller.example",
    attendees: [{ email: "nobody@unknown.example" }],
  },
});

/** A row for each operation, argument and input field of the schema. What is missing here fails the test. */
export function tenancyRows(schema: GraphQLSchema): Map<string, Row[]> {
  return new Map(Object.entries({ ...QUERIES, ...MUTATIONS, ...SUBSCRIPTIONS, ...nodes(schema) }));
}

const nodes = (schema: GraphQLSchema): Record<string, Row[]> => ({
  "Query.node": [VALUE],
  "Query.node(id)": nodeTypes(schema).map((type) => id(type, (given) => ({ id: given }))),
});

const list = (name: string): Record<string, Row[]> => ({
  [`Query.${name}`]: [asks()],
  [`Query.${name}(first)`]: [VALUE],
  [`Query.${name}(after)`]: [CURSOR],
});

const record = (name: string, type: string): Record<string, Row[]> => ({
  [`Query.${name}`]: [VALUE],
  [`Query.${name}(id)`]: [id(type, (given) => ({ id: given }))],
});

const settings = (threshold?: object) => ({
  input: {
    businessDays: true,
    twoWayActivityTypes: ["demo"],
    timeZone: "UTC",
    thresholds: threshold ? [{ code: "GHOSTED", days: 5, ...threshold }] : [],
  },
});

const quietSettings = (operation: string): Record<string, Row[]> => ({
  [operation]: [asks(() => settings())],
  ...valuesOf(operation, ["businessDays", "twoWayActivityTypes", "timeZone", "thresholds.code", "thresholds.days"]),
  // A hash that is compared with that of the tenant's own settings.
  ...valuesOf(operation, ["version"]),
  [`${operation}(input.thresholds.pipelineId)`]: [id("Pipeline", (given) => settings({ pipelineId: given }))],
  [`${operation}(input.thresholds.stageId)`]: [id("Stage", (given) => settings({ stageId: given }))],
});

const QUERIES: Record<string, Row[]> = {
  "Query.viewer": [asks()],
  "Query.quietSettings": [asks()],
  ...quietSettings("Query.previewQuietSettings"),
  "Query.connection": [asks()],
  ...record("deal", "Deal"),
  ...record("person", "Person"),
  ...record("organization", "Organization"),
  ...record("meeting", "Meeting"),
  "Query.meeting(externalId)": [
    {
      kind: "name",
      creates: false,
      args: (name) => ({ externalId: name }),
      taken: ({ otherExternalId }) => otherExternalId,
    },
  ],
  "Query.briefing": [asks((_, own) => ({ meetingId: own.meeting }))],
  "Query.briefing(meetingId)": [id("Meeting", (given) => ({ meetingId: given }))],
  ...list("deals"),
  "Query.deals(filter.status)": [VALUE],
  "Query.deals(filter.verdict)": [VALUE],
  "Query.deals(filter.pipelineId)": [id("Pipeline", (given) => ({ filter: { pipelineId: given } }))],
  "Query.deals(filter.stageId)": [id("Stage", (given) => ({ filter: { stageId: given } }))],
  "Query.deals(filter.ownerId)": [id("CrmUser", (given) => ({ filter: { ownerId: given } }))],
  "Query.deals(filter.snoozed)": [VALUE],
  "Query.deals(filter.minValue)": [VALUE],
  "Query.deals(filter.currency)": [VALUE],
  "Query.meetings(filter.search)": [VALUE],
  "Query.deals(orderBy)": [VALUE],
  ...list("persons"),
  "Query.persons(email)": [VALUE],
  ...list("organizations"),
  ...list("meetings"),
  ...Object.fromEntries(
    ["from", "to", "status", "ownerEmail", "includeCancelled"].map((field) => [
      `Query.meetings(filter.${field})`,
      [VALUE],
    ]),
  ),
  "Query.meetings(orderBy)": [VALUE],
  ...list("syncRuns"),
  ...list("auditEvents"),
  ...list("crmWrites"),
  "Query.crmWrites(meetingId)": [id("Meeting", (given) => ({ meetingId: given }))],
  "Query.crmWrites(idempotencyKey)": [
    {
      kind: "name",
      creates: false,
      args: (name) => ({ idempotencyKey: name }),
      taken: ({ otherKey }) => otherKey,
    },
  ],
};

const TARGETS = ["Deal", "Person", "Organization"];

const MUTATIONS: Record<string, Row[]> = {
  "Mutation.recordMeeting": [asks(() => meeting("own"))],
  "Mutation.recordMeeting(input.externalId)": [
    {
      kind: "name",
      creates: true,
      args: (name) => meeting(name),
      taken: ({ otherExternalId }) => otherExternalId,
    },
  ],
  ...valuesOf("Mutation.recordMeeting", ["title", "startsAt", "endsAt", "ownerEmail"]),
  ...valuesOf("Mutation.recordMeeting", ["attendees.email", "attendees.name"]),
  "Mutation.recordMeetings": [asks(() => ({ inputs: [meeting("own").input] }))],
  "Mutation.recordMeetings(inputs.externalId)": [
    {
      kind: "name",
      creates: true,
      args: (name) => ({ inputs: [meeting(name).input] }),
      taken: ({ otherExternalId }) => otherExternalId,
    },
  ],
  ...valuesOf("Mutation.recordMeetings", ["title", "startsAt", "endsAt", "ownerEmail"], "inputs"),
  ...valuesOf("Mutation.recordMeetings", ["attendees.email", "attendees.name"], "inputs"),
  "Mutation.cancelMeeting": [VALUE],
  "Mutation.cancelMeeting(meetingId)": [takesAway("Meeting", (given) => ({ meetingId: given }))],
  "Mutation.deleteMeeting": [VALUE],
  "Mutation.deleteMeeting(meetingId)": [takesAway("Meeting", (given) => ({ meetingId: given }))],
  "Mutation.unchooseDeal": [VALUE],
  "Mutation.unchooseDeal(meetingId)": [id("Meeting", (given) => ({ meetingId: given }))],
  "Mutation.chooseDeal": [VALUE],
  "Mutation.chooseDeal(meetingId)": [id("Meeting", (given, own) => ({ meetingId: given, dealId: own.deal }))],
  "Mutation.chooseDeal(dealId)": [id("Deal", (given, own) => ({ meetingId: own.meeting, dealId: given }))],
  "Mutation.snoozeDeal": [VALUE],
  "Mutation.snoozeDeal(dealId)": [
    id("Deal", (given) => ({ dealId: given, until: "2026-01-05T09:00:00Z", reason: "Later." })),
  ],
  ...Object.fromEntries(["until", "reason"].map((name) => [`Mutation.snoozeDeal(${name})`, [VALUE]])),
  "Mutation.wakeDeal": [VALUE],
  "Mutation.wakeDeal(dealId)": [id("Deal", (given) => ({ dealId: given }))],
  "Mutation.startConnect": [asks()],
  "Mutation.connect": [asks(() => ({ input: { state: "never issued", code: "never issued" } }))],
  "Mutation.connect(input.code)": [VALUE],
  "Mutation.connect(input.error)": [VALUE],
  "Mutation.connect(input.state)": [
    {
      kind: "name",
      creates: false,
      args: (state) => ({ input: { state, code: "never issued" } }),
      taken: ({ otherState }) => otherState,
    },
  ],
  "Mutation.disconnect": [asks()],
  "Mutation.setFieldMapping": [asks(() => ({ input: { entity: "PERSON", fieldKey: "no such field" } }))],
  ...valuesOf("Mutation.setFieldMapping", ["entity", "fieldKey"]),
  ...quietSettings("Mutation.setQuietSettings"),
  "Mutation.clearFieldMapping": [asks(() => ({ entity: "PERSON" }))],
  "Mutation.clearFieldMapping(entity)": [VALUE],
  "Mutation.requestSync": [asks()],
  "Mutation.requestSync(kind)": [VALUE],
  "Mutation.writeNote": [asks((_, own) => note(own.meeting))],
  "Mutation.writeNote(input.meetingId)": [id("Meeting", (given) => note(given))],
  "Mutation.writeNote(input.targetId)": TARGETS.map((type) => id(type, (given, own) => note(own.meeting, given))),
  "Mutation.writeNote(input.content)": [VALUE],
  "Mutation.writeNote(input.idempotencyKey)": [
    {
      kind: "name",
      creates: true,
      args: (name, own) => note(own.meeting, undefined, name),
      taken: ({ otherKey }) => otherKey,
    },
  ],
  "Mutation.writeFields": [asks((_, own) => values(own.meeting))],
  "Mutation.writeFields(input.meetingId)": [id("Meeting", (given) => values(given))],
  "Mutation.writeFields(input.values.targetId)": [id("Deal", (given, own) => values(own.meeting, given))],
  ...valuesOf("Mutation.writeFields", ["values.entity", "values.value"]),
  "Mutation.writeFields(input.idempotencyKey)": [
    {
      kind: "name",
      creates: true,
      args: (name, own) => values(own.meeting, undefined, name),
      taken: ({ otherKey }) => otherKey.replace("-key", "-fields"),
    },
  ],
};

const SUBSCRIPTIONS: Record<string, Row[]> = {
  "Subscription.meetingMatched": [asks()],
  "Subscription.silenceChanged": [asks()],
  "Subscription.writeSettled": [asks()],
  "Subscription.connectionStatusChanged": [asks()],
  "Subscription.syncProgressed": [asks()],
};

interface TenantsEvent {
  query: string;
  channel: string;
  told(tenant: string): string | undefined;
  /** The one user whom it is told; nothing where everybody of the tenant hears it. */
  only?: string;
}

/** By channel what has happened to a tenant's own thing. With every edge, it may be more than an event may cost. */
export const eventsOf = (tenants: Tenants): ReadonlyMap<string, TenantsEvent> =>
  new Map<string, TenantsEvent>([
    [
      "meetingMatched",
      {
        query: "subscription { meetingMatched { __typename id title match { status deal { id title } } } }",
        channel: "meeting_matched",
        told: (tenant: string) => Buffer.from(tenants.meetingOf(tenant), "base64url").toString().split(":")[1],
      },
    ],
    [
      "silenceChanged",
      {
        query:
          "subscription { silenceChanged { __typename id title snooze { by } organization { id name } quiet { verdict } } }",
        channel: "silence_changed",
        // Both tenants have the same deal of one company.
        told: () => `${tenants.simulator.company.stories.singleDeal.dealId}:1`,
      },
    ],
    [
      "writeSettled",
      {
        query:
          "subscription { writeSettled { ... on NoteWrite { __typename id meeting { id title } target { id } } } }",
        channel: "write_settled",
        told: (tenant: string) => {
          const { NoteWrite = "" } = tenant === OTHER ? tenants.ids.foreign : tenants.ids.own;
          return Buffer.from(NoteWrite, "base64url").toString().split(":")[1];
        },
        only: "anna",
      },
    ],
  ]);

function valuesOf(root: string, fields: readonly string[], input = "input"): Record<string, Row[]> {
  return Object.fromEntries(fields.map((field) => [`${root}(${input}.${field})`, [VALUE]]));
}
