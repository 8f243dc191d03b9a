import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CrmError, type CrmFailure, explain } from "../../src/crm/errors";
import { OAuthError } from "../../src/crm/oauth";
import { failureOf } from "../../src/sync/failures";
import { certainFailureOf } from "../../src/writeback/outcomes";
import { sourceFiles } from "../support/syntax";

// Seen red with: a sentence of an explanation written again in another file.

const ACCOUNT = "The CRM company's account is not open: its trial is over or it is unpaid. Settle that with the CRM.";

test("a run and a write say the same of what happened, and each what follows for it", () => {
  const closed = new CrmError("ACCOUNT_CLOSED", "402", { status: 402 });
  expect([failureOf(closed)?.message, certainFailureOf(closed)?.message]).toEqual([ACCOUNT, ACCOUNT]);
  const limited = new CrmError("RATE_LIMITED", "429", { status: 429 });
  const what = "The CRM's request limit is used up; other apps share it.";
  expect(failureOf(limited)?.message).toBe(`${what} The next run goes on from here.`);
  expect(certainFailureOf(limited)?.message).toBe(`${what} Try again later with a new idempotency key.`);
  const outage = new OAuthError("OUTAGE", "no answer");
  expect(failureOf(outage)?.message).toBe("The access token could not be renewed for now. The next run tries again.");
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

test.each(FAILURES)("what %s means is said in one file", (failure) => {
  const what = explain(failure, { todo: "" }).trim();
  const files = sourceFiles().filter((file) => readFileSync(join("src", file), "utf8").includes(what));
  expect(files).toEqual(["crm/errors.ts"]);
});
