import type { Simulator } from "../../simulator";
import type { Actor } from "../../src/auth/actor";
import type { AskedNote } from "../../src/writeback/notes";
import type { ActorClaims } from "./actors";
import type { TestDatabase } from "./database";
import type { GraphQLAnswer, Service } from "./service";
import { dataOf, type Refusal } from "./stories";

export const SHOWN_WRITE = `id entity state crmNoteId reference requestedBy requestedAt settledAt
  error { code message } meeting { id title } target { __typename id }`;
const WRITE_NOTE = `mutation ($input: WriteNoteInput!) { writeNote(input: $input) {
  ... on WriteNoteSuccess { write { ${SHOWN_WRITE} } } ... on Refusal { code message field } } }`;

export interface ShownWrite {
  id: string;
  entity: string;
  state: "WRITTEN" | "FAILED" | "UNKNOWN";
  crmNoteId: string | null;
  reference: string;
  requestedBy: string;
  requestedAt: string;
  settledAt: string | null;
  error: { code: string; message: string } | null;
  meeting: { id: string; title: string };
  target: { __typename: string; id: string } | null;
}

export interface NoteInput {
  meetingId: string;
  targetId?: string | null;
  content?: string;
  idempotencyKey?: string;
}

export type NoteAnswer = Partial<Refusal> & { write?: ShownWrite };

let keys = 0;

export async function askNote(service: Service, input: NoteInput, as?: ActorClaims): Promise<NoteAnswer> {
  keys += 1;
  const whole = { content: "We agreed on **next steps**.", idempotencyKey: `note-${keys}`, ...input };
  const answer: GraphQLAnswer<{ writeNote: NoteAnswer }> = await service.ask(WRITE_NOTE, { input: whole }, as);
  return dataOf(answer).writeNote;
}

/** A note that must not be refused; it may have failed. */
export async function writeNote(service: Service, input: NoteInput, as?: ActorClaims): Promise<ShownWrite> {
  const answer = await askNote(service, input, as);
  if (!answer.write) throw new Error(`writeNote was refused: ${answer.code} ${answer.message}`);
  return answer.write;
}

/** The notes of the CRM that carry a reference. */
export const notesWith = ({ company }: Simulator, reference: string) =>
  [...company.notes.values()].filter(({ content }) => content.includes(reference));

export const posts = ({ log }: Simulator) => log.of("POST", "/api/v1/notes");

/** A member of the tenant, as the domain knows one. */
export const seller = async (database: TestDatabase): Promise<Actor> => ({
  userId: "anna",
  tenant: "acme",
  tenantId: await database.tenantId("acme"),
  role: "member",
  plan: "sales",
  email: null,
  name: null,
  expiresAt: new Date("2100-01-01"),
});

/** A note on the meeting's own target, as the domain is asked for it. */
export const askedNote = (meetingId: string, idempotencyKey: string, content = idempotencyKey): AskedNote => ({
  meetingId,
  targetId: null,
  target: null,
  content,
  idempotencyKey,
  meeting: Buffer.from(meetingId, "base64url").toString().split(":")[1] ?? null,
});
