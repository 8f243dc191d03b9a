import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Linux counts a process's CPU time in hundredths of a second. */
const CLOCK_TICKS_PER_SECOND = 100;

function fieldsOf(pid: number): number[] {
  const afterName = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return afterName.map(Number);
}

/** Of the embedded server in that directory. */
export const postgresCpuSeconds = (directory: string) => serverCpuSeconds(join(directory, "data"));

/** Of the server with these data, its live children, and those that have ended. */
export function serverCpuSeconds(dataDirectory: string): number {
  const postmaster = Number(readFileSync(join(dataDirectory, "postmaster.pid"), "utf8").split("\n")[0]);
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  let ticks = 0;
  for (const name of processes) {
    try {
      const [, parent, ...fields] = fieldsOf(Number(name));
      const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(9);
      if (Number(name) === postmaster) ticks += user + system + endedUser + endedSystem;
      else if (parent === postmaster) ticks += user + system;
    } catch {
      // It ended meanwhile; the server counts it.
    }
  }
  return ticks / CLOCK_TICKS_PER_SECOND;
}

/** Of the whole machine, other work included; `taken` is what its host gave to other machines. */
export function machineCpuSeconds(): { busy: number; taken: number } {
  const fields = readFileSync("/proc/stat", "utf8").split("\n")[0]?.trim().split(/\s+/).slice(1).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, taken = 0] = fields;
  const busy = user + nice + system + interrupts + softInterrupts;
  return { busy: busy / CLOCK_TICKS_PER_SECOND, taken: taken / CLOCK_TICKS_PER_SECOND };
}
