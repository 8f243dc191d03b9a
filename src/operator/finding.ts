/** ok: as it should be; warning: it works, and someone should know; fault: it does not work, or not safely. */
export type Level = "ok" | "warning" | "fault";

/** One thing that was looked at. No secret is ever in it. */
export interface Finding {
  level: Level;
  what: string;
  /** What the operator can do about it. */
  todo: string | null;
}

export const ok = (what: string): Finding => ({ level: "ok", what, todo: null });
export const warning = (what: string, todo: string): Finding => ({ level: "warning", what, todo });
export const fault = (what: string, todo: string): Finding => ({ level: "fault", what, todo });

/** `fault    database: ...  -> what to do` */
export function lineOf({ level, what, todo }: Finding): string {
  return `${level.padEnd(8)} ${what}${todo === null ? "" : `  -> ${todo}`}`;
}

/** How far this machine's clock is from another one's, in words. */
export function clockFinding(whose: string, aheadMs: number, most: { quietMs: number; faultMs: number }): Finding {
  const seconds = Math.abs(aheadMs / 1000).toFixed(1);
  const what = `${whose}: its clock is ${seconds} s ${aheadMs < 0 ? "behind" : "ahead of"} this machine's`;
  if (Math.abs(aheadMs) <= most.quietMs) return ok(`${whose}: its clock and this machine's agree`);
  return (Math.abs(aheadMs) < most.faultMs ? warning : fault)(
    what,
    "set both by NTP; tokens and leases go by the clock",
  );
}
