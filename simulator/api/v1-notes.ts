import type { Note } from "../model/records";
import { toV1 } from "../model/times";
import type { Sort, SortKey } from "../model/views";
import { invalid, jsonText, notFound } from "./answer";
import type { Operation, World } from "./operation";
import { shownBy } from "./page-twists";
import {
  anyText,
  asStored,
  day,
  lenientQuery,
  numericFlag,
  PAGE_DEFAULT,
  type Query,
  type Rules,
  timeStamp,
  wholeNumber,
} from "./query";
import { pageOf, pageRules } from "./v1-page";

const sortable: readonly string[] = [
  "id",
  "user_id",
  "deal_id",
  "person_id",
  "org_id",
  "content",
  "add_time",
  "update_time",
];
const equalities = ["user_id", "deal_id", "person_id", "org_id", "lead_id", "project_id", "task_id"] as const;
const pins = ["lead", "deal", "organization", "person", "project", "task"] as const;

const rules: Rules = {
  ...pageRules,
  ...Object.fromEntries(equalities.map((name) => [name, name === "lead_id" ? anyText : wholeNumber])),
  ...Object.fromEntries(pins.map((name) => [`pinned_to_${name}_flag`, numericFlag])),
  sort: anyText,
  start_date: day,
  end_date: day,
  updated_since: timeStamp,
};

export function noteOperations(world: World): Operation[] {
  return [
    {
      path: "/api/v1/notes",
      cost: 20,
      answer: ({ user, query: raw, twist }) => {
        const query = lenientQuery(raw, rules);
        const notes = wanted(world.views.list(user, "note", sortOf(query)), query);
        const limit = String(Math.min(Number(query.limit ?? PAGE_DEFAULT), world.rules.notesPerPage));
        const page = pageOf(twist ? notes.filter(shownBy(twist)) : notes, { ...query, limit });
        const data = page.items.map((note) => world.texts.note(note, user.id)).join(",");
        const pagination = JSON.stringify(page.pagination);
        // An empty list is null here, not [].
        return jsonText(
          `{"success":true,"data":${data ? `[${data}]` : "null"},"additional_data":{"pagination":${pagination}}}`,
        );
      },
    },
    {
      path: "/api/v1/notes/:id",
      cost: 2,
      answer: ({ user, params }) => {
        const note = world.views.find(user, "note", Number(params.id));
        if (!note) throw notFound("Note");
        return jsonText(`{"success":true,"data":${world.texts.note(note, user.id)}}`);
      },
    },
  ];
}

function sortOf(query: Query): Sort {
  const [field, direction = "ASC", ...rest] = (query.sort ?? "id ASC").split(" ");
  if (!field || !sortable.includes(field) || !/^(asc|desc)$/i.test(direction) || rest.length > 0) {
    throw invalid(`sort: "${query.sort}" is not a field and a direction`);
  }
  return { field: field as SortKey, direction: /^desc$/i.test(direction) ? "desc" : "asc" };
}

/** By the list they were picked from: without it each page of a long walk would look at every note before it. */
const activeNotes = new WeakMap<readonly Note[], readonly Note[]>();

function wanted(visible: readonly Note[], query: Query): readonly Note[] {
  const active = activeNotes.get(visible) ?? visible.filter((note) => note.active_flag);
  activeNotes.set(visible, active);
  const tests = noteTests(query);
  return tests.length === 0 ? active : active.filter((note) => tests.every((test) => test(note)));
}

function noteTests(query: Query): ((note: Note) => boolean)[] {
  const tests: ((note: Note) => boolean)[] = [];
  for (const name of equalities) {
    const wanted = query[name];
    if (wanted !== undefined) tests.push((note) => String(note[name]) === wanted);
  }
  for (const name of pins) {
    const wanted = query[`pinned_to_${name}_flag`];
    if (wanted !== undefined) tests.push((note) => note[`pinned_to_${name}_flag`] === (wanted === "1"));
  }
  if (query.updated_since !== undefined) {
    const since = toV1(asStored(query.updated_since));
    tests.push((note) => note.update_time >= since);
  }
  const { start_date: first, end_date: last } = query;
  if (first !== undefined) tests.push((note) => note.add_time.slice(0, 10) >= first);
  if (last !== undefined) tests.push((note) => note.add_time.slice(0, 10) <= last);
  return tests;
}
