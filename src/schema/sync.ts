import { Field, Int } from "type-graphql";
import type { GapCode, SyncErrorCode, SyncKind, SyncResource, SyncRunRow, SyncState } from "../entities/sync-run";
import { apiEnum, connectionOf, Node, ObjectType } from "./base";
import { resultOf } from "./refusal";

export const SyncKindEnum = apiEnum<SyncKind>(
  "SyncKind",
  "What a run reads: everything, what changed, or everything in order to find what is gone.",
  {
    FULL: "Everything; each first run is one. A later one does what RECONCILE does.",
    INCREMENTAL: "What has changed since each list was last read to its end.",
    RECONCILE: "Everything, so that what is gone from the CRM goes from the copy.",
  },
);

const SyncStateEnum = apiEnum<SyncState>("SyncState", "Where a run or one of its steps stands.", {
  QUEUED: "Waits for a worker: not begun, or a run between two of its turns.",
  RUNNING: "Under way.",
  SUCCEEDED: "Ended well, perhaps with gaps.",
  FAILED: "Ended with an error; what was read stays.",
  CANCELLED: "Ended by a disconnect or a new authorization; a step also where its run ended before it came to it.",
});

const SyncResourceEnum = apiEnum<SyncResource>(
  "SyncResource",
  "The lists of the CRM, in the order in which a run reads them.",
  {
    USERS: "The users of the CRM company.",
    PIPELINES: "The pipelines, for their names.",
    STAGES: "The stages, for their names.",
    ORGANIZATIONS: "The organizations.",
    PERSONS: "The persons with their addresses.",
    DEALS: "The deals.",
    ACTIVITIES: "Calls, meetings, tasks and the like.",
    NOTES: "The notes.",
    DEAL_PARTICIPANTS: "Who takes part in each deal.",
  },
);

const SyncErrorCodeEnum = apiEnum<SyncErrorCode>("SyncErrorCode", "Why a run failed.", {
  RATE_LIMITED: "The CRM's request limit is used up.",
  CRM_UNAVAILABLE: "The CRM could not be reached or had a fault.",
  CRM_REFUSED: "The CRM refused a request.",
  CRM_ACCOUNT_CLOSED: "The CRM company's account is not open.",
  CRM_ANSWER_UNREADABLE: "The CRM's answer made no sense.",
  NEEDS_REAUTHORIZATION: "The CRM no longer accepts the authorization.",
  BUDGET_LOW:
    "This service's share of the CRM's daily tokens is used up, or little is left for the company's other apps.",
  INTERNAL: "A fault of this service.",
});

const GapCodeEnum = apiEnum<GapCode>("GapCode", "Why something is missing.", {
  NOT_READ_YET: "It was not asked for yet, or only in part.",
  RATE_LIMITED: "The CRM's request limit was used up.",
  CRM_UNAVAILABLE: "The CRM could not be reached or had a fault.",
  CRM_REFUSED: "The CRM refused it to the authorizing user.",
  CRM_ANSWER_UNREADABLE: "The CRM's answer made no sense.",
  RECORD_NOT_FOUND: "A record that is named here is not shown to the authorizing user, or is gone.",
  NOT_SHOWN: "The CRM showed so few records that what is held was kept as it was.",
  RECORDS_UNREADABLE: "Single records could not be read.",
});

@ObjectType({ description: "Something that is missing, so that nothing missing looks like nothing there." })
export class DataGap {
  @Field(() => SyncResourceEnum, { description: "Which list of the CRM is not whole." })
  resource!: SyncResource;

  @Field(() => GapCodeEnum, { description: "The reason, machine-readable." })
  code!: GapCode;

  @Field(() => Int, { description: "How many records are touched; 1 where the list as a whole is." })
  count!: number;

  @Field(() => Date, { description: "Since when." })
  since!: Date;

  @Field(() => String, { description: "In plain words, for people." })
  message!: string;

  @Field(() => Date, {
    nullable: true,
    description: "By when it will be read at the present pace; null where that is not known.",
  })
  expectedBy!: Date | null;
}

@ObjectType({ description: "Why a run failed, and what to do." })
export class SyncError {
  @Field(() => SyncErrorCodeEnum, { description: "Machine-readable." })
  code!: SyncErrorCode;

  @Field(() => String, { description: "What happened and what to do." })
  message!: string;
}

@ObjectType({
  description:
    "One list of the CRM within a run. Of DEAL_PARTICIPANTS `requests` and `fetched` count deals, `written` and `removed` who takes part in them, `unchanged` nothing.",
})
export class SyncStep {
  @Field(() => SyncResourceEnum, { description: "Which list." })
  resource!: SyncResource;

  @Field(() => SyncStateEnum, { description: "Where it stands." })
  state!: SyncState;

  @Field(() => Date, {
    nullable: true,
    description:
      "The first updated_since that this resource was asked with; null where it was asked with none, as where it is only read whole.",
  })
  updatedSince!: Date | null;

  @Field(() => Int, { description: "Requests of which it is committed what came of them." })
  requests!: number;

  @Field(() => Int, { description: "Records that the CRM sent." })
  fetched!: number;

  @Field(() => Int, { description: "Records that were new or differed." })
  written!: number;

  @Field(() => Int, { description: "Records that were there already, the same." })
  unchanged!: number;

  @Field(() => Int, { description: "Records that are gone from the CRM." })
  removed!: number;

  @Field(() => Int, { description: "Records that could not be read; kept aside and counted, never dropped silently." })
  rejected!: number;
}

@ObjectType({ implements: Node, description: "One sync." })
export class SyncRun extends Node {
  @Field(() => SyncKindEnum, { description: "What it reads." })
  kind!: SyncKind;

  @Field(() => SyncStateEnum, { description: "Where it stands." })
  state!: SyncState;

  @Field(() => Date, { description: "When it was asked for." })
  queuedAt!: Date;

  @Field(() => Date, { nullable: true, description: "When a worker took it; null before." })
  startedAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "When it ended, however; null before." })
  finishedAt!: Date | null;

  @Field(() => [DataGap], {
    description: "What the synced copy lacked when the run succeeded or failed; empty before, and of a cancelled one.",
  })
  gaps!: DataGap[];

  @Field(() => SyncError, { nullable: true, description: "Why it failed; null unless it did." })
  error!: SyncError | null;
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

  @Field(() => Date, { nullable: true, description: "When a run last succeeded; null before the first." })
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

@ObjectType({ description: "The sync is queued." })
export class SyncRequested {
  @Field(() => SyncRun, { description: "The run to follow." })
  run!: SyncRunRow;
}

export const RequestSyncResult = resultOf("RequestSyncResult", () => SyncRequested);
