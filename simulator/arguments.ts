import { parseArgs } from "node:util";
import { FEWEST_DEALS, MOST_DEALS, MOST_OPEN_PERCENT, type SimulatorOptions } from "./model/options";

export const usage = `usage: npm run simulator -- [--deals ${FEWEST_DEALS}..${MOST_DEALS}] [--seed N] [--port P] [--host H]
       [--open-percent 0..${MOST_OPEN_PERCENT}]   how many of the deals are open; without it, half of them
       [--client-id ID] [--client-secret SECRET] [--redirect-url URL]
       [--daily-tokens N]   what the company may spend in a day, at the CRM's prices; without it, as much as it likes
       [--control-port P]   commands over HTTP on the loopback address: GET / lists them
       [--help]`;

export class BadArguments extends Error {}

export interface ProgramOptions extends SimulatorOptions {
  /** Undefined: no control over HTTP. */
  controlPort?: number;
  /** Only say what can be asked for. */
  help: boolean;
}

export function optionsFrom(args: string[]): ProgramOptions {
  const values = parsed(args);
  const redirectUrl = values["redirect-url"];
  if (redirectUrl !== undefined && !URL.canParse(redirectUrl)) {
    throw new BadArguments(`--redirect-url: "${redirectUrl}" is not an address`);
  }
  return {
    deals: numberFrom("deals", values.deals, FEWEST_DEALS, MOST_DEALS),
    openPercent: numberFrom("open-percent", values["open-percent"], 0, MOST_OPEN_PERCENT),
    seed: numberFrom("seed", values.seed, 0, Number.MAX_SAFE_INTEGER),
    port: numberFrom("port", values.port, 0, 65_535),
    host: values.host,
    clientId: values["client-id"],
    clientSecret: values["client-secret"],
    redirectUrl,
    dailyTokens: numberFrom("daily-tokens", values["daily-tokens"], 0, Number.MAX_SAFE_INTEGER),
    controlPort: numberFrom("control-port", values["control-port"], 0, 65_535),
    help: values.help ?? false,
  };
}

function parsed(args: string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args,
      options: {
        deals: text,
        "open-percent": text,
        seed: text,
        port: text,
        host: text,
        "client-id": text,
        "client-secret": text,
        "redirect-url": text,
        "daily-tokens": text,
        "control-port": text,
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new BadArguments(error instanceof Error ? error.message : String(error));
  }
}

function numberFrom(name: string, value: string | undefined, low: number, high: number): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < low || number > high) {
    throw new BadArguments(`--${name}: "${value}" is not a whole number from ${low} to ${high}`);
  }
  return number;
}
