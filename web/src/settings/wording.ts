import type {
  ConnectionState,
  CrmEntity,
  FieldMappingHealth,
  ReauthorizationReason,
  RefusalCode,
  SyncKind,
  SyncState,
} from "../api/operations.generated";
import type { Tone } from "../ui/tones";

export const STATE: Record<ConnectionState, { text: string; tone: Tone }> = {
  NOT_CONNECTED: { text: "Not connected", tone: "plain" },
  CONNECTED: { text: "Connected", tone: "ok" },
  NEEDS_REAUTHORIZATION: { text: "Needs re-authorization", tone: "bad" },
};

export const ENTITY: Record<CrmEntity, string> = {
  DEAL: "Deals",
  PERSON: "People",
  ORGANIZATION: "Organizations",
};

export const HEALTH: Record<FieldMappingHealth, { text: string; tone: Tone; advice: string }> = {
  OK: { text: "In order", tone: "ok", advice: "" },
  MISSING_IN_CRM: {
    text: "Gone from the CRM",
    tone: "bad",
    advice: "The CRM no longer lists this field. Choose another one; nothing is written until then.",
  },
  TYPE_CHANGED: {
    text: "Type has changed",
    tone: "warn",
    advice: "The field has another type than when it was chosen. Choose it again to accept that.",
  },
  NOT_WRITABLE: {
    text: "Cannot be written",
    tone: "bad",
    advice: "This field cannot be written any more. Choose another one; nothing is written until then.",
  },
  UNKNOWN: { text: "Not known now", tone: "plain", advice: "The CRM's field list cannot be read at the moment." },
};

export const RUN_KIND: Record<SyncKind, string> = {
  FULL: "Full sync",
  INCREMENTAL: "Sync of what changed",
  RECONCILE: "Full check for what is gone",
};

export const RUN_STATE: Record<SyncState, { text: string; tone: Tone }> = {
  QUEUED: { text: "Waiting", tone: "plain" },
  RUNNING: { text: "Running", tone: "info" },
  SUCCEEDED: { text: "Succeeded", tone: "ok" },
  FAILED: { text: "Failed", tone: "bad" },
  CANCELLED: { text: "Cancelled", tone: "plain" },
};

export const REAUTHORIZATION: Record<ReauthorizationReason, string> = {
  GRANT_REVOKED:
    "The CRM no longer accepts the authorization. The user who gave it was deactivated, the app was uninstalled, or the CRM ended the grant.",
  RENEWAL_UNCONFIRMED:
    "A renewal of the access was cut off before its answer arrived, and the CRM no longer accepts what was stored before.",
  IDENTITY_CHANGED:
    "The CRM gave an access that belongs to another user or company than the one that authorized. Nothing is read or written with it.",
};

/** Why this viewer may not connect. Codes without a text of their own do not stop a viewer here. */
const REFUSAL: Partial<Record<RefusalCode, string>> = {
  NOT_ALLOWED_FOR_ROLE: "Only an owner or admin of your organization may do this. Ask one of them.",
  NOT_ALLOWED_ON_PLAN:
    "Your organization's plan does not include the CRM connection. It comes with the Medium and Sales plans.",
};

export const refusalInWords = (code: RefusalCode | null): string | null => (code && REFUSAL[code]) ?? null;
