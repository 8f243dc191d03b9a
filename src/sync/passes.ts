import type { KnownFields } from "../connections/field-lists";
import type { CrmApi, CrmPage } from "../crm/api";
import { BudgetLowError } from "../crm/errors";
import type { CopyScope } from "../database/database";
import { SyncListRow, SyncPassRow } from "../entities/sync-list";
import { SYNC_RESOURCES, type SyncResource } from "../entities/sync-run";
import type { RunContext } from "./commit";
import { forgetRejected } from "./failures";
import { isRemovable, type Unknown } from "./lists";
import { type PassKind, SLOW, sinceOf, unlessAhead } from "./plan";
import { type ClaimedRun, COUNTED, countsParameters, type StepChange } from "./runs";
import type { Write } from "./writers";

/** A way through a list that is under way; the worker that holds the run moves it on. */
export type Pass = Omit<SyncPassRow, "tenantId" | "copyId"> & {
  /** Its row is there: it was asked for, or has committed a page. */
  isStored: boolean;
};

/** Where it stands. */
export type Place = Pick<Pass, keyof typeof BEGINNING | "smallPages">;

export interface ListState {
  list: Pick<SyncListRow, "watermark" | "readAt"> | null;
  /** What the pages of its passes are paid from. */
  payers: Record<PassKind, "FIRST_LISTS" | "LISTS" | "MEETINGS">;
  passes: Map<PassKind, Pass>;
  /** Records of it are kept aside because they could not be read. */
  hasRejected: boolean;
  /** What its records were found to name. */
  unknown: Unknown[];
  /** The pass whose first page was asked for while the list before was being committed. */
  ahead: { pass: Pass; pages: Pages } | null;
  /** Called when its last page is read, which is still to be committed. */
  whenRead: (() => void) | null;
  /** What its records may name, once one has changed; null: their fields were never read. */
  knownFields?: KnownFields | null;
}

/** A page as it was read, made ready to be written. */
export interface ReadPage extends CrmPage<{ id: number }> {
  /** When it was asked for, by our clock. */
  askedAt: Date;
  /** The highest id that the walk has shown. */
  lastId: number;
  /** How many that follow are to be small. */
  smallPages: number;
  write: Write;
  committed?: () => number;
}

export type Pages = AsyncGenerator<ReadPage>;

const BEGINNING = { beganAt: null, cursor: null, lastId: 0, walk: 1, firstWalkEndedAt: null, failedSince: null };

/** The pass under way, or one that begins now: through what changed since the list was complete, or all of it, which a small list's removes. */
export function passOf({ list, passes, ahead }: ListState, resource: SyncResource, kind: PassKind): Pass {
  if (ahead?.pass.kind === kind) return ahead.pass;
  const updatedSince = kind === "CHANGES" && list?.watermark ? sinceOf(list.watermark) : null;
  const removes = SLOW.has(resource) && isRemovable(resource) && list?.watermark != null;
  const first = { ...BEGINNING, inVainSince: null, begunAnewAt: null, restsUntil: null, smallPages: 0 };
  return passes.get(kind) ?? { resource, kind, removes, updatedSince, isStored: false, ...first };
}

/** The passes that have shown something already. */
export const begunOf = ({ passes }: ListState): PassKind[] =>
  [...passes.values()].filter(({ beganAt }) => beganAt !== null).map(({ kind }) => kind);

/** Reads a page of a pass. Beside the share of meetings, which may end within one, lists have their own. */
export function paidFor<T>(
  apis: RunContext["apis"],
  { payers }: ListState,
  { kind }: Pass,
  read: (api: CrmApi) => Promise<T>,
): Promise<T> {
  return read(apis[payers[kind]]).catch((error: unknown) => {
    if (!(error instanceof BudgetLowError) || payers[kind] !== "MEETINGS") throw error;
    payers[kind] = "LISTS";
    return read(apis.LISTS);
  });
}

/** How far each list of a copy has been read. */
export async function readStates(copy: CopyScope, now: Date): Promise<Map<SyncResource, ListState>> {
  const { tenantId, copyId, typed, rows } = copy;
  const lists = await typed((orm) => orm.findBy(SyncListRow, { tenantId, copyId }));
  const passes = await typed((orm) => orm.findBy(SyncPassRow, { tenantId, copyId }));
  // Failing since a time that has not come, none would rest until it has.
  for (const since of ["failedSince", "inVainSince"] as const)
    for (const pass of passes) pass[since] = unlessAhead(pass[since], now);
  const rejected = await rows<{ resource: string }>(
    "SELECT DISTINCT resource FROM rejected_record WHERE tenant_id = $1 AND copy_id = $2",
    [tenantId, copyId],
    { resource: "text" },
  );
  const listOf = (resource: SyncResource) => lists.find((list) => list.resource === resource) ?? null;
  const payerOf = (resource: SyncResource) => (listOf(resource)?.watermark ? "LISTS" : "FIRST_LISTS");
  const stateOf = (resource: SyncResource): ListState => ({
    list: listOf(resource),
    payers: { WHOLE: payerOf(resource), CHANGES: payerOf(resource) },
    passes: new Map(
      passes.filter((pass) => pass.resource === resource).map((pass) => [pass.kind, { ...pass, isStored: true }]),
    ),
    hasRejected: rejected.some((row) => row.resource === resource),
    unknown: [],
    ahead: null,
    whenRead: null,
  });
  return new Map(SYNC_RESOURCES.map((resource) => [resource, stateOf(resource)]));
}

/** Each list has its row before the first run, so that a page's commit is an update and no more. */
export async function makeLists({ tenantId, copyId, rows }: CopyScope): Promise<void> {
  await rows(
    `INSERT INTO sync_list (tenant_id, copy_id, resource) SELECT $1, $2, unnest($3::text[]) ON CONFLICT DO NOTHING`,
    [tenantId, copyId, SYNC_RESOURCES],
  );
}

