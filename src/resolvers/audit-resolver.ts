import { GraphQLError } from "graphql";
import { Args, Ctx, Query, Resolver } from "type-graphql";
import { NEWEST_EVENT, readAuditEvents, recordPolicyRefusal } from "../auth/audit";
import { refusalToAudit } from "../auth/policies";
import type { AuditAction, AuditEventRow } from "../entities/audit-event";
import { refused } from "../platform/errors";
import { AuditEvent, AuditEventConnection } from "../schema/audit";
import { PageArgs, type RelayPage } from "../schema/page";
import type { Role } from "../schema/viewer";
import type { OperationContext } from "./context";
import { encodeId } from "./global-id";
import { relayPage } from "./pages";

@Resolver(() => AuditEvent)
export class AuditResolver {
  @Query(() => AuditEventConnection, {
    description:
      "The tenant's security events of the last 400 days, newest first. For owners and admins on any plan: an error NOT_ALLOWED_FOR_ROLE for members.",
  })
  async auditEvents(
    @Args(() => PageArgs) args: PageArgs,
    @Ctx() { actor, scope, services }: OperationContext,
  ): Promise<RelayPage<AuditEvent>> {
    const policy = refusalToAudit(actor);
    if (policy) {
      const message = "Only an owner or admin of your organization may read its security events. Ask one of them.";
      const { database, logger, clock } = services;
      await recordPolicyRefusal(database, logger, actor, refused(policy, message), "auditEvents", clock());
      throw new GraphQLError(message, { extensions: { code: policy } });
    }
    const list = { name: "auditEvents", of: actor.tenantId, order: NEWEST_EVENT };
    return relayPage(list, args, (page) => readAuditEvents(scope, page), presentEvent);
  }
}

const ID_OF: Partial<Record<AuditAction, "Meeting" | "Deal" | "SyncRun">> = {
  DEAL_CHOSEN: "Meeting",
  DEAL_SNOOZED: "Deal",
  MEETING_DELETED: "Meeting",
  SYNC_REQUESTED: "SyncRun",
};

function presentEvent({ at, action, refused, code, subject, userId, role }: AuditEventRow): AuditEvent {
  const type = ID_OF[action];
  const shown = type && subject !== null ? encodeId(type, subject) : subject;
  const asRole = role === null ? null : (role.toUpperCase() as Role);
  return Object.assign(new AuditEvent(), { at, action, refused, code, subject: shown, userId, role: asRole });
}
