import { Arg, Ctx, FieldResolver, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import { maySeeVisibility } from "../auth/policies";
import { readActivityTypes } from "../briefing/quiet/quiet-settings";
import { readPipelines, readUsers } from "../briefing/records";
import { readRematchProgress } from "../connections/copies";
import { type CrmStop, messageOfStop } from "../connections/crm-stops";
import { grantEndsAt } from "../connections/grants";
import { readVisibility, type Visibility } from "../connections/visibility";
import { CONNECTION_CHANGED } from "../database/between-processes";
import type { ConnectionRow } from "../entities/connection";
import type { CrmUserRow, PipelineRow } from "../entities/crm-company";
import type { SyncRunRow } from "../entities/sync-run";
import { asMany, OF_THE_COPY } from "../schema/base";
import {
  ConnectInput,
  Connection,
  ConnectResult,
  ConnectStarted,
  ConnectSuccess,
  CrmBudget,
  DisconnectResult,
  DisconnectSuccess,
  StartConnectResult,
  Trouble,
  VisibilityReport,
} from "../schema/connection";
import { CrmUser, Pipeline } from "../schema/crm";
import { ActivityTypeUse } from "../schema/quiet-settings";
import type { Refusal } from "../schema/refusal";
import { SyncStatus } from "../schema/sync";
import { readRunStatus } from "../sync/run-history";
import type { EventContext, OperationContext } from "./context";
import { presentRefusal } from "./inputs";

/** As it is read; what of it is shown otherwise has a resolver of its own. */
type ShownStatus = Omit<SyncStatus, "current" | "last" | "gaps"> & {
  current: SyncRunRow | null;
  last: SyncRunRow | null;
};

@Resolver(() => Connection)
export class ConnectionResolver {
  @Query(() => Connection, { description: "The tenant's one CRM connection." })
  connection(@Ctx() context: EventContext): Promise<Connection> {
    return shownConnection(context);
  }

  @FieldResolver(() => SyncStatus, { description: "How fresh and how whole the synced copy is." })
  async sync(@Root() { copyId }: Connection, @Ctx() context: EventContext): Promise<ShownStatus> {
    if (copyId === null) return { current: null, last: null, lastSuccessAt: null, nextRunAt: null, matching: null };
    const { scope } = context;
    const planned = await context.connection();
    const [status, matching] = await context.once(`sync of ${copyId}`, () =>
      Promise.all([readRunStatus(scope, copyId), readRematchProgress({ ...scope, copyId })]),
    );
    return { ...status, nextRunAt: planned?.nextSyncAt ?? null, matching };
  }

  @FieldResolver(() => Date, {
    nullable: true,
    description:
      "When the authorization would end if nothing used it: the CRM forgets refresh tokens after 60 idle days. It is renewed long before; null unless the state is CONNECTED.",
  })
  async grantEndsAt(@Root() { copyId, state }: Connection, @Ctx() context: EventContext): Promise<Date | null> {
    if (copyId === null || state !== "CONNECTED") return null;
    return context.once(`grant of ${copyId}`, () => grantEndsAt(context.scope, copyId));
  }

  @FieldResolver(() => CrmBudget, { nullable: true, description: "null while nothing is known of it." })
  async budget(@Root() { copyId }: Connection, @Ctx() context: EventContext): Promise<CrmBudget | null> {
    if (copyId === null) return null;
    const { actor, services } = context;
    const read = () => services.budget.view(actor.tenantId, copyId, services.clock());
    return context.once(`budget of ${copyId}`, read);
  }

  @FieldResolver(() => VisibilityReport, {
    nullable: true,
    complexity: OF_THE_COPY,
    description: "For owners and admins; null for members, and while not connected.",
  })
  async visibility(@Root() { copyId }: Connection, @Ctx() context: EventContext): Promise<Visibility | null> {
    const { actor, scope } = context;
    if (copyId === null || !maySeeVisibility(actor)) return null;
    return context.once(`visibility of ${copyId}`, () => readVisibility({ ...scope, copyId }));
  }

  @FieldResolver(() => [Pipeline], {
    complexity: asMany(100),
    description: "What lists are filtered by and settings speak of, as last synced; in their order, the first 100.",
  })
  async pipelines(@Ctx() context: EventContext): Promise<PipelineRow[]> {
    const copy = await context.copy();
    return copy ? readPipelines(copy) : [];
  }

  @FieldResolver(() => [ActivityTypeUse], {
    complexity: OF_THE_COPY,
    description:
      "The types of the newest 10,000 activities, as last synced: what quiet settings may name. The commonest first, the first 100.",
  })
  async activityTypes(@Ctx() context: EventContext): Promise<ActivityTypeUse[]> {
    const copy = await context.copy();
    return copy ? readActivityTypes(copy) : [];
  }

  @FieldResolver(() => [CrmUser], {
    complexity: asMany(500),
    description: "The users of the CRM company, as last synced: active ones first, by name, the first 500.",
  })
  async users(@Ctx() context: EventContext): Promise<CrmUserRow[]> {
    const copy = await context.copy();
    return copy ? readUsers(copy) : [];
  }

  @Mutation(() => StartConnectResult, {
    description: "Not connected, or needs re-authorization: where to send the user's browser. No scope is ever sent.",
  })
  async startConnect(@Ctx() { actor, services }: OperationContext): Promise<ConnectStarted | Refusal> {
    const started = await services.connecting.start(actor);
    return started.ok ? Object.assign(new ConnectStarted(), started.value) : presentRefusal(started);
  }

  @Mutation(() => ConnectResult, {
    description:
      "What the redirect address received, handed back in the session that started it. Repeated by the same user it has the same answer, while the state lives and that connection is the one that there is.",
  })
  async connect(
    @Arg("input", () => ConnectInput, { description: "The parameters of the redirect." }) {
      code,
      state,
      error,
    }: ConnectInput,
    @Ctx() context: OperationContext,
  ): Promise<ConnectSuccess | Refusal> {
    const input = { code: code || null, state, error: error || null };
    const connected = await context.services.connecting.complete(context.actor, input);
    if (!connected.ok) return presentRefusal(connected);
    context.renew();
    return Object.assign(new ConnectSuccess(), { connection: await this.connection(context) });
  }

  @Mutation(() => DisconnectResult, {
    description: "Ends the connection on this service's side, whatever its state; disconnecting twice is no mistake.",
  })
  async disconnect(@Ctx() context: OperationContext): Promise<DisconnectSuccess | Refusal> {
    const disconnected = await context.services.disconnecting.disconnect(context.actor);
    if (!disconnected.ok) return presentRefusal(disconnected);
    context.renew();
    const connection = await this.connection(context);
    return Object.assign(new DisconnectSuccess(), { connection, remainsInCrm: REMAINS_IN_CRM });
  }

  @Subscription(() => Connection, {
    description:
      "The connection now, and again whenever its state, trouble or bound account changes, or matches or verdicts have " +
      "changed as a whole. What runs change of it (sync, budget, pipelines, users) it does not tell: read it anew at the end of one.",
    subscribe: ({ context }: { context: EventContext }) => context.changes(CONNECTION_CHANGED, async () => true),
  })
  connectionStatusChanged(@Ctx() context: EventContext): Promise<Connection> {
    return this.connection(context);
  }
}

/** Specification 3 and 5.8: nothing in the CRM is undone, and the grant is not ours to revoke. */
const REMAINS_IN_CRM =
  "Notes and field values that were written to the CRM stay there, and so does the grant that this app was given. " +
  "To end the grant, uninstall the app in the CRM among its installed apps, or deactivate the user who authorized it.";

/** The tenant's connection. Before anyone connected there is no row, and still a connection to show. */
export async function shownConnection({ actor, services, connection }: EventContext): Promise<Connection> {
  const [row, stop] = await Promise.all([connection(), services.crmStops.present()]);
  const isStopped = stop !== null && row?.state === "CONNECTED";
  return Object.assign(new Connection(), NEVER_CONNECTED, row, {
    id: actor.tenant,
    crm: row?.copyId ? ("PIPEDRIVE" as const) : null,
    trouble: isStopped ? presentStop(stop, services.clock()) : presentTrouble(row),
  });
}

const NEVER_CONNECTED = { state: "NOT_CONNECTED", copyId: null } as const;

/** The operator's stop is every connection's trouble for as long as it holds; whatever was before it is kept beneath. */
function presentStop(stop: CrmStop, now: Date): Trouble {
  const message = `${messageOfStop(stop)} Syncs wait and writes are refused until it is resumed.`;
  return Object.assign(new Trouble(), { code: "CRM_UNAVAILABLE", message, since: stop.since, lastSeenAt: now });
}

function presentTrouble(row: ConnectionRow | null): Trouble | null {
  if (!row?.troubleCode || !row.troubleSince || !row.troubleLastSeenAt) return null;
  return Object.assign(new Trouble(), {
    code: row.troubleCode,
    message: row.troubleMessage ?? "",
    since: row.troubleSince,
    lastSeenAt: row.troubleLastSeenAt,
  });
}
