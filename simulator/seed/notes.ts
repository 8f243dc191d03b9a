import { blankNote } from "../model/blank";
import type { Note } from "../model/records";
import { DAY, HOUR, v1Time } from "../model/times";
import { firstId, must, nextId, type SeedContext } from "./context";
import type { Random } from "./random";
import { noteSentences } from "./words";

export function seedNotes(context: SeedContext): void {
  const random = context.random.stream("notes");
  for (let index = 0; index < context.counts.notes; index++) {
    const target = random.next();
    const deal = target < 0.8 ? must(context.company.deals.get(random.pick(context.pool.deals))) : null;
    const silentSince = deal === null ? undefined : context.pool.silentSince.get(deal.id);
    const latest = silentSince ?? context.now - HOUR;
    const note = addNote(context, {
      content: contentOf(random),
      userId: deal?.owner_id ?? random.pick(context.pool.sellers),
      added: latest - Math.floor(random.next() ** 2 * 400 * DAY),
    });
    if (deal !== null) {
      // The CRM fills in the deal's person and organization by itself.
      note.deal_id = deal.id;
      note.person_id = deal.person_id;
      note.org_id = deal.org_id;
      note.pinned_to_deal_flag = random.chance(0.05);
    } else if (target < 0.9) {
      note.person_id = random.pick(context.pool.persons);
    } else {
      note.org_id = random.pick(context.pool.organizations);
    }
    if (random.chance(0.03)) note.active_flag = false;
  }
}

export function addNote(context: SeedContext, plan: { content: string; userId: number; added: number }): Note {
  const note = blankNote({
    id: nextId(context.company.notes, firstId.note),
    user_id: plan.userId,
    content: plan.content,
    add_time: v1Time(plan.added),
  });
  context.company.notes.set(note.id, note);
  return note;
}

function contentOf(random: Random): string {
  const first = `<p>${random.pick(noteSentences)}</p>`;
  if (random.chance(0.4)) return first;
  if (random.chance(0.5)) return `${first}<p><b>Next:</b> ${random.pick(noteSentences)}</p>`;
  return `${first}<ul><li>${random.pick(noteSentences)}</li><li>${random.pick(noteSentences)}</li></ul>`;
}
