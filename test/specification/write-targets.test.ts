import { ENTITIES, type Entity, fieldOf, patches, recordPath, setMapping, writeFields } from "../support/fields";
import { askNote, posts } from "../support/notes";
import { dataOf, recordMeeting, until } from "../support/stories";
import { useCrm } from "../support/world";

// Seen red with: every record that a meeting makes readable taken for a target; a person or a company for want of a deal.

let copyId = 0;
const records = new Map<string, { entity: Entity; id: number }>();
const addresses = new Map<string, string>();

const { simulator, database, serve } = useCrm({ deals: 30 });
beforeAll(makeWorld);
const service = serve({ connected: ["acme"] });
beforeAll(async () => {
  // The match after the first sync is done: from here on only the tests match.
  await until(
    "matched after the sync",
    async () => (await database.query("SELECT 1 FROM synced_copy WHERE matched_as_whole")).length > 0,
  );
  for (const entity of ENTITIES) await setMapping(service, entity, fieldOf(simulator, entity, "varchar").field_code);
  copyId = (await database.query<{ copy_id: number }>("SELECT copy_id FROM connection"))[0]?.copy_id ?? 0;
});

/** Named records of the CRM, made by hand so that nothing but what is said here speaks for a deal. */
function makeWorld(): void {
  const know = (name: string, entity: Entity, id: number) => records.set(name, { entity, id });
  const organization = (name: string) =>
    know(name, "ORGANIZATION", simulator.control.add("organization", { name })).size;
  const person = (name: string, address: string, of?: string) => {
    const emails = [{ value: address, label: "work", primary: true }];
    know(name, "PERSON", simulator.control.add("person", { name, emails, org_id: of ? idOf(of) : null }));
    addresses.set(name, address);
  };
  const deal = (name: string, of: string, more: object = {}) => {
    const parent = records.get(of)?.entity === "PERSON" ? { person_id: idOf(of) } : { org_id: idOf(of) };
    know(name, "DEAL", simulator.control.add("deal", { title: name, ...parent, ...more }));
  };
  const longAgo = { status: "won", add_time: "2024-03-01T09:00:00Z", won_time: "2024-04-01T09:00:00Z" };
  const [seller, another] = [...simulator.company.users.values()].filter((user) => user.active_flag);
  if (!seller || !another) throw new Error("the company has too few users");
  addresses.set("seller", seller.email);
  for (const name of ["Single", "Several", "Lonely", "Shared A", "Shared B", "Domain"]) organization(name);
  person("Ada", "ada@single.example", "Single");
  person("Ann", "ann@single.example", "Single");
  deal("only deal", "Ada");
  person("Bea", "bea@several.example", "Several");
  deal("deal 1", "Bea", { owner_id: seller.id });
  deal("deal 2", "Bea", { owner_id: another.id });
  person("Lou", "lou@lonely.example", "Lonely");
  person("Liz", "liz@lonely.example", "Lonely");
  person("Dan", "dan@domain.example", "Domain");
  person("Dee", "dee@domain.example", "Domain");
  deal("deal of the company", "Domain");
  person("Sam A", "sam@shared.example", "Shared A");
  person("Sam B", "sam@shared.example", "Shared B");
  person("Tom A", "tom@twins.example");
  person("Tom B", "tom@twins.example");
  deal("deal of A", "Tom A");
  deal("deal of B", "Tom B");
  for (const name of ["Pia A", "Pia B"]) person(name, "pia@before.example");
  deal("old deal of A", "Pia A", longAgo);
  for (const name of ["Kim A", "Kim B"]) person(name, "kim@besides.example");
  person("Una", "una@elsewhere.example");
  deal("old deal of Una", "Una", longAgo);
  simulator.control.setParticipants(idOf("old deal of Una"), [idOf("Una"), idOf("Kim B")]);
}

