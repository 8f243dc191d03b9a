/** Kinds of things that have a global id. */
export type NodeType =
  | "Connection"
  | "SyncRun"
  | "CrmUser"
  | "Pipeline"
  | "Stage"
  | "Deal"
  | "Person"
  | "Organization"
  | "Activity"
  | "Note"
  | "Meeting"
  | "NoteWrite"
  | "FieldWrite";

export interface DecodedId {
  type: string;
  parts: string[];
}

/** Opaque to clients. A record's id names the copy that it was read in, so another tenant's id never means a record here. */
export function encodeId(type: string, ...parts: (string | number)[]): string {
  return Buffer.from([type, ...parts].join(":")).toString("base64url");
}

/** null for anything that this service never issued in this form. */
export function decodeId(id: string): DecodedId | null {
  const text = Buffer.from(id, "base64url").toString("utf8");
  const [type, ...parts] = text.split(":");
  if (!type || parts.length === 0 || Buffer.from(text).toString("base64url") !== id) return null;
  return { type, parts };
}

/** The CRM id in a record's global id; null where it is of another kind or another copy. */
export function crmIdIn(id: string, type: NodeType, copyId: number): number | null {
  const decoded = decodeId(id);
  if (decoded?.type !== type || decoded.parts.length !== 2 || decoded.parts[0] !== String(copyId)) return null;
  const crmId = Number(decoded.parts[1]);
  return Number.isSafeInteger(crmId) && crmId > 0 ? crmId : null;
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** The UUID in the global id of what has one; null where it is of another kind or none of ours. */
export function uuidIn(id: string, type: NodeType): string | null {
  const decoded = decodeId(id);
  const [uuid = "", ...others] = decoded?.type === type ? decoded.parts : [];
  return others.length === 0 && UUID.test(uuid) ? uuid : null;
}

/** The record's page in the CRM; null where the company's domain is not known. */
export async function crmUrl(
  connection: () => Promise<{ companyDomain: string | null } | null>,
  kind: "deal" | "person" | "organization",
  crmId: number,
): Promise<string | null> {
  const domain = (await connection())?.companyDomain;
  return domain ? `https://${domain}.pipedrive.com/${kind}/${crmId}` : null;
}
