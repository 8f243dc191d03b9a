import { GraphQLError } from "graphql";
import { Args, Ctx, FieldResolver, Query, Resolver, Root } from "type-graphql";
import { mayManageConnection, NEWEST_EVENT, readAuditEvents, refuseAudit } from "../auth/policies";
import type { ConnectRefusal } from "../connections/connecting";
import type { AuditAction, AuditEventRow } from "../entities/tenant";
import { PageArgs, type RelayPage } from "../schema/base";
import { RefusalCodeEnum } from "../schema/refusal";
import { AuditEvent, AuditEventConnection, Viewer } from "../schema/viewer";
import type { OperationContext } from "./context";
import { encodeId, relayPage } from "./inputs";

const ID_OF: Partial<Record<AuditAction, "Meeting" | "Deal" | "SyncRun">> = {
  DEAL_CHOSEN: "Meeting",
  DEAL_SNOOZED: "Deal",
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
