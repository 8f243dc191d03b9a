import type { CrmApi } from "../crm/api";
import { CrmError, type CrmFailure, stopBehind } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { CrmEntity, CrmField } from "../crm/parsing/fields";
import { accepted, type Outcome, type Refused, refused } from "../platform/outcome";
import { ConnectionGoneError, NeedsReauthorizationError } from "./errors";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "./refusals";

export type FieldListRefusal = "NOT_CONNECTED" | "NEEDS_REAUTHORIZATION" | "CRM_UNAVAILABLE";

const WHY: Record<CrmFailure, string> = {
  RATE_LIMITED: "The CRM's request limit is used up; other apps share it. Try again later.",
  BUDGET_LOW: "This service's share of the CRM's daily tokens is used up. Try again later.",
  UNAVAILABLE: "The CRM could not be reached or is down. Try again in a while.",
  UNREADABLE: "The CRM's list of fields cannot be read. Try again in a while.",
  UNAUTHORIZED: "The CRM refuses a token that it has just renewed. If it lasts, disconnect and connect again.",
  REFUSED: "The CRM does not show its fields: the authorizing user or the app lacks a permission. Ask the CRM's admin.",
  NOT_FOUND: "The CRM does not know a list that it documents. Tell the operator.",
  ACCOUNT_CLOSED: "The CRM company's account is not open: its trial is over or it is unpaid. Settle that with the CRM.",
};

/** The fields of an entity, live. A list that could not be read is a refusal, never an empty list. */
export async function readFieldList(api: CrmApi, entity: CrmEntity): Promise<Outcome<CrmField[], FieldListRefusal>> {
  try {
    return accepted(await api.fields(entity));
  } catch (error) {
    return refusalOf(error);
  }
}

function refusalOf(error: unknown): Refused<FieldListRefusal> {
  if (error instanceof NeedsReauthorizationError) return NEEDS_REAUTHORIZATION;
  if (error instanceof ConnectionGoneError) return NOT_CONNECTED;
  const stop = stopBehind(error);
  if (stop) return refused("CRM_UNAVAILABLE", stop.message);
  if (error instanceof CrmError) return refused("CRM_UNAVAILABLE", WHY[error.code]);
  if (error instanceof OAuthError) {
    return refused("CRM_UNAVAILABLE", "The access token could not be renewed for now. Try again in a while.");
  }
  throw error;
}
