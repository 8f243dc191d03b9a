import { setTimeout as sleep } from "node:timers/promises";
import type { Credential } from "../../../src/connections/credentials";
import type { RenewalParts } from "../../../src/connections/renewal";
import { readConfig } from "../../../src/platform/config";
import { withTransactions } from "../database";
import { startTokens } from "../tokens";

/** Where the renewal dies. At REQUEST_SENT it lives on until somebody else kills it. */
export type Death =
  | "BEFORE_THE_ATTEMPT"
  | "BEFORE_THE_REQUEST"
  | "REQUEST_SENT"
  | "ANSWER_READ"
  | "BEFORE_THE_COMMIT"
  | "COMMITTED"
  | "PROOF_READ"
  | "BEFORE_THE_PROOF"
  | "PROVEN";

const { DEATH, JITTER_MS, TENANT = "", COPY_ID } = process.env;

/** Ends this process as a power cut would, a little later than the point itself. */
async function dieAt(death: Death): Promise<void> {
  if (DEATH !== death) return;
  await sleep(Number(JITTER_MS));
  process.kill(process.pid, "SIGKILL");
  await sleep(60_000);
}

/** The usual parts of a renewal, each of which ends the process at its own point. */
function mortal({ database, oauth, credentials }: RenewalParts): Partial<RenewalParts> {
  const read = credentials.read.bind(credentials);
  const replace = credentials.replace.bind(credentials);
  const prove = credentials.prove.bind(credentials);
  let transactions = 0;
  credentials.read = async (scope, copyId): Promise<Credential | null> => {
    const credential = await read(scope, copyId);
    await dieAt("BEFORE_THE_ATTEMPT");
    return credential;
  };
  credentials.replace = async (...change) => {
    const replaced = await replace(...change);
    await dieAt("BEFORE_THE_COMMIT");
    return replaced;
  };
  credentials.prove = async (...proof) => {
    const proven = await prove(...proof);
    await dieAt("BEFORE_THE_PROOF");
    return proven;
  };
  // The first stores the pair, the second whose it is.
  const dying = withTransactions(database, async (transaction, work) => {
    transactions += 1;
    const isPair = transactions === 1;
    if (!isPair) await dieAt("PROOF_READ");
    const result = await transaction(work);
    await dieAt(isPair ? "COMMITTED" : "PROVEN");
    return result;
  });
  const refresh: RenewalParts["oauth"]["refresh"] = async (refreshToken) => {
    await dieAt("BEFORE_THE_REQUEST");
    const grant = await oauth.refresh(refreshToken);
    await dieAt("ANSWER_READ");
    return grant;
  };
  return { database: dying, oauth: { refresh } };
}

/** Renews the access token of TENANT's copy COPY_ID and dies of it at DEATH. */
async function main(): Promise<void> {
  const { tokens, close } = await startTokens(readConfig(process.env), mortal);
  await tokens.of(Number(TENANT), Number(COPY_ID)).current();
  await close();
}

void main();
