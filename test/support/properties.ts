import fc from "fast-check";

/** Drawn alike in each run, so that a red one tells of the change in hand. `FIRST_SEED` draws otherwise, a deep run anew. */
if (!process.env.DEEP) fc.configureGlobal({ seed: Number(process.env.FIRST_SEED ?? 1) });

export * from "fast-check";
export { default } from "fast-check";
