import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CrmError, type CrmFailure, explain } from "../../src/crm/errors";
import { OAuthError } from "../../src/crm/oauth";
import { failureOf, gapOf } from "../../src/sync/failures";
import { certainFailureOf } from "../../src/writeback/outcomes";
import { sourceFiles } from "../support/syntax";

// Seen red with: a sentence of an explanation written again in another file.

const ACCOUNT = "The CRM company's account is not open: its trial is over or it is unpaid. Settle that with the CRM.";

test("a run and a write say the same of what happened, and each what follows for it", () => {
  const closed = new CrmError("ACCOUNT_CLOSED", "402", { status: 402 });
  expect([failureOf(closed)?.message, certainFailureOf(closed)?.message]).toEqual([ACCOUNT, ACCOUNT]);
  const limited = new CrmError("RATE_LIMITED", "429", { status: 429 });
  const what = "The CRM's request limit is used up; others share it.";
  expect(failureOf(limited)?.message).toBe(
    `${what} A later sync goes on from here; where none is planned, ask for one.`,
  );
  expect(certainFailureOf(limited)?.message).toBe(`${what} Try again later with a new idempotency key.`);
  const outage = new OAuthError("OUTAGE", "no answer");
  const noToken = "The access token could not be renewed for now.";
  expect(failureOf(outage)?.message).toBe(`${noToken} It is tried again at the next need, as when you ask for a sync.`);
});

const FAILURES: CrmFailure[] = [
  "UNAUTHORIZED",
  "ACCOUNT_CLOSED",
  "REFUSED",
  "NOT_FOUND",
  "RATE_LIMITED",
  "BUDGET_LOW",
  "UNAVAILABLE",
  "UNREADABLE",
];

// Seen red: a next run was promised where runs are only made by request, and by a run in which the list still rests.
test.each(FAILURES)("a run that %s ends, or a list that it leaves out, promises nothing of the next run", (failure) => {
  const error = new CrmError(failure, "");
  expect(failureOf(error)?.message).not.toMatch(/next run|by itself/);
  expect(gapOf("DEALS", error).message).not.toMatch(/next run|by itself/);
});

test.each(FAILURES)("what %s means is said in one file", (failure) => {
  const what = explain(failure, { todo: "" }).trim();
  const files = sourceFiles().filter((file) => readFileSync(join("src", file), "utf8").includes(what));
  expect(files).toEqual(["crm/errors.ts"]);
});
