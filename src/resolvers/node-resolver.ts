import { Arg, Ctx, ID, Query, Resolver } from "type-graphql";
import { seesAllWrites } from "../auth/policies";
import { readMeeting } from "../briefing/meeting-rows";
import type { WriteReceipt } from "../entities/write-receipt";
import { Node } from "../schema/node";
import { readRunsById } from "../sync/run-history";
import { FIELD, NOTE, type OfCompany, readReceipts, type WriteKind } from "../writeback/receipts";
import type { OperationContext } from "./context";
import { dealEdge, organizationEdge, personEdge, userEdge } from "./edges";
import { crmIdIn, decodeId, type NodeType, uuidIn } from "./global-id";
import { meetingIdIn } from "./meeting-resolver";
import {
  presentActivity,
  presentConnection,
  presentMeeting,
  presentNote,
  presentPipeline,
  presentRun,
  presentStage,
} from "./present";
import { presentFieldWrite, presentNoteWrite } from "./present-writes";

type Find = (context: OperationContext, id: string) => Promise<Node | null>;

/** Finds a record of the present copy by the CRM id in its global id. */
const inCopy =
  (type: NodeType, find: (context: OperationContext, crmId: number) => Promise<Node | null>): Find =>
  async (context, id) => {
    const copy = await context.copy();
    const crmId = copy && crmIdIn(id, type, copy.copyId);
    return crmId ? find(context, crmId) : null;
  };

/** A receipt that the actor may see. */
const ownReceipt =
  <Row extends WriteReceipt>(type: NodeType, kind: WriteKind<Row>, present: (row: Row & OfCompany) => Node): Find =>
  async ({ scope, actor }, id) => {
    const receiptId = uuidIn(id, type);
    if (!receiptId) return null;
    const [row] = await readReceipts(scope, kind, [receiptId], seesAllWrites(actor) ? null : actor.userId);
    return row ? present(row) : null;
  };

const FINDERS: Record<NodeType, Find> = {
  Connection: async (context, id) => {
    const { actor, services } = context;
    const [row, stop] = await Promise.all([context.connection(), services.crmStops.present()]);
    const own = presentConnection(actor, row, stop, services.clock());
    return own.id === id ? own : null;
  },
  SyncRun: async ({ scope }, id) => {
    const runId = uuidIn(id, "SyncRun");
    const [row] = runId ? await readRunsById(scope, [runId]) : [];
    return row ? presentRun(row) : null;
  },
  Meeting: async ({ scope }, id) => {
    const row = await readMeeting(scope, { id: meetingIdIn(id) ?? "" });
    return row && presentMeeting(row);
  },
  NoteWrite: ownReceipt("NoteWrite", NOTE, presentNoteWrite),
  FieldWrite: ownReceipt("FieldWrite", FIELD, presentFieldWrite),
  CrmUser: inCopy("CrmUser", userEdge),
  Deal: inCopy("Deal", dealEdge),
  Person: inCopy("Person", personEdge),
  Organization: inCopy("Organization", organizationEdge),
  Pipeline: inCopy("Pipeline", async ({ loaders }, id) => {
    const row = await loaders.pipeline.load(id);
    return row && presentPipeline(row);
  }),
  Stage: inCopy("Stage", async ({ loaders }, id) => {
    const row = await loaders.stage.load(id);
    return row && presentStage(row);
  }),
  Activity: inCopy("Activity", async ({ loaders }, id) => {
    const row = await loaders.activity.load(id);
    return row && presentActivity(row);
  }),
  Note: inCopy("Note", async ({ loaders }, id) => {
    const row = await loaders.note.load(id);
    return row && presentNote(row);
  }),
};

@Resolver()
export class NodeResolver {
  @Query(() => Node, {
    nullable: true,
    description: "Anything with a global id; null for unknown, foreign and never-matched ids alike.",
  })
  async node(@Arg("id", () => ID) id: string, @Ctx() context: OperationContext): Promise<Node | null> {
    const type = decodeId(id)?.type;
    return type !== undefined && Object.hasOwn(FINDERS, type) ? FINDERS[type as NodeType](context, id) : null;
  }
}
