import * as rules from "../../../src/briefing/quiet/rules";

/** Loaded before a process of the service, it makes that one of the next release, which judges silence by other rules. */
Object.assign(rules, { RULES: rules.RULES + 1, SAY_RULES: rules.SAY_RULES.replace(/\d+\)$/, `${rules.RULES + 1})`) });

/** Its place in `dist`. */
export type NextRules = "test/support/programs/next-rules.js";
