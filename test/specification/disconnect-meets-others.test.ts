import { CrmHttp } from "../../src/crm/http";
import { MINUTE_MS, systemClock } from "../../src/platform/clock";
import { NoteWrites } from "../../src/writeback/notes";
import { rowsOfCopy } from "../support/dump";
import { askedNote, posts, seller } from "../support/notes";
import { completeConsent, connect, dataOf, recordMeeting, startConsent, syncEnds, until } from "../support/stories";
import { loseAuthorization } from "../support/tokens";
import { useService } from "../support/world";
import { startWriteback } from "../support/writeback";

// Seen red with: a consent that is forgotten when it is used up; rows stored without a look whether the copy is live.

const { world, simulator, database, service } = useService({ deals: 10 });
afterEach(() => simulator.control.clearFaults());
const DISCONNECT = "mutation { disconnect { ... on DisconnectSuccess { connection { state } } } }";

test("a consent whose validation is under way when someone disconnects is void", async () => {
  const as = { tenant: "flight" };
  const state = await startConsent(service, as);
  const release = simulator.control.fail({ match: "/api/v1/users/me", with: { kind: "hang" } });
  const pending = completeConsent(service, { code: simulator.control.approve(), state }, as);
  await until("asked", async () => simulator.log.of("GET", "/api/v1/users/me").length > 0);
  dataOf(await service.ask(DISCONNECT, {}, as));
  release();
  expect((await pending).connection).toBeUndefined();
});

test("a meeting that is being matched while someone disconnects brings no row of the purged copy back", async () => {
  const as = { tenant: "cross" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const [row] = await database.query<{ copy_id: number }>(
    "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'cross')",
  );
  const copyId = row?.copy_id ?? 0;
  const other = database.dataSource.createQueryRunner();
  await other.startTransaction();
  await other.query("LOCK TABLE meeting_attendee IN ACCESS EXCLUSIVE MODE"); // holds the match between reading the copy and storing
  const pending = recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const ending = service.ask(DISCONNECT, {}, as);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await other.commitTransaction();
  await other.release();
  await pending;
  dataOf(await ending);
  await until(
    "purged",
    async () => (await database.query("SELECT 1 FROM synced_copy WHERE id = $1", [copyId])).length === 0,
  );
  expect(await rowsOfCopy(database, copyId)).toEqual({});
});

/**
 * A note that waits while other calls have every socket.
 * @param isAway takes the database away from its looks
 */
async function waitingNote(isAway = () => false, clock = systemClock) {
  await database.query("DELETE FROM note_write");
  await connect(service, simulator);
  await syncEnds(service);
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  const http = new CrmHttp();
  const writeback = await startWriteback(world.config, undefined, { http });
  world.cleanup(() => writeback.close());
  const me = "/api/v1/users/me";
  simulator.log.clear();
  const letGo = simulator.control.fail({ match: me, with: { kind: "hang" } });
  const inHand = Array.from({ length: 128 }, () =>
    http.send({ method: "GET", url: `${simulator.url}${me}`, headers: {} }),
  );
  await until("every socket is taken", async () => simulator.log.of("GET", me).length === inHand.length);
  const observe = <T>(text: string, run: () => Promise<T>) => {
    if (text.includes("FROM connection") && isAway()) throw new Error("the database is away");
    return run();
  };
  const notes = new NoteWrites({ ...writeback.parts, clock, database: database.opened({ observe }) });
  const writing = notes.write(await seller(database), askedNote(id, "waits"));
  await until("its receipt is there", async () => (await database.query("SELECT 1 FROM note_write")).length === 1);
  return { writing, letGo, inHand };
}

// Seen red: one look that the database did not answer ended its wait, and what was never sent was UNKNOWN.
test("a note that waits for a socket waits on while the database does not say whether it is connected", async () => {
  let [isAway, looks] = [false, 0];
  const { writing, letGo, inHand } = await waitingNote(() => isAway && ++looks > 0);
  isAway = true;
  await until("it was looked twice", async () => looks > 1);
  isAway = false;
  letGo();
  await Promise.all(inHand);
  expect(await writing).toMatchObject({ value: { state: "WRITTEN" } });
  dataOf(await service.ask(DISCONNECT));
});

// Seen red: it was sent, up to a minute after the disconnect, as soon as a socket was free. Planted and seen red: after the authorization's end.
test.each([
  ["someone disconnects", () => service.ask(DISCONNECT).then(dataOf)],
  ["the authorization ends", () => loseAuthorization(database, "acme")],
])("a note that waits for a socket while %s is never sent, and says so", async (_what, end) => {
  const { writing, letGo, inHand } = await waitingNote();
  await end();
  const late = setTimeout(letGo, 5_000);
  expect(await writing).toMatchObject({ value: { state: "FAILED", errorCode: "NEEDS_REAUTHORIZATION" } });
  clearTimeout(late);
  letGo();
  await Promise.all(inHand);
  expect(posts(simulator)).toEqual([]);
});

// Seen red: it waited for half a minute each time, and of a batch each value again, beyond the time at which it counts as abandoned.
test("a note that waits for a socket a minute after its receipt waits no longer, and says so", async () => {
  let [aheadMs, socketsAreFree] = [0, false];
  const { writing, letGo, inHand } = await waitingNote(undefined, () => new Date(Date.now() + aheadMs));
  const free = () => {
    socketsAreFree = true;
    letGo();
  };
  const late = setTimeout(free, 20_000);
  aheadMs = MINUTE_MS;
  const errorMessage = expect.stringContaining("too slow for it to be sent within a minute");
  expect(await writing).toMatchObject({ value: { state: "FAILED", errorCode: "CRM_UNAVAILABLE", errorMessage } });
  expect(socketsAreFree).toBe(false);
  clearTimeout(late);
  free();
  await Promise.all(inHand);
  expect(posts(simulator)).toEqual([]);
});
