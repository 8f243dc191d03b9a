import { createUnionType, Field, Int, registerEnumType } from "type-graphql";
import { GAP_CODES, SYNC_ERROR_CODES, SYNC_KINDS, SYNC_RESOURCES, SYNC_STATES } from "../entities/sync-run";
import { Node } from "./node";
import { ObjectType } from "./object-type";
import { connectionOf } from "./page";
import { Refusal } from "./refusal";

export const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name]));

export const SyncKind = named(SYNC_KINDS);
registerEnumType(SyncKind, {
  name: "SyncKind",
  description: "What a run reads: everything, what changed, or everything in order to find what is gone.",
});

export const SyncState = named(SYNC_STATES);
registerEnumType(SyncState, { name: "SyncState", description: "Where a run or one of its steps stands." });

export const SyncResource = named(SYNC_RESOURCES);
registerEnumType(SyncResource, {
  name: "SyncResource",
  description: "The lists of the CRM, in the order in which a run reads them.",
});

export const SyncErrorCode = named(SYNC_ERROR_CODES);
registerEnumType(SyncErrorCode, { name: "SyncErrorCode", description: "Why a run failed." });

export const GapCode = named(GAP_CODES);
registerEnumType(GapCode, { name: "GapCode", description: "Why something is missing." });

@ObjectType({ description: "Something that is missing, so that nothing missing looks like nothing there." })
export class DataGap {
  @Field(() => SyncResource)
  resource!: string;

  @Field(() => GapCode, { description: "The reason, machine-readable." })
  code!: string;

  @Field(() => Int, { description: "How many records are touched." })
  count!: number;

  @Field(() => Date)
  since!: Date;

  @Field(() => String)
  message!: string;

  @Field(() => Date, {
    nullable: true,
    description: "By when it will be read at the present pace; null where that is not known.",
  })
  expectedBy!: Date | null;
}

@ObjectType({ description: "Why a run failed, and what to do." })
export class SyncError {
  @Field(() => SyncErrorCode)
  code!: string;

  @Field(() => String)
  message!: string;
}

@ObjectType({ description: "One list of the CRM within a run." })
export class SyncStep {
  @Field(() => SyncResource)
  resource!: string;

  @Field(() => SyncState)
  state!: string;

  @Field(() => Date, {
    nullable: true,
    description: "The updated_since that this resource was asked with; null where it was read whole.",
  })
  updatedSince!: Date | null;

  @Field(() => Int, { description: "Requests that were answered and committed." })
  requests!: number;

  @Field(() => Int)
  fetched!: number;

  @Field(() => Int, { description: "Records that were new or differed." })
  written!: number;

  @Field(() => Int)
  unchanged!: number;

  @Field(() => Int)
  removed!: number;

  @Field(() => Int, { description: "Records that could not be read; kept aside and counted, never dropped silently." })
  rejected!: number;
}

@ObjectType({ implements: Node, description: "One sync." })
export class SyncRun extends Node {
  @Field(() => SyncKind)
  kind!: string;

  @Field(() => SyncState)
  state!: string;

  @Field(() => Date)
  queuedAt!: Date;

  @Field(() => Date, { nullable: true })
  startedAt!: Date | null;

  @Field(() => Date, { nullable: true })
  finishedAt!: Date | null;

  @Field(() => [DataGap], {
    description: "What is missing although the run succeeded: participants of some deals, stages, pipelines.",
  })
  gaps!: DataGap[];

  @Field(() => SyncError, { nullable: true })
  error!: SyncError | null;

  runId!: string;
}

@ObjectType({ description: "How far something has come." })
export class Progress {
  @Field(() => Int, { description: "How many are done." })
  done!: number;

  @Field(() => Int, { description: "Of how many." })
  total!: number;
}

@ObjectType({ description: "The state of the synced copy." })
export class SyncStatus {
  @Field(() => SyncRun, { nullable: true, description: "The queued or running run." })
  current!: SyncRun | null;

  @Field(() => SyncRun, { nullable: true, description: "The run that ended last." })
  last!: SyncRun | null;

  @Field(() => Date, { nullable: true })
  lastSuccessAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "When the schedule syncs next; null where nothing is planned." })
  nextRunAt!: Date | null;

  @Field(() => [DataGap], { description: "What the synced copy lacks now, and since when; empty when it is whole." })
  gaps!: DataGap[];

  @Field(() => Progress, {
    nullable: true,
    description: "While meetings are matched again after a sync; null when none are.",
  })
  matching!: Progress | null;
}

export const SyncRunConnection = connectionOf("SyncRun", () => SyncRun, "Runs, newest first.");

@ObjectType()
export class SyncRequested {
  @Field(() => SyncRun)
  run!: SyncRun;
}

export const RequestSyncResult = createUnionType({
  name: "RequestSyncResult",
  types: () => [SyncRequested, Refusal] as const,
});