/**
 * Asks for a whole pass through lists; the next runs make it, however many it takes.
 * @param removes of which lists what two walks do not show is to be removed. A pass under way that would not do so begins anew
 */
export async function askWhole(
  { tenantId, copyId, rows }: CopyScope,
  resources: readonly SyncResource[],
  removes: (resource: SyncResource) => boolean,
): Promise<void> {
  await rows(
    `INSERT INTO sync_pass AS p (tenant_id, copy_id, resource, kind, removes) SELECT $1, $2, unnest($3::text[]), 'WHOLE', unnest($4::boolean[])
     ON CONFLICT (tenant_id, copy_id, resource, kind) DO UPDATE SET removes = true, began_at = NULL, cursor = NULL,
       last_id = 0, walk = 1, first_walk_ended_at = NULL, failed_since = NULL, rests_until = NULL
     WHERE EXCLUDED.removes AND NOT p.removes`,
    [tenantId, copyId, resources, resources.map(removes)],
  );
}

/** Whoever authorized anew may see other records: a walk that began before tells nothing of what is shown now. */
export const forgetPasses = ({ tenantId, copyId, typed }: CopyScope): Promise<unknown> =>
  typed((orm) => orm.delete(SyncPassRow, { tenantId, copyId }));

/** A pass that cannot go on from where it stands begins anew with the next run. */
export const restartPass = (copy: CopyScope, pass: Pass): Promise<void> => change(copy, pass, BEGINNING);

/** That a pass begins anew, for a reason that may last: if it comes to no end it rests before it does so again. */
export const noteAnew = (copy: CopyScope, pass: Pass, now: Date): Promise<void> =>
  change(copy, pass, { inVainSince: pass.inVainSince ?? now, begunAnewAt: now });

async function change({ tenantId, copyId, typed }: CopyScope, { resource, kind }: Pass, to: Partial<SyncPassRow>) {
  await typed((orm) => orm.update(SyncPassRow, { tenantId, copyId, resource, kind }, to));
}

/** Where a pass stands after a page, with the step's counts. The caller's transaction has written the page. */
export async function movePass(
  { tenantId, copyId, rows }: CopyScope,
  run: ClaimedRun,
  pass: Pass,
  change: StepChange,
): Promise<void> {
  const { resource, kind, removes, updatedSince, beganAt, cursor, lastId, walk, firstWalkEndedAt, smallPages } = pass;
  const counts = countsParameters(run, resource, change);
  const place = [beganAt, cursor, lastId, walk, firstWalkEndedAt, smallPages];
  if (pass.isStored) {
    await rows(
      `WITH ${COUNTED}
       UPDATE sync_pass SET began_at = $10, cursor = $11, last_id = $12, walk = $13, first_walk_ended_at = $14, small_pages = $15, failed_since = NULL, rests_until = NULL
       WHERE tenant_id = $1 AND copy_id = $16 AND resource = $3 AND kind = $17`,
      [...counts, ...place, copyId, kind],
    );
    return;
  }
  await rows(`WITH ${COUNTED} SELECT 1`, counts);
  await rows(
    `INSERT INTO sync_pass (tenant_id, copy_id, resource, kind, removes, updated_since, began_at, cursor, last_id, walk,
       first_walk_ended_at, small_pages) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
    [tenantId, copyId, resource, kind, removes, updatedSince, ...place],
  );
}

/** The pass is over: its list is read up to when it began. A watermark never goes back. @returns how far the list is read now */
export async function endPass(
  copy: CopyScope,
  run: ClaimedRun,
  { hasRejected }: ListState,
  pass: Pass,
  change: StepChange,
  now: Date,
  isMuch = false,
): Promise<ListState["list"]> {
  const { copyId, rows } = copy;
  const { resource, kind, removes, beganAt } = pass;
  const isWhole = kind === "WHOLE";
  if (hasRejected && isWhole && beganAt) await forgetRejected(copy, resource, beganAt, now);
  const [list] = await rows<NonNullable<ListState["list"]>>(
    `WITH ${COUNTED}, ended AS (DELETE FROM sync_pass WHERE tenant_id = $1 AND copy_id = $10 AND resource = $3 AND kind = $11
     ), mended AS (
       DELETE FROM data_gap WHERE tenant_id = $1 AND copy_id = $10 AND resource = $3 AND crm_id = 0 AND NOT EXISTS (SELECT 1
         FROM sync_pass o WHERE o.tenant_id = $1 AND o.copy_id = $10 AND o.resource = $3 AND o.kind <> $11 AND o.failed_since IS NOT NULL)
     )
     UPDATE sync_list SET watermark = greatest(watermark, $13::timestamptz), read_at = $14, whole_at = CASE WHEN $12::boolean THEN $14::timestamptz ELSE whole_at END, much_gone = coalesce($15, much_gone),
       quiet_reads = CASE WHEN (SELECT sum(written + removed) FROM sync_step WHERE tenant_id = $1 AND run_id = $2 AND resource = $3) + $6::int + $8::int = 0
         THEN quiet_reads + 1 ELSE 0 END
     WHERE tenant_id = $1 AND copy_id = $10 AND resource = $3
     RETURNING watermark, read_at AS "readAt"`,
    [...countsParameters(run, resource, change), copyId, kind, isWhole, beganAt, now, removes ? isMuch : null],
    { watermark: "instant", readAt: "instant" },
  );
  return list ?? null;
}

/** A pass that begins after this one goes on from here. */
export function leavePass(state: ListState, { kind }: Pass, list: ListState["list"]): void {
  state.passes.delete(kind);
  state.list = list;
}
