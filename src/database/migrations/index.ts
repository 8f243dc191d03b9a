import { Initial1763640000000 } from "./0001-initial";

/** In the order in which they run. */
export const migrations = [Initial1763640000000];
