import { hostname, userInfo } from "node:os";
import { CrmStops } from "./connections/crm-stops";
import { withDatabase } from "./database/database";
import { heldUpOf, needsOperator } from "./database/errors";
import { entities } from "./entities";
import { lineOf } from "./operator/checks";
import { COMMANDS, WITH_WORDS } from "./operator/commands";
import { type ProbeReport, probeCrm, reportInto, reportInWords } from "./operator/crm-probe";
import { examine } from "./operator/doctor";
import { SECOND_MS, systemClock } from "./platform/clock";
import { type Config, readConfig } from "./platform/config";
import { messageOf, ServiceError } from "./platform/errors";
import { createLogger, type Logger, written } from "./platform/logger";
import { createMetrics } from "./platform/metrics";
import { crmOf } from "./services";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

async function main([command, ...words]: string[]): Promise<void> {
  if (command === "doctor" && words.length === 0) return doctor();
  const config = readConfig();
  // A command's stdout is what was asked for.
  const logger = createLogger(config.logLevel, command === undefined ? 1 : 2);
  if (command === undefined) return serve(config, logger).catch((error) => failWhenWritten(error, logger));
  if (command === "doctor") return probe(config, logger, words);
  const run = COMMANDS[command];
  if (!run)
    throw new UnknownCommandError(`There is no command ${command}, but doctor, ${Object.keys(COMMANDS).join(", ")}.`);
  if (words.length > 0 && !WITH_WORDS.has(command))
    throw new UnknownCommandError(`Nothing was done. Say: ${command}, and no word more.`);
  sayGiven(command, logger);
  process.stdout.write(`${await run(config, logger, words)}\n`);
}

/** Before anything is done: one that is killed is told as well. */
const sayGiven = (command: string, logger: Logger) =>
  logger.info({ command, by: whoGave() }, "a command of the operator");

/** As the machine knows them. In a container it is the image's account, and the name by which the platform's log has who started it. */
function whoGave(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // Some platforms run an image under a number that has no name.
    return `${process.getuid?.()}@${hostname()}`;
  }
}

/** Ends with 1 where something is at fault, so that a deployment can ask before it goes on. */
async function doctor(): Promise<void> {
  const findings = await examine();
  for (const finding of findings) process.stdout.write(`${lineOf(finding)}\n`);
  process.exitCode = findings.some(({ level }) => level === "fault") ? 1 : 0;
}

/** What one connected account shows of the CRM; with a file, also as JSON for the developers. */
async function probe(config: Config, logger: Logger, [option, tenant, file, ...more]: string[]): Promise<void> {
  if (option !== "--crm" || tenant === undefined || more.length > 0)
    throw new UnknownCommandError("Say: doctor, or doctor --crm TENANT [FILE].");
  sayGiven("doctor", logger);
  const asReport = async (): Promise<[ProbeReport, string]> => {
    const report = await probeWith(config, logger, tenant);
    return [report, reportInWords(report)];
  };
  const text = file === undefined ? (await asReport())[1] : await reportInto(file, asReport);
  process.stdout.write(`${text}\n`);
}

/** With what a service has to speak to the CRM, and without the service. */
async function probeWith(config: Config, logger: Logger, tenant: string): Promise<ProbeReport> {
  return withDatabase(config, { entities, logger }, async (database, url) => {
    const stops = new CrmStops(database);
    const crm = crmOf({ config, database, url, metrics: createMetrics(), logger, clock: systemClock }, stops);
    const probed = probeCrm({ ...crm.base, ...crm, requireNoStop: () => stops.requireNone() }, tenant);
    return probed.finally(crm.close);
  });
}

class LateEndError extends ServiceError {
  readonly code = "LATE_END";
}

class UnknownCommandError extends ServiceError {
  readonly code = "UNKNOWN_COMMAND";
}

/**
 * From when it listens no more; what is in hand is finished or called off before. A database that is silent answers no session's
 * end either, and whoever started the process would have to kill it.
 */
const ENDS_WITHIN_MS = 69 * SECOND_MS;
/** npm hands a signal on that a terminal or an init has sent to the whole group: that is the same one. */
const SAME_SIGNAL_MS = SECOND_MS;

async function serve(config: Config, logger: Logger): Promise<void> {
  // The job library rejects a promise of its own that nobody can hear when it loses its database session at the wrong
  // moment. Its runner is started again; ending the process would only cut the requests and pages in hand.
  process.on("unhandledRejection", (error) => {
    const level = heldUpOf(error) ? "warn" : "error";
    logger[level]({ err: error }, "a rejection that nobody handled");
  });
  process.on("uncaughtException", (error) => failWhenWritten(error, logger));
  // A command has no use for it, and begins in half the time without it.
  const { createApp } = await import("./app.js");
  const app = createApp(config, logger);
  let stoppingSince: number | null = null;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (stoppingSince !== null) {
        // Whoever asks again does not wait for what is in hand, as the line below has told them.
        if (performance.now() - stoppingSince > SAME_SIGNAL_MS) void written(logger).then(() => process.exit(1));
        return;
      }
      stoppingSince = performance.now();
      const late = new LateEndError("It did not end in time and was ended.");
      setTimeout(() => failWhenWritten(late, logger), config.drainMs + ENDS_WITHIN_MS).unref();
      logger.info({ signal }, "stopping: requests and pages in hand are finished first; the signal again ends at once");
      const ended = app.stop().then(() => written(logger));
      ended.then(
        () => process.exit(0),
        (error) => failWhenWritten(error, logger),
      );
    });
  }
  const address = await app.start().catch((error: unknown) => {
    // No failure: whether it ended well is told above.
    if (stoppingSince === null) throw error;
    logger.info({ err: error }, "it was stopped before it was up");
  });
  if (address === undefined || stoppingSince !== null) return;
  logger.info({ address, roles: [...config.roles] }, "the service is up");
}

/** What an operator can mend is said in words; only what nobody foresaw shows its stack. */
function wordsFor(error: unknown): string {
  if (error instanceof ServiceError) return messageOf(error);
  if (needsOperator(error)) return `The database does not let this be done: ${messageOf(error)}. See: npm run doctor`;
  if (heldUpOf(error)) return `The database held this up: ${messageOf(error)}. Run it again.`;
  return (error instanceof Error && error.stack) || String(error);
}

/** The lines before it say what led to it, and an exit leaves out those that are being written. */
const failWhenWritten = (error: unknown, logger: Logger) => written(logger).then(() => fail(error));

function fail(error: unknown): never {
  process.stderr.write(`${wordsFor(error)}\n`);
  process.exit(1);
}

// Who reads the first lines alone, as `head` does, has what they wanted.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
if (require.main === module) main(process.argv.slice(2)).catch(fail);
