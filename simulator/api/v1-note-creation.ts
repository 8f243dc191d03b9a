import { blankNote } from "../model/blank";
import { recordsOf } from "../model/company";
import type { Note, User } from "../model/records";
import { seconds, v1Time, v2Time } from "../model/times";
import { inTheBin, jsonText, refusedV1 } from "./answer";
import { sanitisedHtml } from "./note-html";
import type { Operation, Twist, World } from "./operation";
import { type Body, bodyOf, isId, isInstant } from "./request-body";
import { isPurged } from "./v2-list";

/** "About 100,000 characters or 100 KB": the smaller of the two readings, so that who fits here fits there. */
const MOST_CONTENT_BYTES = 100_000;

const parents = {
  deal_id: { entity: "deal", name: "Deal" },
  person_id: { entity: "person", name: "Person" },
  org_id: { entity: "organization", name: "Organization" },
} as const;
/** Kinds of parents that this company has none of. */
const absent = { lead_id: "Lead", project_id: "Project", task_id: "Task" } as const;

/** Each flag needs the id beside it. */
const pins = {
  pinned_to_deal_flag: "deal_id",
  pinned_to_person_flag: "person_id",
  pinned_to_organization_flag: "org_id",
  pinned_to_lead_flag: "lead_id",
  pinned_to_project_flag: "project_id",
  pinned_to_task_flag: "task_id",
} as const;

const known = new Set(["content", "user_id", "add_time", ...Object.keys({ ...parents, ...absent, ...pins })]);

export function noteCreation(world: World): Operation {
  return {
    method: "POST",
    path: "/api/v1/notes",
    cost: 10,
    answer: (call) => {
      const body = bodyOf(call);
      checkShape(body);
      checkAuthor(world, call.user, body);
      for (const [member, parent] of Object.entries(parents)) checkParent(world, call.user, body[member], parent);
      for (const [member, name] of Object.entries(absent))
        if (member in body) throw refusedV1(404, `${name} not found`);
      const note = noteFrom(world, call.user, body);
      if (call.twist?.kind === "storedAs") note.content = String(call.twist.value);
      keep(world, note, call.twist);
      return jsonText(`{"success":true,"data":${world.texts.note(note, call.user.id)}}`, 201);
    },
  };
}

function checkShape(body: Body): void {
  const unknown = Object.keys(body).find((name) => !known.has(name));
  if (unknown !== undefined) throw refusedV1(400, `"${unknown}" is not allowed`);
  const { content, add_time, user_id } = body;
  if (typeof content !== "string" || content.trim() === "") throw refusedV1(400, "The content of the note is required");
  if (Buffer.byteLength(content) > MOST_CONTENT_BYTES) throw refusedV1(400, "The content of the note exceeds 100 KB");
  if (add_time !== undefined && !isV1Time(add_time)) throw refusedV1(400, "add_time must be YYYY-MM-DD HH:MM:SS");
  if (user_id !== undefined && !isId(user_id)) throw refusedV1(400, "user_id must be an integer");
  const ids = [...Object.keys(parents), ...Object.keys(absent)].filter((name) => name in body);
  for (const name of ids) checkIdOf(name, body[name]);
  if (ids.length === 0) throw refusedV1(400, "A note needs an organization, person, deal, lead or project");
  for (const [flag, id] of Object.entries(pins)) {
    const value = body[flag];
    if (value !== undefined && value !== 0 && value !== 1) throw refusedV1(400, `${flag} must be 0 or 1`);
    if (value === 1 && !(id in body)) throw refusedV1(400, `${flag} needs ${id}`);
  }
}

function checkIdOf(name: string, value: unknown): void {
  const isRight = name === "lead_id" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(String(value)) : isId(value);
  if (!isRight) throw refusedV1(400, `${name} must be ${name === "lead_id" ? "a UUID" : "an integer"}`);
}

function isV1Time(value: unknown): boolean {
  return (
    typeof value === "string" &&
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(value) &&
    isInstant(`${value.replace(" ", "T")}Z`)
  );
}

function checkAuthor({ company }: World, user: User, { user_id: author }: Body): void {
  if (author === undefined || author === user.id) return;
  if (user.is_admin === 0) throw refusedV1(403, "You do not have permissions to do this.");
  if (!company.users.has(Number(author))) throw refusedV1(404, "User not found or not accessible.");
}

type Parent = (typeof parents)[keyof typeof parents];

function checkParent(world: World, user: User, id: unknown, { entity, name }: Parent): void {
  if (id === undefined) return;
  const record = world.views.find(user, entity, Number(id));
  if (record === undefined || isPurged(record, world)) throw refusedV1(404, `${name} not found`);
  if (record.is_deleted) throw inTheBin(name);
  if ("is_archived" in record && record.is_archived) throw refusedV1(400, "Archived deals cannot be changed");
}

function noteFrom(world: World, user: User, body: Body): Note {
  const now = v1Time(seconds(world.now()));
  const note = blankNote({
    id: nextNoteId(world),
    user_id: (body.user_id as number | undefined) ?? user.id,
    content: sanitisedHtml(body.content as string),
    add_time: (body.add_time as string | undefined) ?? now,
  });
  note.update_time = now;
  for (const name of ["deal_id", "person_id", "org_id"] as const)
    note[name] = (body[name] as number | undefined) ?? null;
  for (const flag of Object.keys(pins) as (keyof typeof pins)[]) note[flag] = body[flag] === 1;
  const deal = note.deal_id === null ? undefined : world.company.deals.get(note.deal_id);
  // With the deal alone the CRM adds the deal's person and organization: one note shows on three records.
  if (deal && note.person_id === null && note.org_id === null) {
    note.person_id = deal.person_id;
    note.org_id = deal.org_id;
  }
  return note;
}

/** Ids only ever grow, so the last note has the highest. */
function nextNoteId({ company }: World): number {
  let last = 0;
  for (const id of company.notes.keys()) last = id;
  return last + 1;
}

function keep(world: World, note: Note, twist: Twist | undefined): void {
  if (twist?.kind === "ignored") return;
  world.company.notes.set(note.id, note);
  world.changed("note", note.id);
  if (note.deal_id === null) return;
  const deal = recordsOf(world.company, "deal").get(note.deal_id);
  if (deal) deal.update_time = v2Time(seconds(world.now()));
  world.changed("deal", note.deal_id);
}
