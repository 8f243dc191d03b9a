import type { CrmApi } from "../crm/api";
import { CrmError, type CrmFailure, type Explanation, explain, stopBehind } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { CrmEntity, CrmField } from "../crm/parsing/fields";
import { accepted, type Outcome, type Refused, refused } from "../platform/outcome";
import { ConnectionGoneError, NeedsReauthorizationError } from "./errors";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "./refusals";

export type FieldListRefusal = "NOT_CONNECTED" | "NEEDS_REAUTHORIZATION" | "CRM_UNAVAILABLE";

const OF_FIELDS: Partial<Record<CrmFailure, Partial<Explanation>>> = {
  UNREADABLE: { what: "The CRM's list of fields cannot be read." },
  REFUSED: { what: "The CRM does not show its fields: the authorizing user or the app lacks a permission." },
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
  if (error instanceof CrmError) return refused("CRM_UNAVAILABLE", explain(error.code, OF_FIELDS[error.code]));
  if (error instanceof OAuthError) return refused("CRM_UNAVAILABLE", explain("NO_TOKEN"));
  throw error;
}
