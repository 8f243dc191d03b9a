import { type KnownFields, noteUnknownFields, readKnownFields } from "../connections/field-lists";
import type { KeepOut, KeptOut } from "../connections/keep-out";
import type { CrmApi, CrmPage, CrmPageRequest } from "../crm/api";
import type { CrmEntity } from "../crm/parsing/fields";
import type * as crm from "../crm/parsing/records";
import { type CopyScope } from "../database/database";
import { rowsOfEach } from "../database/rows";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import { DealRow } from "../entities/deal";
import { ActivityRow, NoteRow, OrganizationRow, PersonRow } from "../entities/records";
import type { SyncResource } from "../entities/sync-run";
import * as write from "./writers";

export type ListResource = Exclude<SyncResource, "DEAL_PARTICIPANTS">;

/** What pages start in other parts of the service; services.ts gives it. */
export interface Settling {
  /** Notes that the CRM shows may be those whose answers were lost. */
  settleNotes(copy: CopyScope, notes: readonly crm.CrmNote[]): Promise<void>;
}

/** What changes of records start for the deals' silence, in the same transaction; services.ts gives it. */
export interface Judging {
  /** The deals whose silence hangs on records, as the copy holds them now. */
  hangingOn(
    copy: CopyScope,
    resource: SyncResource,
    ids: readonly number[],
  ): Promise<readonly { id: number; dealId: number }[]>;
  /** Judges the deals anew that hang on records, and others; by other days of stages all that are, or will be, in them. */
  judge(copy: CopyScope, resource: SyncResource, ids: readonly number[], others: readonly number[]): Promise<void>;
  /** Sees to it that all of a copy is judged anew where its user's zone, its stages or the rules are others than those it was judged by. */
  byPresentRules(copy: CopyScope): Promise<void>;
}

/** How a list of the CRM is read, and where its records go. */
export interface List<T extends { id: number } = { id: number }> {
  read(api: CrmApi, request: CrmPageRequest): Promise<CrmPage<T>>;
  /** A page made ready to be written. @param unread how many records of the page could not be read */
  ready(records: readonly T[], unread: number): write.Write;
  /** Its records without what names persons who are kept out. */
  leaveOut?(kept: KeptOut, copy: CopyScope, records: readonly T[]): Promise<T[]>;
  /** What of other parts belongs to the same transaction, before the page: a write locks its receipt, then its note. */
  before?(settling: Settling, copy: CopyScope, records: readonly T[]): Promise<void>;
  /** Whether the CRM tells what changed since a moment; the others are small and always read whole. */
  tellsChanges: boolean;
  /** Whether it comes in pages by ascending id; the users are one answer. */
  hasPages: boolean;
  /** Whose custom fields its records carry. */
  fieldsOf?: CrmEntity;
  /** Whose rows its records become. */
  entity: new () => object;
  /** Of the lists that are read less often, those that its records name, and the column that does. */
  depends: Partial<Record<ListResource, { column: string; of: new () => object }>>;
}

const OF_OWNERS = { USERS: { column: "owner_id", of: CrmUserRow } };
const CHANGING = { tellsChanges: true, hasPages: true } as const;
const SMALL = { tellsChanges: false, hasPages: true, depends: {} } as const;

const USERS: List<crm.CrmUser> = {
  read: (api) => api.users(),
  ready: write.writeUsers,
  leaveOut: (kept, copy, page) => kept.users(copy, page),
  entity: CrmUserRow,
  ...SMALL,
  hasPages: false,
};
const PIPELINES: List<crm.CrmPipeline> = {
  read: (api, page) => api.pipelines(page),
  ready: write.writePipelines,
  entity: PipelineRow,
  ...SMALL,
};
const STAGES: List<crm.CrmStage> = {
  read: (api, page) => api.stages(page),
  ready: write.writeStages,
  entity: StageRow,
  ...SMALL,
};
const ORGANIZATIONS: List<crm.CrmOrganization> = {
  read: (api, page) => api.organizations(page),
  ready: write.writeOrganizations,
  fieldsOf: "ORGANIZATION",
  entity: OrganizationRow,
  depends: OF_OWNERS,
  ...CHANGING,
};
const PERSONS: List<crm.CrmPerson> = {
  read: (api, page) => api.persons(page),
  ready: write.writePersons,
  leaveOut: (kept, copy, page) => kept.persons(copy, page),
  fieldsOf: "PERSON",
  entity: PersonRow,
  depends: OF_OWNERS,
  ...CHANGING,
};
const DEALS: List<crm.CrmDeal> = {
  read: (api, page) => api.deals(page),
  ready: write.writeDeals,
  fieldsOf: "DEAL",
  entity: DealRow,
  depends: {
    ...OF_OWNERS,
    PIPELINES: { column: "pipeline_id", of: PipelineRow },
    STAGES: { column: "stage_id", of: StageRow },
  },
  ...CHANGING,
};
const ACTIVITIES: List<crm.CrmActivity> = {
  read: (api, page) => api.activities(page),
  ready: write.writeActivities,
  leaveOut: (kept, copy, page) => kept.activities(copy, page),
  entity: ActivityRow,
  depends: OF_OWNERS,
  ...CHANGING,
};
const NOTES: List<crm.CrmNote> = {
  read: (api, page) => api.notes(page),
  ready: write.writeNotes,
  leaveOut: (kept, copy, page) => kept.notes(copy, page),
  before: (settling, copy, notes) => settling.settleNotes(copy, notes),
  entity: NoteRow,
  depends: { USERS: { column: "author_id", of: CrmUserRow } },
  ...CHANGING,
};

