import { createHash } from "node:crypto";
import { once } from "node:events";
import { readConfig } from "../../../src/platform/config";
import type { Secret } from "../../../src/platform/keyring";
import { startTokens } from "../tokens";

/** What one process of callers saw; the tokens only as hashes. */
export interface CallersReport {
  tokens: string[];
  failures: string[];
}

/**
 * CALLERS callers of one process that need the access token of TENANT's copy COPY_ID at once, half of them because
 * the CRM refused the stored one. Says `ready`, waits for SIGUSR2 so that processes begin together, and prints a
 * CallersReport.
 */
async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const tenantId = Number(env.TENANT);
  const copyId = Number(env.COPY_ID);
  const { tokens, database, credentials, close } = await startTokens(readConfig(env));
  const stored = await credentials.read(database.tenant(tenantId), copyId);
  if (!stored) throw new Error(`tenant ${tenantId} has no credential`);
  const go = once(process, "SIGUSR2");
  process.stdout.write("ready\n");
  await go;

  const source = tokens.of(tenantId, copyId);
  const need = (caller: number): Promise<Secret> =>
    caller % 2 ? source.current() : source.renewed(stored.accessToken);
  const outcomes = await Promise.allSettled(Array.from({ length: Number(env.CALLERS) }, (_, caller) => need(caller)));
  const seen = new Set<string>();
  const failures: string[] = [];
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") seen.add(createHash("sha256").update(outcome.value.reveal()).digest("hex"));
    else failures.push(String(outcome.reason));
  }
  const report: CallersReport = { tokens: [...seen], failures };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  await close();
}

void main(process.env);
