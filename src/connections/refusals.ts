import { refused } from "../platform/outcome";

export const NOT_CONNECTED = refused("NOT_CONNECTED", "No CRM is connected. An owner or admin can connect one.");
export const NEEDS_REAUTHORIZATION = refused(
  "NEEDS_REAUTHORIZATION",
  "The CRM no longer accepts the authorization. An owner or admin has to authorize again.",
);
