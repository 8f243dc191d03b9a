import { failed, say } from "./print";
import { siegeDocuments } from "./siege-documents";
import { siegeNeighbours } from "./siege-neighbours";
import { siegeNotes } from "./siege-notes";
import { siegeSockets } from "./siege-sockets";

/** Each part attacks a freshly built service of its own, in a process of its own. */
const PARTS: Record<string, () => Promise<void>> = {
  documents: siegeDocuments,
  neighbours: siegeNeighbours,
  notes: siegeNotes,
  sockets: siegeSockets,
};

async function main(asked: string[]): Promise<void> {
  const unknown = asked.filter((name) => !(name in PARTS));
  if (unknown.length > 0)
    throw new Error(`there is no part ${unknown.join(", ")}, but ${Object.keys(PARTS).join(", ")}`);
  for (const [name, run] of Object.entries(PARTS)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    say(`\n${name}`);
    await run();
  }
}

main(process.argv.slice(2)).catch(failed);
