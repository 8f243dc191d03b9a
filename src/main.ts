import { createApp, rotateKeys } from "./app";
import { type Config, readConfig } from "./platform/config";
import { messageOf, ServiceError } from "./platform/errors";
import { createLogger, type Logger } from "./platform/logger";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

async function main(command: string | undefined): Promise<void> {
  const config = readConfig();
  const logger = createLogger(config.logLevel);
  if (command === "rotate-keys") {
    const { resealed, unchanged } = await rotateKeys(config, logger);
    process.stdout.write(`${resealed} credential(s) sealed under the first key, ${unchanged} were already.\n`);
    return;
  }
  await serve(config, logger);
}

async function serve(config: Config, logger: Logger): Promise<void> {
  // The job library rejects a promise of its own that nobody can hear when it loses its database session at the wrong
  // moment. Its runner is started again; ending the process would only cut the requests and pages in hand.
  process.on("unhandledRejection", (error) => logger.error({ err: error }, "a rejection that nobody handled"));
  const app = createApp(config, logger);
  let stopping = false;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      logger.info({ signal }, "stopping: requests and pages in hand are finished first; the signal again ends at once");
      app.stop().then(
        () => process.exit(0),
        (error) => fail(error),
      );
    });
  }
  const address = await app.start();
  logger.info({ address, roles: [...config.roles] }, "the service is up");
}

/** What an operator can mend is said in words; only what nobody foresaw shows its stack. */
function fail(error: unknown): never {
  const text = error instanceof ServiceError ? messageOf(error) : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

if (require.main === module) main(process.argv[2]).catch(fail);
