import { type Client, connect, idsOf, type Participant, useClient } from "./client";

let userId: number;

const { simulator, client, clock, authorize } = useClient({ deals: 80 });
beforeEach(() => {
  userId = simulator.company.stories.singleDeal.ownerId;
});

test("each user sees the own records, those of the group and those of everyone; an admin sees all", async () => {
  const [admin, me, colleague, , , far] = [...simulator.company.users.keys()];
  const add = (owner_id: number | undefined, visible_to: number) =>
    simulator.control.add("deal", { owner_id, visible_to });
  const mine = add(me, 1);
  const colleagueOwn = add(colleague, 1);
  const colleagueGroup = add(colleague, 3);
  const farOwn = add(far, 1);
  const farGroup = add(far, 3);
  const farEveryone = add(far, 7);
  const seen = async (reader: Client) => idsOf(await reader.walk("/api/v2/deals?limit=500")).filter((id) => id >= mine);
  expect(await seen(client)).toEqual([mine, colleagueGroup, farEveryone]);
  expect(await seen(await connect(simulator, far))).toEqual([farOwn, farGroup, farEveryone]);
  expect(await seen(await connect(simulator, admin))).toEqual([
    mine,
    colleagueOwn,
    colleagueGroup,
    farOwn,
    farGroup,
    farEveryone,
  ]);
  for (const path of [`/api/v2/deals/${farOwn}`, `/api/v1/deals/${farOwn}/participants`]) {
    expect(await client.get(path)).toMatchObject({
      status: 404,
      body: { success: false, error: "Deal not found", code: "ERR_NOT_FOUND" },
    });
  }
  expect(idsOf(await client.list(`/api/v2/deals?ids=${mine},${farOwn},999999`))).toEqual([mine]);
});

test("what hangs on a hidden deal is hidden with it", async () => {
  const { dealId, noteId, doneActivityId } = simulator.company.stories.singleDeal;
  simulator.control.hide("deal", dealId);
  expect((await client.get(`/api/v1/notes/${noteId}`)).status).toBe(404);
  expect((await client.get(`/api/v2/activities/${doneActivityId}`)).status).toBe(404);
  expect(idsOf(await client.walk("/api/v2/activities?limit=500"))).not.toContain(doneActivityId);
  simulator.control.show("deal", dealId);
  expect((await client.get(`/api/v1/notes/${noteId}`)).status).toBe(200);
});

test("a participant whom the user may not see is left out", async () => {
  const { dealId, personId, participantIds } = simulator.company.stories.singleDeal;
  simulator.control.hide("person", personId);
  const { body } = await client.get<{ data: Participant[] }>(`/api/v1/deals/${dealId}/participants`);
  expect(body.data.map((item) => item.person_id.value)).toEqual([participantIds[1]]);
  expect(JSON.stringify(body)).not.toContain(simulator.company.stories.singleDeal.email);
  expect(simulator.control.visibleTo(userId).participants.get(dealId)).toEqual([participantIds[1]]);
});

test("deleted deals come only when asked for, for thirty days", async () => {
  const { dealId } = simulator.company.stories.freeMail;
  simulator.control.remove("deal", dealId);
  const ids = async (query: string) => idsOf(await client.walk(`/api/v2/deals?limit=500${query}`));
  expect(await ids("")).not.toContain(dealId);
  expect(await ids("&status=open")).not.toContain(dealId);
  expect(await ids("&status=open,won,lost,deleted&updated_since=2026-11-20T00:00:00Z")).toContain(dealId);
  expect(await client.one(`/api/v2/deals/${dealId}`)).toMatchObject({ status: "deleted", is_deleted: true });
  clock.advance(31 * 86_400);
  await authorize();
  expect(await ids("&status=deleted")).not.toContain(dealId);
  expect((await client.get(`/api/v2/deals/${dealId}`)).status).toBe(404);
});

test.each(["person", "organization", "activity", "pipeline", "stage"] as const)(
  "a deleted %s leaves the list and answers a single read with is_deleted",
  async (entity) => {
    const { stories } = simulator.company;
    const id = {
      person: stories.freeMail.personId,
      organization: stories.singleDeal.orgId,
      activity: stories.singleDeal.doneActivityId,
      pipeline: stories.singleDeal.pipelineId,
      stage: stories.singleDeal.stageId,
    }[entity];
    const path = `/api/v2/${entity === "activity" ? "activities" : `${entity}s`}`;
    expect(idsOf(await client.walk(path))).toContain(id);
    simulator.control.remove(entity, id);
    expect(idsOf(await client.walk(`${path}?limit=500`))).not.toContain(id);
    expect(await client.one(`${path}/${id}`)).toMatchObject({ id, is_deleted: true });
  },
);

test("a deleted note leaves the list and answers with active_flag false", async () => {
  const { noteId } = simulator.company.stories.singleDeal;
  simulator.control.remove("note", noteId);
  expect(idsOf(await client.list("/api/v1/notes?limit=500"))).not.toContain(noteId);
  expect(await client.get(`/api/v1/notes/${noteId}`)).toMatchObject({
    status: 200,
    body: { data: { active_flag: false } },
  });
});

test("archived deals are in their own list only", async () => {
  const { dealId } = simulator.company.stories.ghosted;
  simulator.control.archive(dealId);
  expect(idsOf(await client.walk("/api/v2/deals?limit=500"))).not.toContain(dealId);
  const archived = await client.walk("/api/v2/deals/archived?limit=500");
  expect(archived.every((deal) => deal.is_archived === true && deal.archive_time !== null)).toBe(true);
  expect(idsOf(archived)).toContain(dealId);
});

test("a removed person leaves the deals it took part in", async () => {
  const { dealId, participantIds } = simulator.company.stories.singleDeal;
  simulator.control.remove("person", participantIds[1] ?? 0);
  const deal = await client.one(`/api/v2/deals/${dealId}?include_fields=participants_count`);
  expect(deal.participants_count).toBe(1);
  expect(await client.list(`/api/v1/deals/${dealId}/participants`)).toHaveLength(1);
});
