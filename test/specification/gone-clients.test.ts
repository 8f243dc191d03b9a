import { setMaxListeners } from "node:events";
import { request } from "undici";
import { tokenFor } from "../support/actors";
import { until } from "../support/stories";
import { useService } from "../support/world";

const { database, service } = useService({ deals: 10, roles: ["api"] });

const RECORD = "mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) { __typename } }";

interface Ended {
  status: number | "gone";
  retryAfter?: unknown;
}

/** Large meetings are recorded one after the other. @returns how it ended */
async function record(externalId: string, signal?: AbortSignal): Promise<Ended> {
  const attendees = Array.from({ length: 120 }, (_, index) => ({ email: `p${index}@buyer.example` }));
  const input = { externalId, title: "Town hall", startsAt: "2026-11-21T09:00:00Z", ownerEmail: "anna@seller.example" };
  const headers = { "content-type": "application/json", authorization: `Bearer ${await tokenFor()}` };
  const body = JSON.stringify({ query: RECORD, variables: { input: { ...input, attendees } } });
  const asked = request(`${service.url}/graphql`, { method: "POST", headers, body, signal });
  return asked.then(
    async (answer) => {
      await answer.body.dump();
      return { status: answer.statusCode, retryAfter: answer.headers["retry-after"] };
    },
    () => ({ status: "gone" }),
  );
}

/** The first meeting is recorded, and held while it is recorded again. */
async function holdUp(): Promise<{ under: Promise<Ended>; letGo(): Promise<void> }> {
  expect(await record("first")).toMatchObject({ status: 200 });
  const holder = database.dataSource.createQueryRunner();
  await holder.startTransaction();
  const held = [await database.tenantId("acme"), "first"];
  await holder.query("SELECT 1 FROM meeting WHERE tenant_id = $1 AND external_id = $2 FOR UPDATE", held);
  const under = record("first");
  await until("the first is held up", async () => (await database.lockWaits()).length > 0);
  return { under, letGo: () => holder.rollbackTransaction().finally(() => holder.release()) };
}

// Seen red: who gave up and asked again waited behind all that they had asked for before, which was executed for nobody.
test("what waits for its turn is not executed once its client has gone, and what was asked for after it is", async () => {
  const { under, letGo } = await holdUp();
  const leaving = new AbortController();
  const left = ["left 1", "left 2"].map((name) => record(name, leaving.signal));
  // Answered at once, as it is small; what came before it has been read by then.
  for (let turn = 0; turn < 5; turn += 1) await service.ask("{ viewer { userId } }");
  leaving.abort();
  expect(await Promise.all(left)).toEqual([{ status: "gone" }, { status: "gone" }]);
  for (let turn = 0; turn < 5; turn += 1) await service.ask("{ viewer { userId } }");
  const last = record("last");
  await letGo();
  expect(await Promise.all([under, last])).toMatchObject([{ status: 200 }, { status: 200 }]);
  const recorded = await database.query("SELECT external_id FROM meeting ORDER BY external_id");
  expect(recorded).toEqual([{ external_id: "first" }, { external_id: "last" }]);
});

test("whose operations that wait are too many is told when to ask again", async () => {
  const { under, letGo } = await holdUp();
  const leaving = new AbortController();
  setMaxListeners(0, leaving.signal);
  const asked = Array.from({ length: 201 }, (_, index) => record(`many ${index}`, leaving.signal));
  expect(await Promise.race(asked)).toEqual({ status: 429, retryAfter: "2" });
  leaving.abort();
  await letGo();
  expect(await under).toMatchObject({ status: 200 });
  const ended = await Promise.all(asked);
  expect(ended.filter(({ status }) => status !== "gone")).toHaveLength(1);
});
