import "reflect-metadata";
import type { GraphQLSchema } from "graphql";
import { buildSchemaSync } from "type-graphql";
import { DateTimeScalar } from "../schema/scalars";
import { AuditResolver } from "./audit-resolver";
import { BriefingResolver } from "./briefing-resolver";
import { ConnectionResolver } from "./connection-resolver";
import { OrganizationResolver, PersonResolver } from "./contact-resolvers";
import { ActivityResolver, NoteResolver, PipelineResolver, StageResolver } from "./context-record-resolvers";
import { DealResolver } from "./deal-resolver";
import { describe } from "./describe";
import { NominatedFieldResolver } from "./field-resolver";
import { DealConnectionResolver, ListsResolver, MeetingConnectionResolver } from "./lists-resolver";
import { MeetingMatchResolver, MeetingResolver, PersonMatchResolver } from "./meeting-resolver";
import { NodeResolver } from "./node-resolver";
import { DealQuietResolver, InteractionResolver, QuietReasonResolver, TimelineResolver } from "./quiet-resolver";
import { QuietSettingsResolver } from "./quiet-settings-resolver";
import { SyncRunResolver } from "./sync-resolver";
import { ViewerResolver } from "./viewer-resolver";
import { FieldWriteResolver, NoteWriteResolver } from "./writeback-resolver";

/** Each subscription brings its own iterator; type-graphql wants a hub all the same, and this one is never used. */
function unusedHub(): never {
  throw new Error("subscriptions read rows and do not publish payloads");
}

/** The schema that the resolvers build. What a single input class cannot know is checked by the domain functions. */
export function buildGraphQLSchema(): GraphQLSchema {
  const schema = buildSchemaSync({
    resolvers: [
      ViewerResolver,
      AuditResolver,
      ConnectionResolver,
      NominatedFieldResolver,
      SyncRunResolver,
      NodeResolver,
      ListsResolver,
      DealConnectionResolver,
      MeetingConnectionResolver,
      DealResolver,
      PersonResolver,
      OrganizationResolver,
      StageResolver,
      PipelineResolver,
      ActivityResolver,
      NoteResolver,
      MeetingResolver,
      PersonMatchResolver,
      MeetingMatchResolver,
      BriefingResolver,
      DealQuietResolver,
      QuietReasonResolver,
      InteractionResolver,
      TimelineResolver,
      QuietSettingsResolver,
      NoteWriteResolver,
      FieldWriteResolver,
    ],
    scalarsMap: [{ type: Date, scalar: DateTimeScalar }],
    validate: false,
    pubSub: { publish: unusedHub, subscribe: unusedHub },
  });
  return describe(schema);
}
