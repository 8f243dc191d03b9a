import { rmSync } from "node:fs";
import { join } from "node:path";
import { Api } from "../demo/api";
import { connect } from "../demo/consent";
import { type Simulator, startSimulator } from "../simulator";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { column, say, whole } from "./print";
import { type RunningService, startService } from "./processes";

const NOTES = 200;
/** Of one read; the most that a list inside a record gives. */
const AT_ONCE = 50;
const WRITERS = 8;
const LOOK_MS = 50;
const PATIENCE_MS = 120_000;
/** UTF-16 units: what the CRM takes, and what a client may write. */
const NOTE = 100_000;
const MARKDOWN = 60_000;

const fill = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length);

/** Open tags, nesting, entities, tables, links, lines in quotes, text alone; and now and then megabytes. */
const HTML = [
  ...["<b>", "<blockquote>a", "<ul><li>a", "<table><tr><td>a", "<table><tr><td>a</td></tr></table>", "&", "&lt;", "<"],
  ...[
    '<a href="https://a.example/?a=1&b=2">a</a>',
    "<p>a",
    "a<br>",
    "<hr>",
    "<svg>",
    "</p>",
    "<!--",
    "<a x=1 ",
    "words ",
  ],
];
const htmlOf = (index: number) => {
  const unit = HTML[index % HTML.length] ?? "";
  if (index % 20 === 19) return fill(unit, 30 * NOTE);
  return index % 3 === 0 ? `${"<blockquote>".repeat(90)}${fill(unit, NOTE - 1_080)}` : fill(unit, NOTE);
};
const MARKS = [
  ...[
    "[",
    "[ ",
    "![",
    "[a](",
    "[a](b)",
    "*",
    "*a ",
    "*a _b ",
    "> ",
    "- ",
    "> a\n",
    "- a\n",
    "|",
    "|-|\n",
    "a|b\n",
    "`",
    "`a` ",
  ],
  ...["<a>", "&amp;", "\n", "a\n", "~~a", "\\", "http://a.example ", "words "],
];
const markdownOf = (index: number) => fill(MARKS[index % MARKS.length] ?? "", MARKDOWN - (index % 7) * 8_000);

const NOTES_OF = `query ($id: ID!) { node(id: $id) { ... on Deal { recentNotes(first: ${AT_ONCE}) { id html text } } } }`;
const MEETING = `mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) {
  ... on MeetingSuccess { meeting { id match { deal { id } } } } ... on Refusal { message } } }`;
const WRITE = `mutation ($input: WriteNoteInput!) { writeNote(input: $input) {
  ... on WriteNoteSuccess { write { state } } ... on Refusal { code } } }`;
const SYNC = "mutation { requestSync { __typename } }";
const STATE = "{ connection { sync { current { id } last { state } } } }";

/** How long one note may hold up everybody: read from the CRM, shown for the first time, shown again, and written. */
export async function siegeNotes(): Promise<void> {
  const directory = join(".data", `siege-${process.pid}`);
  const [simulator, postgres] = await Promise.all([
    startSimulator({ deals: 10 }),
    startEmbeddedPostgres({ directory, durable: false }),
  ]);
  try {
    const crm = {
      ...{ CRM_BASE_URL: simulator.url, CRM_AUTH_URL: simulator.url, CRM_REDIRECT_URL: simulator.redirectUrl },
      ...{ CRM_CLIENT_ID: simulator.clientId, CRM_CLIENT_SECRET: simulator.clientSecret },
    };
    const service = await startService({ crm, databaseUrl: postgres.url.reveal() });
    await besiege(simulator, service);
    await service.stop();
  } finally {
    await Promise.all([simulator.stop(), postgres.stop()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function besiege(simulator: Simulator, service: RunningService): Promise<void> {
  const api = await Api.signIn(service.url, service.jwtSecret);
  const { email, dealId } = simulator.company.stories.singleDeal;
  await connect(api);
  await syncEnds(api);
  const { recordMeeting } = await api.ask<Recorded>(MEETING, { input: meetingWith(email) });
  const { meeting } = recordMeeting;
  const read = () => api.ask(NOTES_OF, { id: meeting?.match.deal?.id });
  say(`${"".padEnd(44)}${["seconds", "stall ms", "own CPU ms"].map((text) => column(text, 12)).join("")}`);
  const measured = async (name: string, work: () => Promise<unknown>) => {
    await service.longestStall();
    const began = performance.now();
    await work();
    const seconds = (performance.now() - began) / 1000;
    const { wallMs, ownMs } = await service.longestStall();
    const figures = [seconds.toFixed(1), wallMs.toFixed(0), ownMs.toFixed(0)];
    say(`${name.padEnd(44)}${figures.map((figure) => column(figure, 12)).join("")}`);
  };
  await measured("nothing, for a second", () => new Promise((resolve) => setTimeout(resolve, 1_000)));
  for (let from = 0; from < NOTES; from += AT_ONCE) {
    for (let index = from; index < from + AT_ONCE; index += 1) {
      simulator.control.add("note", { deal_id: dealId, content: htmlOf(index) });
    }
    const name = `notes ${from + 1} to ${from + AT_ONCE}`;
    await measured(`${name} are synced`, async () => {
      await api.ask(SYNC);
      await syncEnds(api);
    });
    await measured(`${name} are read first`, read);
    await measured(`${name} are read again`, read);
  }
  const answers = new Map<string, number>();
  await measured(`${NOTES} notes in Markdown, ${WRITERS} at once`, () => writeAll(api, meeting?.id, answers));
  say([...answers].map(([answer, count]) => `${whole(count)} ${answer}`).join(", "));
}

interface Recorded {
  recordMeeting: { meeting?: { id: string; match: { deal: { id: string } | null } } };
}
interface Written {
  writeNote: { write?: { state: string }; code?: string };
}

async function writeAll(api: Api, meetingId: string | undefined, answers: Map<string, number>): Promise<void> {
  let next = 0;
  const writer = async () => {
    for (let index = next++; index < NOTES; index = next++) {
      const input = {
        meetingId,
        content: `${markdownOf(index)} ${index}`.slice(0, MARKDOWN),
        idempotencyKey: `siege-${index}`,
      };
      const { writeNote } = await api.ask<Written>(WRITE, { input });
      const answer = writeNote.write?.state ?? writeNote.code ?? "";
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

const meetingWith = (email: string) => ({
  ...{ externalId: "siege", title: "Siege", startsAt: new Date().toISOString() },
  ...{ ownerEmail: "anna@seller.example", attendees: [{ email }] },
});

async function syncEnds(api: Api): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
    const { connection } = await api.ask<{ connection: { sync: { current: object | null; last: object | null } } }>(
      STATE,
    );
    if (!connection.sync.current && connection.sync.last) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error("the sync did not end");
}
