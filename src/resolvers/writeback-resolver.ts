import type { ClassType } from "type-graphql";
import { Args, Ctx, FieldResolver, Mutation, Query, Resolver, Root, Subscription, UseMiddleware } from "type-graphql";
import { writesShown } from "../auth/policies";
import { WRITE_SETTLED } from "../database/between-processes";
import type { MatchedEntity, MeetingRow } from "../entities/meeting";
import type { WriteReceipt } from "../entities/writeback";
import type { RelayPage } from "../schema/base";
import { Node } from "../schema/base";
import { Meeting } from "../schema/meeting";
import type { Refusal } from "../schema/refusal";
import type { WriteError, WriteState } from "../schema/writeback";
import {
  CrmWrite,
  CrmWriteConnection,
  CrmWritesArgs,
  FieldWrite,
  NoteWrite,
  WriteFieldsInput,
  WriteFieldsReport,
  WriteFieldsResult,
  WriteNoteInput,
  WriteNoteResult,
  WriteNoteSuccess,
} from "../schema/writeback";
import { FIELD, NOTE } from "../writeback/receipts";
import type { AskedTarget } from "../writeback/targets";
import {
  type AnyWriteRow,
  NEWEST_WRITE,
  type OfCompany,
  readReceipts,
  readWrite,
  readWrites,
} from "../writeback/write-history";
import type { EventContext, OperationContext } from "./context";
import { decodeId, Input, presentRefusal, refuseInvalidInput, relayPage, uuidIn } from "./inputs";
import { recordOf } from "./look-ups";
import { asNode } from "./root-resolvers";

const TARGETS: Record<string, MatchedEntity> = { Deal: "DEAL", Person: "PERSON", Organization: "ORGANIZATION" };

/** No meeting has this id: an id of anything else is taken for it, and finds nothing. */
const NO_MEETING = "00000000-0000-0000-0000-000000000000";

/** A record that can be written to, as its global id names it; null for anything else. */
function targetIn(id: string): AskedTarget {
  const { type = "", parts = [] } = decodeId(id) ?? {};
  const entity = Object.hasOwn(TARGETS, type) ? TARGETS[type] : undefined;
  const [copyId, crmId] = parts.map(Number);
  return entity && copyId && crmId ? { entity, copyId, id: crmId } : null;
}

type Receipt = WriteReceipt & OfCompany;

const TYPES = { DEAL: "Deal", PERSON: "Person", ORGANIZATION: "Organization" } as const;

/** One whose answer is still awaited may or may not be in the CRM: it is UNKNOWN. */
const stateOf = ({ state }: Receipt): WriteState => (state === "SENDING" ? "UNKNOWN" : state);

/** Receipts of notes and of fields have these fields in common. */
function receiptResolver(type: () => ClassType) {
  @Resolver(type)
  abstract class ReceiptResolver {
    @FieldResolver()
    state(@Root() row: Receipt): WriteState {
      return stateOf(row);
    }

    @FieldResolver()
    error(@Root() { errorCode, errorMessage }: Receipt): WriteError | null {
      return errorCode && { code: errorCode, message: errorMessage ?? "" };
    }

    @FieldResolver(() => Meeting, { nullable: true, description: "As recorded; null once it was deleted." })
    meeting(@Root() { meetingId }: Receipt, @Ctx() { loaders }: OperationContext): Promise<MeetingRow | null> {
      return loaders.meeting.load(meetingId);
    }

    @FieldResolver(() => Node, {
      nullable: true,
      description:
        "What was written to; null where it is no longer readable: disconnected, deleted or not matched any more.",
    })
    async target(@Root() receipt: Receipt, @Ctx() { loaders }: OperationContext): Promise<Node | null> {
      const type = TYPES[receipt.entity];
      const row = await recordOf<object>(loaders.records[type], receipt.of_present_company ? receipt.targetId : null);
      return row && asNode(type, row);
    }
  }
  return ReceiptResolver;
}

@Resolver(() => NoteWrite)
export class NoteWriteResolver extends receiptResolver(() => NoteWrite) {
  @Mutation(() => WriteNoteResult, {
    description: "Writes a note on a record that is certainly matched to the meeting. No request is ever sent twice.",
  })
  @UseMiddleware(refuseInvalidInput)
  async writeNote(
    @Input(() => WriteNoteInput, "The note.") { meetingId, targetId, content, idempotencyKey }: WriteNoteInput,
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
    return Object.assign(new WriteNoteSuccess(), { write: row });
  }

  @Query(() => CrmWriteConnection, {
    description:
      "What the service has written to the CRM or tried to. Owners and admins see all of it, members their own; by idempotencyKey everybody only their own.",
  })
  crmWrites(
    @Args(() => CrmWritesArgs) args: CrmWritesArgs,
    @Ctx() { actor, scope }: OperationContext,
  ): Promise<RelayPage<object>> {
    const list = { name: "crmWrites", of: actor.tenantId, order: NEWEST_WRITE };
    const meetingId = args.meetingId == null ? null : (uuidIn(args.meetingId, "Meeting") ?? NO_MEETING);
    const idempotencyKey = args.idempotencyKey ?? null;
    const filter = { meetingId, by: writesShown(actor, idempotencyKey !== null), idempotencyKey };
    return relayPage(list, args, async (page) => {
      const { rows, hasMore } = await readWrites(scope, filter, page);
      return {
        hasMore,
        rows: rows.map((written) => Object.assign(shownWrite(written), { position: written.position })),
      };
    });
  }

  @Subscription(() => CrmWrite, {
    description:
      "A write of the viewer that became WRITTEN or FAILED after it had been UNKNOWN, or under way for two seconds; once for each change, and it waits for the first. Nobody else is told, whatever the role.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changesOf(
        WRITE_SETTLED,
        (reads, id) => reads.once(`write ${id}`, () => readWrite(reads.scope, id)),
        ({ row }) => row.requestedBy,
      ),
  })
  writeSettled(@Root() written: AnyWriteRow): object {
    return shownWrite(written);
  }
}

@Resolver(() => FieldWrite)
export class FieldWriteResolver extends receiptResolver(() => FieldWrite) {
  @Mutation(() => WriteFieldsResult, {
    description:
      "Writes the nominated fields of records that are certainly matched to the meeting, one report for each value.",
  })
  @UseMiddleware(refuseInvalidInput)
  async writeFields(
    @Input(() => WriteFieldsInput, "The values.") { meetingId, values, idempotencyKey }: WriteFieldsInput,
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
    const found = new Map(rows.map((row) => [row.id, row]));
    const writes = ids.flatMap((id) => found.get(id) ?? []);
    // Of a person who is erased meanwhile there is nothing to report, and nothing is claimed.
    const allWritten = writes.length === ids.length && writes.every(({ state }) => state === "WRITTEN");
    return Object.assign(new WriteFieldsReport(), { writes, allWritten });
  }
}

const shownWrite = ({ kind, row }: AnyWriteRow) => asNode(kind === "NOTE" ? "NoteWrite" : "FieldWrite", row);