const idOf = (name: string) => {
  const record = records.get(name);
  if (!record) throw new Error(`there is no ${name}`);
  return record.id;
};
const TYPES: Record<Entity, string> = { DEAL: "Deal", PERSON: "Person", ORGANIZATION: "Organization" };
const globalId = (name: string) =>
  Buffer.from(`${TYPES[records.get(name)?.entity ?? "DEAL"]}:${copyId}:${idOf(name)}`).toString("base64url");

const CHOOSE = `mutation ($meetingId: ID!, $dealId: ID!) { chooseDeal(meetingId: $meetingId, dealId: $dealId) {
  ... on MeetingSuccess { meeting { match { status } } } ... on Refusal { code } } }`;

interface Case {
  meeting: string;
  attendees: string[];
  ownerEmail?: string;
  status: "MATCHED" | "NEEDS_CHOICE" | "NONE";
  chosen?: string;
  /** What leaves the copy after the match, as a sync would remove it. */
  gone?: string;
  /** Where a note goes that names no target, and a value of each entity: a record, or the code of the refusal. */
  unnamed: [note: string, deal: string, person: string, organization: string];
  named: { targets: string[]; refused: string[] };
}

const CHOICE = "NEEDS_CHOICE";
const NOT = "TARGET_NOT_MATCHED";

