import { parseArgs } from "node:util";
import { Agent, setGlobalDispatcher } from "undici";
import { messageOf } from "../src/platform/errors";
import { BRIEFING_QUERY, briefingText } from "./briefing-text";
import { connect } from "./consent";
import { matchInWords, recordMeetings, recordPastMeetings } from "./meetings";
import { type Parts, startParts } from "./parts";
import { showSync } from "./sync-progress";

const USAGE = `usage: npm run demo               it stays up, with the page, until Ctrl-C
       npm run demo -- --once     the briefing alone, then it ends`;

const say = (line = "") => process.stdout.write(`${line}\n`);

async function show({ api, simulator, page }: Parts): Promise<void> {
  const bound = await connect(api);
  say(
    `\nConnected      as ${bound.boundUserName} <${bound.boundEmail}> of ${bound.companyName}, through the consent page\n\nFull sync`,
  );
  say(`  done: ${await showSync(api, process.stdout)}`);
  const meetings = await recordMeetings(api, simulator);
  say("\nMeetings");
  for (const meeting of meetings) say(`  ${meeting.title}: ${matchInWords(meeting)}`);
  const id = meetings[0]?.id ?? "";
  say(`\nBriefing\n${await briefingText(api, id)}`);
  // Without the page it ends here, and no address would answer.
  if (!page) return;
  await recordPastMeetings(api, simulator);
  say(`\nThe page\n  ${page.url}  (choose who you are there; ${new URL(api.address).origin} once signed in)`);
  say("\nAsk for it yourself");
  say(`  address  ${api.address}\n  token    ${api.token}`);
  say(`  GraphiQL ${new URL("/graphiql", api.address)}\n`);
  const body = JSON.stringify({ query: BRIEFING_QUERY.replace(/\s+/g, " "), variables: { id } });
  say(
    `curl -s ${api.address} -H 'content-type: application/json' -H 'authorization: Bearer ${api.token}' \\\n  -d '${body}'`,
  );
}

/** By a signal, or where nobody reads any more: as `head`, who had what they wanted. */
function untilInterrupted(): Promise<void> {
  return new Promise((resolve, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
    process.stdout.on("error", (error: NodeJS.ErrnoException) => (error.code === "EPIPE" ? resolve() : reject(error)));
  });
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { once: { type: "boolean", default: false }, help: { type: "boolean" } } });
  if (values.help) {
    say(USAGE);
    return;
  }
  // All that it asks stands on this machine, where no proxy leads that Node was told of (NODE_USE_ENV_PROXY).
  setGlobalDispatcher(new Agent());
  say("CRM connection demo: a simulated CRM, a real PostgreSQL and the real service\n");
  const interrupted = untilInterrupted();
  const stops: (() => Promise<void> | void)[] = [];
  try {
    const shown = startParts(stops, say, !values.once).then(show);
    await (values.once
      ? Promise.race([shown, interrupted])
      : Promise.race([shown.then(() => stay(interrupted)), interrupted]));
  } finally {
    for (const stop of stops.splice(0).reverse()) await stop();
  }
}

function stay(interrupted: Promise<void>): Promise<void> {
  say("\nIt stays up. Ctrl-C ends it.");
  return interrupted;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`\nThe demo failed: ${messageOf(error)}\n`);
    process.exit(1);
  },
);
