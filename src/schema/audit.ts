import { Field, registerEnumType } from "type-graphql";
import { AUDIT_ACTIONS } from "../entities/audit-event";
import { ObjectType } from "./object-type";
import { connectionOf } from "./page";
import { Role } from "./viewer";

export const AuditAction = Object.fromEntries(AUDIT_ACTIONS.map((action) => [action, action]));
registerEnumType(AuditAction, {
  name: "AuditAction",
  description: "What happened.",
  valuesConfig: {
    CONSENT_STARTED: { description: "A user was sent to the CRM's consent page." },
    CONSENT_COMPLETED: { description: "A consent came back and was accepted." },
    CONSENT_REJECTED: { description: "A consent came back, or was to be started, and was refused; `code` says why." },
    CONNECTED: { description: "A CRM was connected." },
    REAUTHORIZED: { description: "The connection was authorized again; `code` is SAME_USER or OTHER_USER." },
    NEEDS_REAUTHORIZATION: { description: "The CRM no longer accepts the authorization; `code` is the reason." },
    DISCONNECTED: { description: "The CRM was disconnected." },
    FIELD_MAPPING_SET: { description: "A field was nominated; `subject` is its entity." },
    FIELD_MAPPING_CLEARED: { description: "A field is nominated no more; `subject` is its entity." },
    SYNC_REQUESTED: { description: "A user asked for a sync; `subject` is the run, `code` its kind." },
    DEAL_CHOSEN: {
      description: "A user chose a meeting's deal, or (`code` TAKEN_BACK) took that back; `subject` is the meeting.",
    },
    QUIET_SETTINGS_SET: { description: "The settings of silence were changed." },
    DEAL_SNOOZED: {
      description:
        "A user snoozed a deal, or (`code` TAKEN_BACK) ended that; `subject` is the id that the deal had then.",
    },
    MEETING_DELETED: { description: "A user deleted a meeting; `subject` is the id that it had." },
    POLICY_REFUSED: { description: "Role or plan does not allow it; `subject` is the operation." },
    KEYS_ROTATED: { description: "The stored tokens were sealed under another key." },
  },
});

@ObjectType({ description: "One security event: who did what, and what came of it. Never a secret, text or record." })
export class AuditEvent {
  @Field(() => Date, { description: "When it happened." })
  at!: Date;

  @Field(() => AuditAction, { description: "What happened." })
  action!: string;

  @Field(() => Boolean, { description: "Whether it was refused, and so changed nothing." })
  refused!: boolean;

  @Field(() => String, { nullable: true, description: "The code of the refusal, or the reason, machine-readable." })
  code!: string | null;

  @Field(() => String, {
    nullable: true,
    description: "What it was about: an operation, an entity, or the global id of a meeting, deal or run.",
  })
  subject!: string | null;

  @Field(() => String, {
    nullable: true,
    description: "The user of this service; null where the service acted itself.",
  })
  userId!: string | null;

  @Field(() => Role, { nullable: true, description: "The role that the user had then." })
  role!: Role | null;
}

export const AuditEventConnection = connectionOf("AuditEvent", () => AuditEvent, "Security events, newest first.");
