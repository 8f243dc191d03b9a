import WebSocket from "ws";
import { Client } from "./client";
import {
  MeDocument,
  QuietDealsDocument,
  type QuietDealsQuery,
  RecordDocument,
  StatusDocument,
} from "./operations.generated";

const HOUR_MS = 3_600_000;
const USAGE = "Usage: npm run example:node -- <address of the service> <token> [<e-mail of an attendee>]";

async function main([url, token, email]: string[]): Promise<void> {
  if (!url || !token) throw new Error(USAGE);
  const client = new Client({ url, token: async () => token, webSocketImpl: WebSocket });
  const { viewer, connection } = await client.ask(MeDocument, {});
  say(`${viewer.userId} is ${viewer.role}; ${connection.companyName ?? "no CRM"}: ${connection.state}`);
  if (email) await record(client, email);
  say(`${await countQuiet(client)} open deals are quiet`);
  for await (const told of client.hear(StatusDocument, {})) {
    if (!told) continue;
    say(`told: ${told.connectionStatusChanged.state}`);
    break;
  }
  client.close();
}

async function record(client: Client, email: string): Promise<void> {
  const startsAt = new Date(Date.now() + HOUR_MS).toISOString();
  const ownerEmail = "seller@example.com";
  const input = { externalId: "example-1", title: "An example", startsAt, ownerEmail, attendees: [{ email }] };
  const { recordMeeting } = await client.ask(RecordDocument, { input });
  switch (recordMeeting.__typename) {
    case "MeetingSuccess":
      return say(`${recordMeeting.meeting.match.status}: ${recordMeeting.meeting.match.deal?.title ?? "no deal"}`);
    case "Refusal":
      return say(`refused, ${recordMeeting.code}: ${recordMeeting.message}`);
  }
}

/** Page by page, to the last. */
async function countQuiet(client: Client): Promise<number> {
  let count = 0;
  for (let after: string | null = null; ; ) {
    const { deals }: QuietDealsQuery = await client.ask(QuietDealsDocument, { after });
    count += deals.nodes.filter(({ quiet }) => quiet?.verdict === "QUIET" || quiet?.verdict === "GHOSTED").length;
    if (!deals.pageInfo.hasNextPage) return count;
    after = deals.pageInfo.endCursor;
  }
}

const say = (line: string) => void process.stdout.write(`${line}\n`);

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  },
);
