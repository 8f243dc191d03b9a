import { Args, Ctx, FieldResolver, Mutation, Query, Resolver, Root, UseMiddleware } from "type-graphql";
import { seesAllWrites } from "../auth/policies";
import type { MatchedEntity } from "../entities/meeting";
import { Meeting } from "../schema/meeting";
import { Node } from "../schema/node";
import type { RelayPage } from "../schema/page";
import type { Refusal } from "../schema/refusal";
import {
  CrmWriteConnection,
  CrmWritesArgs,
  FieldWrite,
  NoteWrite,
  WriteFieldsInput,
  WriteFieldsReport,
  WriteFieldsResult,
  type WriteLinks,
  WriteNoteInput,
  WriteNoteResult,
  WriteNoteSuccess,
  WriteState,
} from "../schema/writeback";
import { FIELD, NOTE, readReceipts } from "../writeback/receipts";
import type { AskedTarget } from "../writeback/targets";
import { NEWEST_WRITE, readWrites } from "../writeback/write-history";
import type { OperationContext } from "./context";
import { dealEdge, organizationEdge, personEdge } from "./edges";
import { decodeId, uuidIn } from "./global-id";
import { Input, refuseInvalidInput } from "./invalid-input";
import { relayPage } from "./pages";
import { presentMeeting, presentRefusal } from "./present";
import { presentFieldWrite, presentNoteWrite, presentWrite } from "./present-writes";

const TARGET =
  "What was written to; null where it is no longer readable: disconnected, deleted or not matched any more.";

const MEETING = "As recorded; null once it was deleted.";

const TARGETS: Record<string, MatchedEntity> = { Deal: "DEAL", Person: "PERSON", Organization: "ORGANIZATION" };

/** What the id of anything but a meeting is taken for. */
const NO_MEETING = "00000000-0000-0000-0000-000000000000";

/** A record that can be written to, as its global id names it; null for anything else. */
function targetIn(id: string): AskedTarget {
  const { type = "", parts = [] } = decodeId(id) ?? {};
  const entity = Object.hasOwn(TARGETS, type) ? TARGETS[type] : undefined;
  const [copyId, crmId] = parts.map(Number);
  return entity && copyId && crmId ? { entity, copyId, id: crmId } : null;
}

@Resolver(() => NoteWrite)
export class NoteWriteResolver {
  @Mutation(() => WriteNoteResult, {
    description: "Writes a note on a record that is certainly matched to the meeting. No request is ever sent twice.",
  })
  @UseMiddleware(refuseInvalidInput)
  async writeNote(
    @Input(() => WriteNoteInput) { meetingId, targetId, content, idempotencyKey }: WriteNoteInput,
    @Ctx() context: OperationContext,
  ): Promise<WriteNoteSuccess | Refusal> {
    const written = await context.services.noteWrites.write(context.actor, {
      meetingId,
      targetId: targetId ?? null,
      content,
      idempotencyKey,
      meeting: uuidIn(meetingId, "Meeting"),
      target: targetId == null ? null : targetIn(targetId),
    });
    context.renew();
    if (!written.ok) return presentRefusal(written);
    const [row] = await readReceipts(context.scope, NOTE, [written.value.id]);
    if (!row) throw new Error(`receipt ${written.value.id} was made and is not there`);
    return Object.assign(new WriteNoteSuccess(), { write: presentNoteWrite(row) });
  }

  @Query(() => CrmWriteConnection, {
    description:
      "What the service has written to the CRM or tried to. Owners and admins see all of it, members their own; by idempotencyKey everybody only their own.",
  })
  crmWrites(
    @Args(() => CrmWritesArgs) args: CrmWritesArgs,
    @Ctx() { actor, scope }: OperationContext,
  ): Promise<RelayPage<NoteWrite | FieldWrite>> {
    const list = { name: "crmWrites", of: actor.tenantId, order: NEWEST_WRITE };
    const meetingId = args.meetingId == null ? null : (uuidIn(args.meetingId, "Meeting") ?? NO_MEETING);
    const idempotencyKey = args.idempotencyKey ?? null;
    const by = idempotencyKey === null && seesAllWrites(actor) ? null : actor.userId;
    const filter = { meetingId, by, idempotencyKey };
    return relayPage(list, args, (page) => readWrites(scope, filter, page), presentWrite);
  }

  @FieldResolver(() => Meeting, { nullable: true, description: MEETING })
  meeting(@Root() { links }: NoteWrite, @Ctx() context: OperationContext): Promise<Meeting | null> {
    return meetingOf(context, links);
  }

  @FieldResolver(() => Node, { nullable: true, description: TARGET })
  target(@Root() { links }: NoteWrite, @Ctx() context: OperationContext): Promise<Node | null> {
    return targetOf(context, links);
  }
}

@Resolver(() => FieldWrite)
export class FieldWriteResolver {
  @Mutation(() => WriteFieldsResult, {
    description:
      "Writes the nominated fields of records that are certainly matched to the meeting, one report for each value.",
  })
  @UseMiddleware(refuseInvalidInput)
  async writeFields(
    @Input(() => WriteFieldsInput) { meetingId, values, idempotencyKey }: WriteFieldsInput,
    @Ctx() context: OperationContext,
  ): Promise<WriteFieldsReport | Refusal> {
    const written = await context.services.fieldWrites.write(context.actor, {
      meetingId,
      idempotencyKey,
      meeting: uuidIn(meetingId, "Meeting"),
      values: values.map(({ entity, targetId, value }) => ({
        entity,
        value,
        targetId: targetId ?? null,
        target: targetId == null ? null : targetIn(targetId),
      })),
    });
    context.renew();
    if (!written.ok) return presentRefusal(written);
    const ids = written.value.map(({ id }) => id);
    const rows = await readReceipts(context.scope, FIELD, ids);
    const found = new Map(rows.map((row) => [row.id, presentFieldWrite(row)]));
    const writes = ids.flatMap((id) => found.get(id) ?? []);
    const allWritten = writes.every(({ state }) => state === WriteState.WRITTEN);
    return Object.assign(new WriteFieldsReport(), { writes, allWritten });
  }

  @FieldResolver(() => Meeting, { nullable: true, description: MEETING })
  meeting(@Root() { links }: FieldWrite, @Ctx() context: OperationContext): Promise<Meeting | null> {
    return meetingOf(context, links);
  }

  @FieldResolver(() => Node, { nullable: true, description: TARGET })
  target(@Root() { links }: FieldWrite, @Ctx() context: OperationContext): Promise<Node | null> {
    return targetOf(context, links);
  }
}

async function meetingOf({ loaders }: OperationContext, links: WriteLinks): Promise<Meeting | null> {
  const row = await loaders.meeting.load(links.meeting);
  return row && presentMeeting(row);
}

const EDGES = { DEAL: dealEdge, PERSON: personEdge, ORGANIZATION: organizationEdge } as const;

function targetOf(context: OperationContext, { entity, target }: WriteLinks): Promise<Node | null> {
  return EDGES[entity](context, target);
}
