import { rmSync } from "node:fs";
import { join } from "node:path";
import { createFilled, startFilled } from "./api-filled";
import { BRIEFING } from "./briefing-queries";
import { startRoomyPostgres } from "./database";
import { column, ratio, say } from "./print";

const TENANTS = 20;
const IDLE_READS = 300;
const MEETINGS = 60;
const ATTENDEES = 500;
const QUERIES = 60;
/** A burst that takes longer is sent again for no longer than this. */
const BURST_MS = 15_000;

const RECORD = `mutation ($input: RecordMeetingInput!) { recordMeeting(input: $input) {
  ... on MeetingSuccess { meeting { id } } ... on Refusal { code message } } }`;
/** As large as one is executed at all: nearly 50,000 objects by its cost. */
const HEAVIEST = `{ deals(first: 36) { nodes { id title status value { amount currency } stage { id name } pipeline { id name }
  owner { id name } organization { id name } participants { id name emails { address } organization { id name } }
  recentActivities(first: 20) { id subject type doneAt owner { id name } } recentNotes(first: 20) { id text createdAt }
  quiet { verdict quietDays reasons { code message } } } } }`;

/** What one tenant's burst costs another: its briefing, one after the other, idle and beside each burst. */
export async function siegeNeighbours(): Promise<void> {
  const directory = join(".data", `siege-${process.pid}`);
  const postgres = await startRoomyPostgres(directory);
  try {
    const { service, tokens } = await startFilled(await createFilled(postgres.url.reveal(), TENANTS), TENANTS);
    const [noisy = "", quiet = ""] = tokens;
    const ask = async (token: string, query: string, variables: object = {}) => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      const body = JSON.stringify({ query, variables });
      const answer = await fetch(`${service.url}/graphql`, { method: "POST", headers, body });
      return (await answer.json()) as { data?: Record<string, unknown>; errors?: { message: string }[] };
    };
    const { data } = await ask(quiet, "{ meetings(first: 1) { nodes { id } } }");
    const [meeting] = (data?.meetings as { nodes: { id: string }[] } | undefined)?.nodes ?? [];
    const briefing = async () => {
      const began = performance.now();
      const { errors } = await ask(quiet, BRIEFING, { id: meeting?.id });
      if (errors) throw new Error(errors[0]?.message);
      return performance.now() - began;
    };
    const beside = async (goesOn: () => boolean) => {
      const times: number[] = [];
      while (goesOn()) times.push(await briefing());
      return figuresOf(times);
    };
    for (let warm = 0; warm < IDLE_READS; warm += 1) await briefing();
    let left = IDLE_READS;
    const idle = await beside(() => left-- > 0);
    say(
      `${"".padEnd(28)}${["reads", "p50 ms", "p99 ms", "p50 : idle", "p99 : idle"].map((text) => column(text, 12)).join("")}`,
    );
    tell("idle", idle, idle);
    const bursts: [string, number, (index: number) => Promise<unknown>][] = [
      [`${MEETINGS} meetings of ${ATTENDEES}`, MEETINGS, (index) => ask(noisy, RECORD, { input: townHall(index) })],
      [`${QUERIES} heaviest queries`, QUERIES, () => ask(noisy, HEAVIEST)],
    ];
    for (const [name, count, one] of bursts) {
      await one(0);
      const began = performance.now();
      let isOver = false;
      const burst = Promise.all(Array.from({ length: count }, (_, index) => one(index))).then((answers) => {
        isOver = true;
        const refused = answers.flatMap((answer) => (answer as { errors?: { message: string }[] }).errors ?? []);
        const why = refused[0] ? `, ${refused.length} refused: ${refused[0].message}` : "";
        say(`  ${name}: ${((performance.now() - began) / 1000).toFixed(1)} s${why}`);
      });
      tell(name, await beside(() => !isOver && performance.now() - began < BURST_MS), idle);
      await burst;
    }
    await service.stop();
  } finally {
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

const townHall = (index: number) => ({
  ...{ externalId: `burst-${index}`, title: "Town hall", startsAt: new Date().toISOString(), endsAt: null },
  ownerEmail: "u1@seller.example",
  attendees: Array.from({ length: ATTENDEES }, (_, person) => ({
    email: `p${person}@buyer.example`,
    name: `P ${person}`,
  })),
});

interface Figures {
  reads: number;
  p50: number;
  p99: number;
}

function figuresOf(times: number[]): Figures {
  const sorted = times.sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { reads: sorted.length, p50: at(0.5), p99: at(0.99) };
}

function tell(name: string, { reads, p50, p99 }: Figures, idle: Figures): void {
  const shown = [String(reads), p50.toFixed(1), p99.toFixed(1), ratio(p50, idle.p50), ratio(p99, idle.p99)];
  say(`${name.padEnd(28)}${shown.map((text) => column(text, 12)).join("")}`);
}
