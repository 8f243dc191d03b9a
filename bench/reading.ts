import { type ProcessUse, useOf } from "./processes";

/** What the service is measured by: a program of the benchmark's own that reads the same company. */
export interface Reading extends ProcessUse {
  seconds: number;
  /** Of `seconds`, those of the participants. */
  participantSeconds: number;
  requests: number;
  /** Of all lists. */
  listed: number;
  participants: number;
}

export type Counts = Omit<Reading, "seconds" | keyof ProcessUse>;

/** Prints the reading as the last line and ends the process. */
export async function report(read: () => Promise<Counts>): Promise<never> {
  const [began, before] = [performance.now(), useOf("self").cpuSeconds];
  const counts = await read();
  const { peakBytes, cpuSeconds } = useOf("self");
  const use = { peakBytes, cpuSeconds: cpuSeconds - before };
  const reading: Reading = { seconds: (performance.now() - began) / 1000, ...counts, ...use };
  process.stdout.write(`${JSON.stringify(reading)}\n`, () => process.exit(0));
  return new Promise(() => undefined);
}

/** Works off `items`, at most `lanes` at a time, and never holds a promise for each of them. */
export async function inLanes<T>(items: Iterable<T>, lanes: number, work: (item: T) => Promise<void>): Promise<void> {
  const shared = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = shared.next(); !next.done; next = shared.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
