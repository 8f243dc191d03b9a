import { type Clock, systemClock } from "../../src/platform/clock";
import type { Config } from "../../src/platform/config";
import { NoteLookUps } from "../../src/writeback/note-look-ups";
import { NoteWrites } from "../../src/writeback/note-writes";
import type { WritebackParts } from "../../src/writeback/writeback-parts";
import { startTokens, type TokenParts } from "./tokens";

export interface Writeback extends TokenParts {
  parts: WritebackParts;
  notes: NoteWrites;
  lookUps: NoteLookUps;
}

/** Writing with a pool of its own, composed as the service does it. */
export async function startWriteback(
  config: Pick<Config, "databaseUrl" | "crm" | "encryptionKeys" | "logLevel">,
  clock: Clock = systemClock,
): Promise<Writeback> {
  const access = await startTokens(config, () => ({ clock }));
  const parts: WritebackParts = {
    ...access,
    crmBaseUrl: config.crm.baseUrl,
    tokensOf: (tenantId, copyId) => access.tokens.of(tenantId, copyId),
  };
  return { ...access, parts, notes: new NoteWrites(parts), lookUps: new NoteLookUps(parts) };
}
