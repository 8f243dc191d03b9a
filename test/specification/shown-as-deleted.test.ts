import { HOUR_MS } from "../../src/platform/clock";
import { writeNote } from "../support/notes";
import type { Service } from "../support/service";
import { recordMeeting } from "../support/stories";
import { useCrm } from "../support/world";
import { useWriteback } from "../support/writeback";

// Seen red with: an id that the list shows taken for a record that is there, whatever its flags say.

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const { world, simulator, database } = useCrm({ deals: 10, deletedByIds: "shows", clock });
const writeback = useWriteback(world, clock);
let service: Service;
let meetingId = "";

beforeAll(async () => {
  const first = await world.startService({ connected: ["acme"] });
  // Without a worker no look is made but those of the story.
  await first.stop();
  service = await world.startService({ roles: ["api"] });
  meetingId = (await recordMeeting(service, [simulator.company.stories.singleDeal.email])).id;
});
beforeEach(() => world.beginAnew());

const path = "/api/v1/notes";
test.each([
  ["is_deleted", { is_deleted: true }, "RECORD_NOT_FOUND"],
  ["is_deleted as a number", { is_deleted: 1 }, "RECORD_NOT_FOUND"],
  ["the status of a deleted deal", { status: "deleted", is_deleted: false }, "RECORD_NOT_FOUND"],
  ["is_archived, for such a deal takes no writes", { is_archived: true }, "RECORD_NOT_FOUND"],
  ["the number of another record alone", { id: 9_999_999 }, "RECORD_NOT_FOUND"],
  ["flags that are not set", { status: "open", is_deleted: false, is_archived: null }, "VALUE_REJECTED"],
  ["no flags", {}, "VALUE_REJECTED"],
  ["flags that make no sense", { status: 7, is_deleted: "maybe", is_archived: {} }, "VALUE_REJECTED"],
])(
  "what the CRM rejects on a record that is shown with %s is said of the record, or of the text",
  async (_, flags, code) => {
    simulator.control.fail({ match: path, method: "POST", with: { status: 400 } });
    const shown = { id: simulator.company.stories.singleDeal.dealId, ...flags };
    const body = { success: true, data: [shown], additional_data: { next_cursor: null } };
    simulator.control.fail({ match: "/api/v2/deals", with: { status: 200, body } });
    expect(await writeNote(service, { meetingId })).toMatchObject({ state: "FAILED", error: { code } });
  },
);

test("a note whose deal was merged is not said to be missing where the list shows the deal as deleted", async () => {
  simulator.control.fail({ match: path, method: "POST", times: 1, with: { kind: "lostAfter" } });
  const { reference } = await writeNote(service, { meetingId });
  simulator.control.merge("deal", simulator.company.stories.singleDeal.dealId, simulator.control.add("deal"));
  const stored = () =>
    database.query<{ id: string; state: string }>("SELECT id, state FROM note_write WHERE reference = $1", [reference]);
  const [lost] = await stored();
  aheadMs += 2 * HOUR_MS;
  await writeback.lookUps.lookUp({ tenantId: await database.tenantId("acme"), writeId: lost?.id ?? "" });
  expect(simulator.log.of("GET", "/api/v2/deals")).toHaveLength(1);
  expect(await stored()).toMatchObject([{ state: "UNKNOWN" }]);
});
