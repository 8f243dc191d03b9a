import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** A full collection: what is still in memory after it is held by something. */
export const collectGarbage = runInNewContext("gc") as () => void;
