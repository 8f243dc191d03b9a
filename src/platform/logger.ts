import type { DiagLogger } from "@opentelemetry/api";
import { destination, type Logger as PinoLogger, pino } from "pino";
import { MINUTE_MS, SECOND_MS } from "./clock";
import { workFields } from "./work";

export type Logger = PinoLogger;
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A second line of defence: secrets travel as `Secret`; a key of these names is censored even when they do not. */
const SECRET_KEYS = ["access_token", "refresh_token", "authorization", "client_secret", "accessToken", "refreshToken"];
const censored = SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]);

/** Bytes that may wait to be written; beyond them lines are dropped, so that a log that nobody reads does not fill the process. */
const MOST_UNWRITTEN_BYTES = 16 * 1024 * 1024;
/** How long an end waits for a reader that takes nothing. */
const READER_WAITS_MS = 5 * SECOND_MS;
let endingSince: number | null = null;
const end = () => {
  endingSince ??= performance.now();
};
// An end that nobody announced, as a failed start: there the library tries to write for ever too.
process.once("exit", end);

/**
 * JSON lines, a service's on stdout. error: someone must act; warn: degraded, mends itself; info: the life of the service. Written
 * beside the work, so that a slow reader of the log holds up no request; an exit writes what is left, a SIGKILL does not.
 */
export function createLogger(level: LogLevel, fd = 1): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // A copy: pino writes each line's fields into what it is given, and the next line of the work would have them too.
      mixin: () => ({ ...workFields() }),
      redact: { paths: censored, censor: "[secret]" },
      serializers: { err: errorFields },
      hooks: { streamWrite: (line) => line.replace(OBEYED, escaped) },
    },
    outlasting(fd),
  );
}

/**
 * The last of the process: once all is written, or its log takes nothing. The library's own end at an exit leaves out the lines
 * that it was writing, and tries for ever.
 */
export function written(logger: Logger): Promise<void> {
  end();
  return new Promise((resolve) => logger.flush(() => resolve()));
}

/** What JSON leaves as it is, and a terminal obeys or shows as another line: callers choose some of the words. */
const OBEYED = /[\u007f-\u009f\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
const escaped = (command: string) => `\\u${command.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * A log that takes nothing for now, as a file on a full disk, ends no process: what waits is written once it takes lines again.
 * An exit does not wait for that: the library's own would try for ever, with all signals unheard.
 */
function outlasting(fd: number) {
  let fails = false;
  const retryEAGAIN = () => endingSince === null || performance.now() - endingSince < READER_WAITS_MS;
  // A least length, if of one byte: without it the library says at once that all is written.
  const log = destination({ fd, sync: false, minLength: 1, maxLength: MOST_UNWRITTEN_BYTES, retryEAGAIN });
  const leave = () => log.destroy();
  log.on("error", () => {
    if (!fails) process.prependListener("exit", leave);
    fails = true;
  });
  log.on("write", () => {
    if (fails) process.off("exit", leave);
    fails = false;
  });
  return log;
}

/** At most once in so long: a library whose counterpart is away says so every few seconds. */
const SAID_EVERY_MS = MINUTE_MS;

/** What OpenTelemetry says where traces are lost, which is no failure of anything else. */
export function diagnosticsOf(logger: Logger): DiagLogger {
  let nextAt = 0;
  const tell = (said: string) => {
    if (performance.now() < nextAt) return;
    nextAt = performance.now() + SAID_EVERY_MS;
    logger.warn({ said }, "traces are lost");
  };
  const silent = () => undefined;
  return { error: tell, warn: tell, info: silent, debug: silent, verbose: silent };
}

/** Chosen fields only: foreign errors carry whole clients, requests and their headers. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const code = "code" in error ? error.code : undefined;
  const correlationId = "correlationId" in error ? error.correlationId : undefined;
  return { name, code, correlationId, message, stack, cause: cause === undefined ? undefined : errorFields(cause) };
}