const CASES: Case[] = [
  {
    meeting: "one deal",
    attendees: ["Ada"],
    status: "MATCHED",
    unnamed: ["only deal", "only deal", "Ada", "Single"],
    named: { targets: ["only deal", "Ada", "Single"], refused: ["Ann", "deal 1", "Lou", "Several"] },
  },
  {
    meeting: "one deal and two persons",
    attendees: ["Ada", "Ann"],
    status: "MATCHED",
    unnamed: ["only deal", "only deal", CHOICE, "Single"],
    named: { targets: ["only deal", "Ada", "Ann", "Single"], refused: [] },
  },
  {
    meeting: "a deal that a rule preferred to another",
    attendees: ["Bea"],
    ownerEmail: "seller",
    status: "MATCHED",
    unnamed: ["deal 1", "deal 1", "Bea", "Several"],
    named: { targets: ["deal 1", "Bea"], refused: ["deal 2"] },
  },
  {
    meeting: "two deals that could be meant",
    attendees: ["Bea"],
    status: "NEEDS_CHOICE",
    unnamed: [CHOICE, CHOICE, "Bea", "Several"],
    named: { targets: ["Bea", "Several"], refused: ["deal 1", "deal 2"] },
  },
  {
    meeting: "a deal that was chosen of two",
    attendees: ["Bea"],
    status: "MATCHED",
    chosen: "deal 2",
    unnamed: ["deal 2", "deal 2", "Bea", "Several"],
    named: { targets: ["deal 2"], refused: ["deal 1"] },
  },
  {
    meeting: "a chosen deal that is gone",
    attendees: ["Bea"],
    status: "MATCHED",
    chosen: "deal 2",
    gone: "deal 2",
    unnamed: [CHOICE, CHOICE, "Bea", "Several"],
    named: { targets: ["Bea"], refused: ["deal 1", "deal 2"] },
  },
  {
    meeting: "a matched deal that is gone",
    attendees: ["Ada"],
    status: "MATCHED",
    gone: "only deal",
    unnamed: [CHOICE, CHOICE, "Ada", "Single"],
    named: { targets: ["Ada", "Single"], refused: ["only deal"] },
  },
  {
    meeting: "one person without a deal",
    attendees: ["Lou"],
    status: "NONE",
    unnamed: ["Lou", NOT, "Lou", "Lonely"],
    named: { targets: ["Lou", "Lonely"], refused: ["Liz", "only deal"] },
  },
  {
    meeting: "one person who is gone",
    attendees: ["Lou"],
    status: "NONE",
    gone: "Lou",
    unnamed: [NOT, NOT, NOT, NOT],
    named: { targets: [], refused: ["Lou", "Lonely"] },
  },
  {
    meeting: "two persons without a deal",
    attendees: ["Lou", "Liz"],
    status: "NONE",
    unnamed: [CHOICE, NOT, CHOICE, "Lonely"],
    named: { targets: ["Lou", "Liz", "Lonely"], refused: [] },
  },
  {
    meeting: "one of two persons with one address",
    attendees: ["Sam A"],
    status: "NONE",
    unnamed: [NOT, NOT, NOT, NOT],
    named: { targets: [], refused: ["Sam A", "Sam B", "Shared A", "Shared B"] },
  },
  {
    meeting: "a person, and one of two without deals",
    attendees: ["Lou", "Sam A"],
    status: "NONE",
    unnamed: ["Lou", NOT, "Lou", "Lonely"],
    named: { targets: ["Lou", "Lonely"], refused: ["Sam A", "Sam B", "Shared A"] },
  },
  {
    meeting: "a person, and one of two who are on deals",
    attendees: ["Lou", "Tom A"],
    status: "NEEDS_CHOICE",
    unnamed: [CHOICE, CHOICE, "Lou", "Lonely"],
    named: { targets: ["Lou", "Lonely"], refused: ["Tom A", "deal of A", "deal of B"] },
  },
  // Planted and seen red, each: the note went to the person, who may have had nothing to do with what they spoke of.
  {
    meeting: "a person, and one of two of whom one had a deal long ago",
    attendees: ["Lou", "Pia A"],
    status: "NONE",
    unnamed: [CHOICE, NOT, "Lou", "Lonely"],
    named: { targets: ["Lou"], refused: ["Pia A", "Pia B", "old deal of A"] },
  },
  {
    meeting: "a person, and one of two of whom one took part in another's deal long ago",
    attendees: ["Lou", "Kim A"],
    status: "NONE",
    unnamed: [CHOICE, NOT, "Lou", "Lonely"],
    named: { targets: ["Lou"], refused: ["Kim A", "Kim B", "old deal of Una"] },
  },
  {
    meeting: "a company by its domain only",
    attendees: ["new@lonely.example"],
    status: "NONE",
    unnamed: [NOT, NOT, NOT, NOT],
    named: { targets: ["Lonely"], refused: ["Lou", "Liz"] },
  },
  {
    meeting: "a deal to which only a domain leads",
    attendees: ["new@domain.example"],
    status: "NEEDS_CHOICE",
    unnamed: [CHOICE, CHOICE, NOT, NOT],
    named: { targets: ["Domain"], refused: ["deal of the company", "Dan"] },
  },
  {
    meeting: "a person, and another company by its domain",
    attendees: ["Lou", "new@single.example"],
    status: "NONE",
    unnamed: ["Lou", NOT, "Lou", "Lonely"],
    named: { targets: ["Lou", "Lonely", "Single"], refused: ["Ada"] },
  },
  {
    meeting: "nobody known",
    attendees: ["who@nowhere.example"],
    status: "NONE",
    unnamed: [NOT, NOT, NOT, NOT],
    named: { targets: [], refused: ["Ada", "only deal", "Single"] },
  },
];

/** The meeting as it stands then, and what puts back what was taken out of the copy. */
async function prepare({ attendees, ownerEmail, status, chosen, gone }: Case) {
  const emails = attendees.map((name) => addresses.get(name) ?? name);
  const owner = ownerEmail ? { ownerEmail: addresses.get(ownerEmail) } : {};
  const { id, match } = await recordMeeting(service, emails, owner);
  const chosenNow = chosen && dataOf(await service.ask(CHOOSE, { meetingId: id, dealId: globalId(chosen) }));
  expect(chosenNow ? chosenNow : { chooseDeal: { meeting: { match: { status: match.status } } } }).toEqual({
    chooseDeal: { meeting: { match: { status } } },
  });
  if (!gone) return { id, restore: async () => undefined };
  const table = records.get(gone)?.entity.toLowerCase();
  const parameters = [copyId, idOf(gone)];
  await database.query(`CREATE TABLE kept AS SELECT * FROM ${table} WHERE copy_id = $1 AND crm_id = $2`, parameters);
  await database.query(`DELETE FROM ${table} WHERE copy_id = $1 AND crm_id = $2`, parameters);
  const restore = async () => {
    await database.query(`INSERT INTO ${table} SELECT * FROM kept`);
    await database.query("DROP TABLE kept");
  };
  return { id, restore };
}