export const LISTS: Record<ListResource, List> = {
  USERS,
  PIPELINES,
  STAGES,
  ORGANIZATIONS,
  PERSONS,
  DEALS,
  ACTIVITIES,
  NOTES,
};

/**
 * Whether a record that is gone is removed from a list. Not from the users: whether the CRM lists deactivated ones is not
 * known, and their names belong to what they did.
 */
export const isRemovable = (resource: SyncResource): boolean =>
  resource !== "USERS" && resource !== "DEAL_PARTICIPANTS";

/** What a list that is read less often does not have, and another one's record names. */
export interface Unknown {
  named: ListResource;
  id: number;
}

/**
 * Of what changed records name. Its lists are read at once, where they do not rest, but once for each: who has left the company may be on no list, and
 * their deals go on changing.
 */
export function readUnknown(
  { tenantId, copyId, rows, metadata }: CopyScope,
  resource: ListResource,
  ids: readonly number[],
  now: Date,
): Promise<Unknown[]> {
  const { entity, depends } = LISTS[resource];
  const { tableName } = metadata(entity);
  const names = Object.entries(depends).map(
    ([named, { column, of }]) => `SELECT DISTINCT '${named}' AS named, t.${column} AS id
       FROM ${rowsOfEach(tableName, "crm_id", "$3::bigint[]")} t
       WHERE t.${column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${metadata(of).tableName} n
           WHERE n.tenant_id = $1 AND n.copy_id = $2 AND n.crm_id = t.${column}) AND NOT EXISTS (SELECT 1 FROM sync_list l
           WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.resource = '${named}' AND t.${column} = ANY (l.missing))
         AND NOT EXISTS (SELECT 1 FROM sync_pass p
           WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.resource = '${named}' AND p.rests_until > $4)`,
  );
  return rows<Unknown>(names.join(" UNION ALL "), [tenantId, copyId, ids, now], { named: "text", id: "number" });
}

/** A page with what it writes. */
type Writable = Pick<CrmPage<{ id: number }>, "records" | "rejected"> & { write: write.Write };

/** A page as it may be stored; where nothing is kept out of the tenant's rows, as it came. */
export async function storable<P extends Writable>(
  keepOut: KeepOut,
  copy: CopyScope & { keepsOut: boolean },
  resource: ListResource,
  page: P,
): Promise<P> {
  const kept = copy.keepsOut ? await keepOut.read(copy) : null;
  if (!kept) return page;
  const { leaveOut, ready } = LISTS[resource];
  const records = leaveOut ? await leaveOut(kept, copy, page.records) : page.records;
  const rejected = await kept.rejected(copy, page.rejected, resource === "PERSONS" || resource === "USERS");
  return { ...page, records, rejected, write: ready(records, rejected.length) };
}

const hasCustomFields = (record: object): record is { customFields: Record<string, unknown> } =>
  "customFields" in record;

/** What a list's records may name, read once before its first page is committed. */
export async function knowFields(
  copy: CopyScope,
  resource: ListResource,
  state: { knownFields?: KnownFields | null },
): Promise<void> {
  const entity = LISTS[resource].fieldsOf;
  if (entity && state.knownFields === undefined) state.knownFields = await readKnownFields(copy, entity);
}

/** Changed records may name fields or options that the list of fields, as it was last read, does not have. */
export async function noteUnknownNames(
  copy: CopyScope,
  resource: ListResource,
  changed: readonly object[],
  { knownFields }: { knownFields?: KnownFields | null },
): Promise<void> {
  const entity = LISTS[resource].fieldsOf;
  const records = entity && knownFields ? changed.filter(hasCustomFields) : [];
  if (entity && knownFields && records.length > 0) await noteUnknownFields(copy, entity, records, knownFields);
}
