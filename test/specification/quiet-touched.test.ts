import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import type * as crm from "../../src/crm/parsing/records";
import type { CopyScope } from "../../src/database/database";
import { type Writer, writeActivities, writeDeals, writeNotes, writePersons } from "../../src/sync/writers";
import { emptyCopy } from "../support/copy";
import { useDatabase } from "../support/world";

// Seen red with texts of JUDGED_BY left out, some at a time, and with nothing told of a record that is new.

const now = new Date("2026-11-20T12:00:00Z");
const [DEAL, OTHER_DEAL, PERSON] = [1, 2, 3];
const day = (of: number) => `2026-11-${String(of).padStart(2, "0")}T09:00:00.000Z`;
const records = {
  ownerId: 7,
  organizationId: 8,
  addTime: day(1),
  updateTime: day(2),
  customFields: {},
  deleted: false,
};
const others = { ownerId: 70, organizationId: 80, addTime: day(2), updateTime: day(19), customFields: { a: 1 } };

const deal: crm.CrmDeal = {
  ...{ ...records, id: DEAL, title: "", value: null, currency: null, status: "open", pipelineId: 1, stageId: null },
  ...{ personId: PERSON, participantsCount: 1, expectedCloseDate: null, stageChangeTime: null },
  ...{ wonTime: null, lostTime: null, closeTime: null, lostReason: null },
};
const noContact = { value: "a@b.example", label: null, primary: true };
const person: crm.CrmPerson = {
  ...{ ...records, id: PERSON, name: "Ada", emails: [], phones: [] },
  ...{ lastIncomingMailTime: day(5), lastOutgoingMailTime: day(6) },
};
const { customFields: _, ...activities } = records;
const planned: crm.CrmActivity = {
  ...{ ...activities, id: 5, subject: "Call", type: "call", dealId: DEAL, personId: PERSON, participantIds: [] },
  ...{ dueDate: "2026-11-25", dueTime: "00:00:00", done: false, doneTime: null },
};
const done = { ...planned, id: 6, done: true, dueDate: "2026-11-10", doneTime: day(10) };
/** Nobody says when; its last change does. */
const doneAnyTime = { ...done, id: 7, dueDate: "2026-11-15", doneTime: null };
const note: crm.CrmNote = {
  ...{
    id: 8,
    userId: 7,
    dealId: DEAL,
    personId: PERSON,
    organizationId: 8,
    content: "They called.",
    ending: "",
    truncated: false,
  },
  ...{ addTime: day(12), updateTime: day(12), deleted: false },
};

const { customFields: __, ...otherActivities } = others;
const otherActivity = {
  ...{ ...otherActivities, subject: "Chat", type: "task", dealId: OTHER_DEAL, personId: 30, participantIds: [PERSON] },
  ...{ dueDate: "2026-11-09", dueTime: null, doneTime: day(8) },
};

/** A record, each of its properties as it may become, and those of which the deal's silence may hang. */
interface Kind<T> {
  table: string;
  write: Writer<T>;
  record: T;
  becomes: Partial<T>;
  touching: (keyof T)[];
}
const kind = <T extends { id: number }>(of: Kind<T>) => ({
  table: of.table,
  id: of.record.id,
  touching: of.touching.map(String),
  properties: Object.keys(of.becomes),
  write: (changed: readonly string[]) =>
    of.write(
      [{ ...of.record, ...Object.fromEntries(Object.entries(of.becomes).filter(([key]) => changed.includes(key))) }],
      0,
    ),
});
const activity = (record: crm.CrmActivity, becomes: Partial<crm.CrmActivity>, touching: (keyof crm.CrmActivity)[]) =>
  kind<crm.CrmActivity>({
    table: "activity",
    write: writeActivities,
    record,
    becomes: { ...otherActivity, ...becomes },
    touching,
  });
const PLAN: (keyof crm.CrmActivity)[] = [
  "type",
  "dealId",
  "personId",
  "participantIds",
  "dueDate",
  "dueTime",
  "doneTime",
  "done",
];

const KINDS = {
  person: kind<crm.CrmPerson>({
    table: "person",
    write: writePersons,
    record: person,
    becomes: {
      ...{ ...others, name: "Eve", emails: [noContact], phones: [noContact] },
      ...{ lastIncomingMailTime: day(15), lastOutgoingMailTime: day(16) },
    },
    touching: ["lastIncomingMailTime", "lastOutgoingMailTime"],
  }),
  "activity that is planned": activity(planned, { done: true }, PLAN),
  "activity that is done": activity(done, { done: false }, PLAN),
  "activity that is done at any time": activity(doneAnyTime, { done: false }, [...PLAN, "updateTime"]),
  note: kind<crm.CrmNote>({
    table: "note",
    write: writeNotes,
    record: note,
    becomes: {
      ...{
        userId: 70,
        dealId: OTHER_DEAL,
        personId: 30,
        organizationId: 80,
        content: "Written by us.",
        truncated: true,
      },
      ...{ addTime: day(13), updateTime: day(19) },
    },
    touching: ["dealId", "content", "addTime"],
  }),
};

let copy: CopyScope;
const database = useDatabase();
beforeAll(async () => {
  copy = await emptyCopy(database, now);
  await writeDeals([deal, { ...deal, id: OTHER_DEAL, personId: 30 }], 0)(copy, now);
});

const facts = async () => JSON.stringify((await readQuietFacts(copy, [DEAL, OTHER_DEAL], now))?.deals);
const atLater = async (
  changed: readonly string[],
  write: (changed: readonly string[]) => ReturnType<typeof writeDeals>,
) => write(changed)(copy, now);

test.each(Object.entries(KINDS))(
  "%s: what the facts of silence read is told when it changes, and nothing else",
  async (_kind, { table, id, write, properties, touching }) => {
    const before = await facts();
    expect((await atLater([], write)).touched).toHaveLength(1);
    expect(await facts()).not.toBe(before);
    for (const property of properties) {
      const asItWas = await facts();
      const written = await atLater([property], write);
      const isTouched = touching.includes(property);
      expect({ property, written: written.ids.length, touched: written.touched.length }).toEqual({
        property,
        written: 1,
        touched: isTouched ? 1 : 0,
      });
      if (!isTouched) expect({ property, facts: await facts() }).toEqual({ property, facts: asItWas });
      if (property === "dealId") expect(written.left).toContain(DEAL);
      // An older state is never written over a newer one.
      await copy.rows(`UPDATE ${table} SET update_time = NULL WHERE crm_id = ${id}`);
      await atLater([], write);
      // What is kept of our first mail stays, whatever the CRM says later.
      await copy.rows(`UPDATE deal SET first_mail_at = NULL, first_mail_person_id = NULL WHERE crm_id = ${DEAL}`);
      expect(await facts()).toBe(asItWas);
    }
  },
);

test("where no deal is matched nothing is told, and as much is written", async () => {
  const written = await KINDS.person.write(["lastIncomingMailTime"])({ ...copy, hasMatchedDeals: false }, now);
  expect([written.ids, written.touched]).toEqual([[PERSON], []]);
});
