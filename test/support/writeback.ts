import type { AccessTokenParts } from "../../src/connections/access-tokens";
import { FieldMappings } from "../../src/connections/field-mappings";
import type { RenewalParts } from "../../src/connections/renewal";
import { CrmApi } from "../../src/crm/api";
import type { CrmHttp } from "../../src/crm/http";
import { type Clock, systemClock } from "../../src/platform/clock";
import type { Config } from "../../src/platform/config";
import { FieldWrites } from "../../src/writeback/fields";
import { NoteWrites, type NoteWritesParts } from "../../src/writeback/notes";
import { startTokens, type TokenParts } from "./tokens";
import { useStarted, type World } from "./world";

export interface Writeback extends TokenParts {
  parts: NoteWritesParts;
  notes: NoteWrites;
  lookUps: NoteWrites["lookUps"];
}

interface WritebackChange {
  waitMs?: number;
  http?: CrmHttp;
  change?(parts: RenewalParts): Partial<AccessTokenParts>;
}

/** Writing with a pool of its own, composed as the service does it. */
export async function startWriteback(
  config: Pick<Config, "databaseUrl" | "crm" | "encryptionKeys" | "logLevel">,
  clock: Clock = systemClock,
  { waitMs, http, change }: WritebackChange = {},
): Promise<Writeback> {
  const access = await startTokens(config, (parts) => ({ clock, ...change?.(parts) }), http);
  const parts: NoteWritesParts = {
    ...access,
    waitMs,
    crmBaseUrl: config.crm.baseUrl,
    tokensOf: (tenantId, copyId) => access.tokens.of(tenantId, copyId),
    stopped: async () => null,
  };
  const notes = new NoteWrites(parts);
  return { ...access, parts, notes, lookUps: notes.lookUps };
}

/** Writing fields, beside it. */
export function fieldWritesOf({ parts }: Writeback): FieldWrites {
  const { http, crmBaseUrl, tokensOf } = parts;
  const apiOf = (tenantId: number, copyId: number) =>
    new CrmApi({ http, baseUrl: crmBaseUrl, tokens: tokensOf(tenantId, copyId) });
  return new FieldWrites({ ...parts, mappings: new FieldMappings({ ...parts, apiOf }) });
}

/** For all tests of a file. */
export function useWriteback(world: World, clock?: Clock): Writeback {
  return useStarted(async () => {
    const writeback = await startWriteback(world.config, clock);
    return { ...writeback, stop: writeback.close };
  });
}
