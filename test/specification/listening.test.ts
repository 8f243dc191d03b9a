import pino from "pino";
import { MEETING_MATCHED, Notifications } from "../../src/database/between-processes";
import { type Gate, openGate } from "../support/gate";
import { until } from "../support/stories";
import { useDatabase } from "../support/world";

// Seen red with: the session left open, which tells everything once more; one that is opened while the service stops;
// a session that is never asked whether it is there.

const database = useDatabase();
let gate: Gate;
let notifications: Notifications;
/** What the server is sent in place of a session's wish to listen. */
let onListen: (asked: string) => Promise<string> = async (asked) => asked;
const PATIENCE_MS = 1_000;

beforeAll(async () => {
  const port = Number(new URL(database.url.reveal()).port);
  gate = await openGate(
    () => port,
    async (asked) => (asked.includes("LISTEN") ? onListen(asked) : asked),
  );
  notifications = new Notifications(gate.urlOf(database.url), pino({ level: "silent" }), "", PATIENCE_MS);
  await notifications.start();
}, 60_000);
afterAll(async () => {
  await notifications.stop();
  await gate.close();
});

const OURS =
  "FROM pg_stat_activity WHERE application_name = 'crm-connection listener' AND datname = current_database()";
const sessions = async () => (await database.query(`SELECT pid ${OURS}`)).length;
const endSession = () => database.query(`SELECT pg_terminate_backend(pid) ${OURS}`);

test("a session that may not listen is ended, and what happens later is told once", async () => {
  const heard: (string | null)[] = [];
  const leave = notifications.subscribe(MEETING_MATCHED, 7, (id) => heard.push(id));
  let refused = 0;
  onListen = async (asked) => {
    refused += 1;
    return refused > 2 ? asked : asked.replace(/LISTEN crm_stop/, "LISTEM crm_stop");
  };
  await endSession();
  await until("it listens again", async () => heard.length > 0);
  expect(refused).toBe(3);
  await until("one session is left", async () => (await sessions()) === 1);
  await database.query("SELECT pg_notify('meeting_matched', '7 it')");
  await until("it is told", async () => heard.length > 1);
  expect(heard).toEqual([null, "it"]);
  leave();
});

test("a session of which nothing comes any more is found out and opened anew", async () => {
  const heard: (string | null)[] = [];
  const leave = notifications.subscribe(MEETING_MATCHED, 7, (id) => heard.push(id));
  gate.silenceOpen();
  await until("it listens again", async () => heard.length > 0);
  await database.query("SELECT pg_notify('meeting_matched', '7 it')");
  await until("it is told", async () => heard.length > 1);
  expect(heard).toEqual([null, "it"]);
  leave();
});

test("a session that is being opened as the service stops is ended", async () => {
  let [isAsked, stop] = [false, () => {}];
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  onListen = async (asked) => {
    isAsked = true;
    await stopped;
    return asked;
  };
  await endSession();
  await until("it is being opened", async () => isAsked);
  await notifications.stop();
  stop();
  await until("none is left", async () => (await sessions()) === 0);
});
