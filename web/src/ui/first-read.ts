import type { FreshnessFragment } from "../api/operations.generated";

type Sync = Pick<FreshnessFragment["sync"], "lastSuccessAt" | "matching">;

/** Whether something is still to be read or matched for the first time: till then nobody can say that there is none. */
export const isFirstRead = ({ lastSuccessAt, matching }: Sync): boolean => lastSuccessAt === null || matching !== null;
