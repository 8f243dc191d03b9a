import { Field } from "type-graphql";
import type { ActorRole } from "../auth/actor";
import type { AuditAction } from "../entities/tenant";
import { apiEnum, connectionOf, ObjectType } from "./base";

const RoleEnum = apiEnum<ActorRole>("Role", "What the viewer is in the tenant.", {
  owner: "May do everything.",
  admin: "May do everything that an owner may do here.",
  member:
    "Reads, records meetings, chooses and snoozes deals, writes notes and fields, asks for syncs of what changed.",
});

@ObjectType({ description: "Who is asking, as the bearer token proves it." })
export class Viewer {
  @Field(() => String, { description: "The id of the user of this service, as the token names it." })
  userId!: string;

  @Field(() => String, {
    description:
      "The tenant's id, as the token names it: who owns the connection (the specification's 'owner organization').",
  })
  tenantId!: string;

  @Field(() => RoleEnum, { description: "What the user may do." })
  role!: ActorRole;

  @Field(() => String, { description: "The tenant's plan, as the token names it." })
  plan!: string;

  @Field(() => String, { nullable: true, description: "As the token has it; null where it has none." })
  email!: string | null;

  @Field(() => Boolean, {
    description:
      "Whether this viewer may connect, re-authorize and nominate fields. To disconnect and to clear a nomination is open to owners and admins on any plan.",
  })
  canManageConnection!: boolean;
}

const AuditActionEnum = apiEnum<AuditAction>("AuditAction", "What happened.", {
  CONSENT_STARTED: "A user was sent to the CRM's consent page.",
  CONSENT_COMPLETED: "A consent came back and was accepted.",
  CONSENT_REJECTED: "A consent came back, or was to be started, and was refused; `code` says why.",
  CONNECTED: "A CRM was connected; `subject` has the CRM's ids of the company and of the user who authorized.",
  REAUTHORIZED: "The connection was authorized again; `code` is SAME_USER or OTHER_USER, `subject` as of CONNECTED.",
  NEEDS_REAUTHORIZATION: "The CRM no longer accepts the authorization; `code` is the reason, or TAKEN_BACK: it does.",
  DISCONNECTED: "The CRM was disconnected.",
  FIELD_MAPPING_SET: "A field was nominated; `subject` is its entity, `was` and `became` are keys of fields.",
  FIELD_MAPPING_CLEARED: "A field is nominated no more; `subject` is its entity, `was` its key.",
  SYNC_REQUESTED: "A user asked for a sync; `subject` is the run, `code` its kind.",
  DEAL_CHOSEN:
    "A user chose a meeting's deal, or (`code` TAKEN_BACK) took that back; `subject` is the meeting, `was` and `became` are the CRM's numbers of deals.",
  DEAL_SNOOZED: "A user snoozed a deal, or (`code` TAKEN_BACK) ended that; `subject` is the id that the deal had then.",
  MEETING_CANCELLED: "A user said that a meeting does not take place; `subject` is the meeting.",
  MEETING_DELETED: "A user deleted a meeting; `subject` is the id that it had.",
  QUIET_SETTINGS_SET: "The settings of silence were changed; `was` and `became` are the settings, as JSON.",
  POLICY_REFUSED: "Role or plan does not allow it; `subject` is the operation.",
  KEYS_ROTATED: "The stored tokens were sealed under another key.",
  CRM_PROBED: "The operator looked, as the user who authorized, at how the CRM answers; nothing of it was kept.",
  PERSON_EXPORTED: "The operator exported what is held about a person.",
  PERSON_ERASED: "The operator erased what was held about a person.",
  PERSON_KEPT_OUT: "The operator sees to it that an erased person does not come back.",
  PERSON_LET_IN: "The operator let a person come again who was kept out.",
  TENANT_ERASED: "The operator erased all of the tenant.",
});

@ObjectType({ description: "One security event: who did what, and what came of it. Never a secret, text or record." })
export class AuditEvent {
  @Field(() => Date, { description: "When it happened." })
  at!: Date;

  @Field(() => AuditActionEnum, { description: "What happened." })
  action!: AuditAction;

  @Field(() => Boolean, { description: "Whether it was refused, and so changed nothing." })
  refused!: boolean;

  @Field(() => String, { nullable: true, description: "The code of the refusal, or the reason, machine-readable." })
  code!: string | null;

  @Field(() => String, {
    nullable: true,
    description:
      "What it was about: an operation, an entity, a CRM account, or the global id of a meeting, deal or run.",
  })
  subject!: string | null;

  @Field(() => String, {
    nullable: true,
    description: "The user of this service; null where the service or its operator acted.",
  })
  userId!: string | null;

  @Field(() => String, { nullable: true, description: "What a change replaced; null where there was nothing." })
  was!: string | null;

  @Field(() => String, { nullable: true, description: "What it was replaced by; null where nothing is there now." })
  became!: string | null;

  @Field(() => RoleEnum, { nullable: true, description: "The role that the user had then." })
  role!: string | null;
}

export const AuditEventConnection = connectionOf("AuditEvent", () => AuditEvent, "Security events, newest first.");
