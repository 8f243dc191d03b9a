import type { Entity, RecordOf } from "../model/records";
import type { SortKey } from "../model/views";
import type { World } from "./operation";
import {
  anyText,
  asStored,
  fieldCodeList,
  flag,
  idList,
  listOf,
  type Query,
  type Rules,
  timeStamp,
  wholeNumber,
} from "./query";
import { type Listing, purgeLimit } from "./v2-list";

const times: readonly SortKey[] = ["id", "update_time", "add_time"];
const updateRules: Rules = { filter_id: wholeNumber, ids: idList, updated_since: timeStamp, updated_until: timeStamp };
const labelRules: Rules = { include_option_labels: flag, include_labels: flag };

const activityCounts = [
  "next_activity_id",
  "last_activity_id",
  "activities_count",
  "done_activities_count",
  "undone_activities_count",
];
const otherCounts = ["files_count", "notes_count", "followers_count", "email_messages_count", "smart_bcc_email"];
const mailTimes = ["last_incoming_mail_time", "last_outgoing_mail_time"];
const dealCounts = [
  "open",
  "related_open",
  "closed",
  "related_closed",
  "won",
  "related_won",
  "lost",
  "related_lost",
].map((state) => `${state}_deals_count`);
const participantCounts = ["participant_open_deals_count", "participant_closed_deals_count"];

const includable = {
  deal: [
    ...activityCounts,
    ...otherCounts,
    ...mailTimes,
    "first_won_time",
    "products_count",
    "participants_count",
    "source_lead_id",
  ],
  person: [
    ...activityCounts,
    ...otherCounts,
    ...mailTimes,
    ...dealCounts,
    ...participantCounts,
    "marketing_status",
    "doi_status",
  ],
  organization: [...activityCounts, ...otherCounts, ...dealCounts, "people_count"],
};

const dealRules: Rules = {
  ...updateRules,
  owner_id: wholeNumber,
  person_id: wholeNumber,
  org_id: wholeNumber,
  pipeline_id: wholeNumber,
  stage_id: wholeNumber,
  status: listOf(["open", "won", "lost", "deleted"]),
};

export const deals: Listing<"deal"> = {
  entity: "deal",
  path: "/api/v2/deals",
  cost: 10,
  sorts: times,
  rules: dealRules,
  viewRules: { include_fields: listOf(includable.deal), custom_fields: fieldCodeList, ...labelRules },
  keep: (query, world) => {
    const wanted = dealKeep(query, world);
    return (deal) => !deal.is_archived && wanted(deal);
  },
  text: (deal, view, world) => world.texts.deal(deal, view),
};

export const archivedDeals: Listing<"deal"> = {
  ...deals,
  path: "/api/v2/deals/archived",
  cost: 20,
  viewRules: { include_fields: listOf(includable.deal), custom_fields: fieldCodeList },
  keep: (query, world) => {
    const wanted = dealKeep(query, world);
    return (deal) => deal.is_archived && wanted(deal);
  },
};

function dealKeep(query: Query, world: World): (deal: RecordOf["deal"]) => boolean {
  const statuses = new Set(query.status === undefined ? ["open", "won", "lost"] : query.status.split(","));
  if (query.ids !== undefined && world.rules.deletedByIds === "shows") statuses.add("deleted");
  const purged = purgeLimit(world);
  const matches = filters<"deal">(query, ["owner_id", "person_id", "org_id", "pipeline_id", "stage_id"]);
  return (deal) => statuses.has(deal.status) && !(deal.is_deleted && deal.update_time < purged) && matches(deal);
}

export const persons: Listing<"person"> = {
  entity: "person",
  path: "/api/v2/persons",
  cost: 10,
  sorts: times,
  rules: { ...updateRules, owner_id: wholeNumber, org_id: wholeNumber, deal_id: wholeNumber },
  viewRules: { include_fields: listOf(includable.person), custom_fields: fieldCodeList, ...labelRules },
  keep: (query, { company }) => {
    const matches = filters<"person">(query, ["owner_id", "org_id"]);
    const links = query.deal_id === undefined ? null : (company.participants.get(Number(query.deal_id)) ?? []);
    const onDeal = links && new Set(links.map((link) => link.personId));
    return (person) => !person.is_deleted && (onDeal === null || onDeal.has(person.id)) && matches(person);
  },
  text: (person, view, world) => world.texts.person(person, view),
};

export const organizations: Listing<"organization"> = {
  entity: "organization",
  path: "/api/v2/organizations",
  cost: 10,
  sorts: times,
  rules: { ...updateRules, owner_id: wholeNumber },
  viewRules: { include_fields: listOf(includable.organization), custom_fields: fieldCodeList, ...labelRules },
  keep: (query) => {
    const matches = filters<"organization">(query, ["owner_id"]);
    return (organization) => !organization.is_deleted && matches(organization);
  },
  text: (organization, view, world) => world.texts.organization(organization, view),
};

export const activities: Listing<"activity"> = {
  entity: "activity",
  path: "/api/v2/activities",
  cost: 10,
  sorts: [...times, "due_date"],
  rules: {
    ...updateRules,
    owner_id: wholeNumber,
    deal_id: wholeNumber,
    lead_id: anyText,
    person_id: wholeNumber,
    org_id: wholeNumber,
    done: flag,
  },
  viewRules: { include_fields: listOf(["attendees"]) },
  keep: (query) => {
    const matches = filters<"activity">(query, ["owner_id", "deal_id", "person_id", "org_id", "lead_id"]);
    const done = query.done === undefined ? null : query.done === "true";
    return (activity) => !activity.is_deleted && (done === null || activity.done === done) && matches(activity);
  },
  text: (activity, view, world) => world.texts.activity(activity, view),
};

export const pipelines: Listing<"pipeline"> = {
  entity: "pipeline",
  path: "/api/v2/pipelines",
  cost: 5,
  sorts: times,
  rules: {},
  viewRules: {},
  keep: () => (pipeline) => !pipeline.is_deleted,
  text: (pipeline) => JSON.stringify(pipeline),
};

export const stages: Listing<"stage"> = {
  entity: "stage",
  path: "/api/v2/stages",
  cost: 5,
  sorts: [...times, "order_nr"],
  rules: { pipeline_id: wholeNumber },
  viewRules: {},
  keep: (query) => {
    const matches = filters<"stage">(query, ["pipeline_id"]);
    return (stage) => !stage.is_deleted && matches(stage);
  },
  text: (stage) => JSON.stringify(stage),
};

/** `ids`, the time window and the plain equalities; each only where the request names it. */
function filters<E extends Exclude<Entity, "user">>(query: Query, equal: readonly (keyof RecordOf[E] & string)[]) {
  const tests: ((record: RecordOf[E]) => boolean)[] = [];
  if (query.ids !== undefined) {
    const ids = new Set(query.ids.split(",").map(Number));
    tests.push((record) => ids.has(record.id));
  }
  if (query.updated_since !== undefined) {
    const since = asStored(query.updated_since);
    tests.push((record) => (record.update_time ?? record.add_time) >= since);
  }
  if (query.updated_until !== undefined) {
    const until = asStored(query.updated_until);
    tests.push((record) => (record.update_time ?? record.add_time) < until);
  }
  for (const name of equal) {
    const wanted = query[name];
    if (wanted !== undefined) tests.push((record) => String(record[name]) === wanted);
  }
  return (record: RecordOf[E]) => tests.every((test) => test(record));
}
