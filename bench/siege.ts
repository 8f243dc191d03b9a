import { failed, say } from "./print";
import { siegeNeighbours } from "./siege-neighbours";

/** Each part attacks a freshly built service of its own, in a process of its own. */
const PARTS: Record<string, () => Promise<void>> = {
  neighbours: siegeNeighbours,
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
