import { type Client, connect, idsOf, type Participant, useClient, type WireRecord } from "./client";

let userId: number;

const { simulator, client, clock } = useClient({ deals: 60 });
beforeEach(() => {
  userId = simulator.company.stories.singleDeal.ownerId;
  clock.advance(60);
});

const story = () => simulator.company.stories.singleDeal;
const now = () => clock.now().toISOString().replace(".000Z", "Z");
const participantsOf = async (dealId: number) =>
  (await client.list<Participant>(`/api/v1/deals/${dealId}/participants`)).map((item) => item.person_id.value);

test("participants are swapped without a trace on the deal, or with a new update time", async () => {
  const { dealId, participantIds } = story();
  const [first = 0] = participantIds;
  const stranger = simulator.control.add("person");
  const deal = () => client.one(`/api/v2/deals/${dealId}?include_fields=participants_count`);
  const before = await deal();
  simulator.control.setParticipants(dealId, [first, stranger]);
  expect(await participantsOf(dealId)).toEqual([first, stranger]);
  expect(await deal()).toEqual(before);
  simulator.control.setParticipants(dealId, [first, stranger], "moves");
  expect(await deal()).toEqual({ ...before, update_time: now() });
});

test("a merged person is gone; its deals, activities, notes and seats hang on the winner with their old times", async () => {
  const { dealId, personId, noteId, doneActivityId } = story();
  const winner = simulator.control.add("person", { name: "The Winner" });
  const paths = [`/api/v2/deals/${dealId}`, `/api/v2/activities/${doneActivityId}`, `/api/v1/notes/${noteId}`];
  const read = () => Promise.all(paths.map((path) => client.one(path)));
  const before = await read();
  expect(await participantsOf(dealId)).toContain(personId);
  simulator.control.merge("person", personId, winner);
  const after = await read();
  expect(after.map((record) => record.person_id)).toEqual([winner, winner, winner]);
  expect(after.map((record) => record.update_time)).toEqual(before.map((record) => record.update_time));
  const seats = await participantsOf(dealId);
  expect([seats.includes(personId), seats.includes(winner)]).toEqual([false, true]);
  expect(idsOf(await client.list(`/api/v2/persons?ids=${personId},${winner}`))).toEqual([winner]);
  expect(await client.one(`/api/v2/persons/${winner}`)).toMatchObject({ name: "The Winner", update_time: now() });
});

test("with told times a merge moves those of what it moved", async () => {
  const { organizationId, personId, dealId } = await employed();
  const winner = simulator.control.add("organization");
  simulator.control.merge("organization", organizationId, winner, "move");
  for (const path of [`/api/v2/persons/${personId}`, `/api/v2/deals/${dealId}`]) {
    expect(await client.one(path)).toMatchObject({ org_id: winner, update_time: now() });
  }
  expect(await client.one(`/api/v2/organizations/${organizationId}`)).toMatchObject({ is_deleted: true });
});

async function employed() {
  const { personId, dealId } = story();
  const organizationId = simulator.control.add("organization");
  simulator.control.change("person", personId, { org_id: organizationId });
  simulator.control.change("deal", dealId, { org_id: organizationId });
  clock.advance(60);
  return { organizationId, personId, dealId };
}

test("a merged deal gives its notes and participants to the winner", async () => {
  const { dealId, noteId } = story();
  const persons = await participantsOf(dealId);
  const winner = simulator.control.add("deal", { visible_to: 7 });
  const stranger = simulator.control.add("person");
  simulator.control.setParticipants(winner, [stranger]);
  simulator.control.merge("deal", dealId, winner);
  expect(await participantsOf(winner)).toEqual([stranger, ...persons]);
  expect(simulator.control.notesOf("deal", winner).map(({ id }) => id)).toContain(noteId);
  expect(idsOf(await client.list(`/api/v2/deals?ids=${dealId},${winner}`))).toEqual([winner]);
});

test("a narrowed user sees the own records, or none; others see what they saw; no update time moves", async () => {
  const [admin] = simulator.company.users.keys();
  const boss = await connect(simulator, admin);
  const paths = ["deals", "persons", "organizations", "activities"].map((name) => `/api/v2/${name}?limit=500`);
  const all = (reader: Client) => Promise.all(paths.map((path) => reader.walk(path)));
  // Neither hangs on a record that could be hidden.
  simulator.control.add("activity");
  simulator.control.add("note");
  const [before, ofBoss] = [await all(client), await all(boss)];
  simulator.control.narrow(userId, "own");
  const own = (records: WireRecord[] | undefined) => records?.filter((record) => record.owner_id === userId);
  expect((await all(client)).slice(0, 3)).toEqual(before.slice(0, 3).map(own));
  simulator.control.narrow(userId, "nothing");
  expect(await all(client)).toEqual([[], [], [], []]);
  expect(await client.list("/api/v1/notes")).toBeNull();
  expect((await client.get("/api/v1/users/me")).status).toBe(200);
  expect((await client.walk("/api/v2/stages")).length).toBeGreaterThan(0);
  expect(await all(boss)).toEqual(ofBoss);
  simulator.control.narrow(userId, "everything");
  expect(await all(client)).toEqual(before);
});
