import { GraphQLError, type GraphQLResolveInfo } from "graphql";
import { Arg, Args, Ctx, FieldResolver, ID, Info, Query, Resolver, Root } from "type-graphql";
import { mayManageConnection, NEWEST_EVENT, readAuditEvents, refuseAudit, writesShown } from "../auth/policies";
import { readMeeting } from "../briefing/meeting-rows";
import { readQuietSettings, type ShownSettings } from "../briefing/quiet/quiet-settings";
import type { ConnectRefusal } from "../connections/connecting";
import type { AuditAction, AuditEventRow } from "../entities/tenant";
import { Node, PageArgs, type RelayPage } from "../schema/base";
import { Connection } from "../schema/connection";
import { Activity, CrmUser, Note, Pipeline, Stage } from "../schema/crm";
import { Meeting } from "../schema/meeting";
import { QuietSettings } from "../schema/quiet-settings";
import { Deal, Organization, Person } from "../schema/records";
import { RefusalCodeEnum } from "../schema/refusal";
import { SyncRun } from "../schema/sync";
import { AuditEvent, AuditEventConnection, Viewer } from "../schema/viewer";
import { FieldWrite, NoteWrite } from "../schema/writeback";
import { readRunsById } from "../sync/run-history";
import { FIELD, NOTE } from "../writeback/receipts";
import { readReceipts } from "../writeback/write-history";
import { shownConnection } from "./connection-resolver";
import type { OperationContext } from "./context";
import { crmIdIn, decodeId, encodeId, type NodeType, relayPage, uuidIn } from "./inputs";

const TYPES = {
  Connection,
  QuietSettings,
  SyncRun,
  Meeting,
  NoteWrite,
  FieldWrite,
  CrmUser,
  Pipeline,
  Stage,
  Deal,
  Person,
  Organization,
  Activity,
  Note,
} satisfies Record<NodeType, new () => Node>;

const isNodeType = (type: string): type is NodeType => Object.hasOwn(TYPES, type);

/** A row as the value of an abstract type, which is told by its class. */
export const asNode = (type: NodeType, row: object): Node => Object.assign(new TYPES[type](), row);

/** A record of the CRM has an id within its copy, anything else an id of our own. */
type Identified = { copyId: number; crmId: number } | { id: string };

/** Rows with a UUID of our own, as far as the actor may see them. */
const FINDERS = {
  SyncRun: ({ scope }: OperationContext, id: string) => readRunsById(scope, [id]),
  Meeting: async ({ scope }: OperationContext, id: string) => [await readMeeting(scope, { id })],
  NoteWrite: ({ scope, actor }: OperationContext, id: string) => readReceipts(scope, NOTE, [id], writesShown(actor)),
  FieldWrite: ({ scope, actor }: OperationContext, id: string) => readReceipts(scope, FIELD, [id], writesShown(actor)),
};

/** What a tenant has one of bears the tenant's name. */
export async function shownSettings({ scope, actor }: OperationContext): Promise<ShownSettings & { id: string }> {
  return { ...(await readQuietSettings(scope)), id: actor.tenant };
}

async function rowOf(context: OperationContext, type: NodeType, id: string): Promise<object | null> {
  switch (type) {
    case "Connection": {
      const own = await shownConnection(context);
      return encodeId(type, own.id) === id ? own : null;
    }
    case "QuietSettings":
      return encodeId(type, context.actor.tenant) === id ? shownSettings(context) : null;
    case "SyncRun":
    case "Meeting":
    case "NoteWrite":
    case "FieldWrite": {
      const uuid = uuidIn(id, type);
      const [row = null] = uuid ? await FINDERS[type](context, uuid) : [];
      return row;
    }
    default: {
      const copy = await context.copy();
      const crmId = copy && crmIdIn(id, type, copy.copyId);
      return crmId ? context.loaders.records[type].load(crmId) : null;
    }
  }
}

@Resolver(() => Node)
export class NodeResolver {
  @Query(() => Node, {
    nullable: true,
    description: "Anything with a global id; null for unknown, foreign and never-matched ids alike.",
  })
  async node(
    @Arg("id", () => ID, { description: "A global id of any type." }) id: string,
    @Ctx() context: OperationContext,
  ): Promise<Node | null> {
    const type = decodeId(id)?.type;
    if (type === undefined || !isNodeType(type)) return null;
    const row = await rowOf(context, type, id);
    return row && asNode(type, row);
  }

  @FieldResolver()
  id(@Root() row: Identified, @Info() { parentType }: GraphQLResolveInfo): string {
    return "crmId" in row ? encodeId(parentType.name, row.copyId, row.crmId) : encodeId(parentType.name, row.id);
  }
}

const ID_OF: Partial<Record<AuditAction, "Meeting" | "Deal" | "SyncRun">> = {
  DEAL_CHOSEN: "Meeting",
  DEAL_SNOOZED: "Deal",
  MEETING_CANCELLED: "Meeting",
  MEETING_DELETED: "Meeting",
  SYNC_REQUESTED: "SyncRun",
};

@Resolver(() => AuditEvent)
export class AuditResolver {
  @Query(() => AuditEventConnection, {
    description:
      "The tenant's security events of the last 400 days, newest first. For owners and admins on any plan: an error NOT_ALLOWED_FOR_ROLE for members.",
  })
  async auditEvents(
    @Args(() => PageArgs) args: PageArgs,
    @Ctx() { actor, scope, services }: OperationContext,
  ): Promise<RelayPage<AuditEventRow>> {
    const refusal = await refuseAudit(services, actor);
    if (refusal) throw new GraphQLError(refusal.message, { extensions: { code: refusal.code } });
    const list = { name: "auditEvents", of: actor.tenantId, order: NEWEST_EVENT };
    return relayPage(list, args, (page) => readAuditEvents(scope, page));
  }

  @FieldResolver()
  subject(@Root() { action, subject }: AuditEventRow): string | null {
    const type = ID_OF[action];
    return type && subject !== null ? encodeId(type, subject) : subject;
  }
}

@Resolver(() => Viewer)
export class ViewerResolver {
  @Query(() => Viewer, { description: "Who is asking." })
  viewer(@Ctx() { actor }: OperationContext): Viewer {
    return {
      userId: actor.userId,
      tenantId: actor.tenant,
      role: actor.role,
      plan: actor.plan,
      email: actor.email,
      canManageConnection: mayManageConnection(actor),
    };
  }

  @FieldResolver(() => RefusalCodeEnum, {
    nullable: true,
    description: "Why connecting is refused to this viewer now; null when it would be allowed.",
  })
  connectRefusal(@Ctx() context: OperationContext): Promise<ConnectRefusal | null> {
    const { actor, services, scope, connection } = context;
    return context.once("refusal to connect", () => services.connecting.refusal(actor, scope, connection));
  }
}