type Member = "deal_id" | "person_id" | "org_id";
const MEMBERS: Record<Member, Entity> = { deal_id: "DEAL", person_id: "PERSON", org_id: "ORGANIZATION" };
const nameOf = (entity: Entity, id: number) =>
  [...records].find(([, record]) => record.entity === entity && record.id === id)?.[0] ?? `${entity} ${id}`;

/** Where the CRM's log shows a write to have gone; the code where none was sent, whatever else was. */
async function noted(meetingId: string, targetId?: string): Promise<string> {
  simulator.log.clear();
  const { code, field, write } = await askNote(service, { meetingId, targetId });
  if (code) return refusedWith(code, field, "targetId");
  const [sent, ...more] = posts(simulator).map(({ body }) => body as Record<Member, number | undefined>);
  expect([more, write?.state]).toEqual([[], "WRITTEN"]);
  for (const [member, entity] of Object.entries(MEMBERS) as [Member, Entity][]) {
    const id = sent?.[member];
    if (id !== undefined) return nameOf(entity, id);
  }
  return "nowhere";
}

async function valued(meetingId: string, entity: Entity, targetId?: string): Promise<string> {
  simulator.log.clear();
  const { code, field, writes } = await writeFields(service, meetingId, [{ entity, targetId, value: "seen" }]);
  if (code) return refusedWith(code, field, "values.0.targetId");
  const [sent, ...more] = patches(simulator);
  expect([more, writes?.map(({ state }) => state)]).toEqual([[], ["WRITTEN"]]);
  const id = Number(sent?.path.split("/").at(-1));
  return sent?.path === recordPath(entity, id) ? nameOf(entity, id) : "nowhere";
}

function refusedWith(code: string, field: string | null | undefined, expected: string): string {
  expect({ code, field, sent: simulator.log.all() }).toEqual({ code, field: expected, sent: [] });
  return code;
}

test.each(CASES)("$meeting: notes and values go where it is certain, and nowhere else", async (one) => {
  const { id, restore } = await prepare(one);
  try {
    const unnamed = [await noted(id)];
    for (const entity of ENTITIES) unnamed.push(await valued(id, entity));
    expect(unnamed).toEqual(one.unnamed);

    const asked = [...one.named.targets, ...one.named.refused];
    const found: Record<string, [string, string]> = {};
    for (const name of asked) {
      const entity = records.get(name)?.entity ?? "DEAL";
      found[name] = [await noted(id, globalId(name)), await valued(id, entity, globalId(name))];
    }
    expect(found).toEqual({
      ...Object.fromEntries(one.named.targets.map((name) => [name, [name, name]])),
      ...Object.fromEntries(one.named.refused.map((name) => [name, [NOT, NOT]])),
    });
  } finally {
    await restore();
  }
});

test("a candidate, a record of another meeting and one that does not exist are refused in the same words", async () => {
  const { id } = await recordMeeting(service, [addresses.get("Bea") ?? ""]);
  const unknown = Buffer.from(`Deal:${copyId}:99999999`).toString("base64url");
  const answers: unknown[] = [];
  for (const targetId of [globalId("deal 1"), globalId("only deal"), globalId("Sam A"), unknown, "nothing"]) {
    answers.push(await askNote(service, { meetingId: id, targetId }));
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
});
