import { BadArguments, optionsFrom, usage } from "./arguments";
import { startSimulator } from "./index";

void main();

async function main(): Promise<void> {
  try {
    const simulator = await startSimulator(optionsFrom(process.argv.slice(2)));
    const { url, clientId, clientSecret, redirectUrl } = simulator;
    process.stdout.write(
      `simulated CRM at ${url} with ${simulator.company.deals.size} deals; set CRM_BASE_URL=${url} CRM_AUTH_URL=${url} ` +
        `CRM_CLIENT_ID=${clientId} CRM_CLIENT_SECRET=${clientSecret} CRM_REDIRECT_URL=${redirectUrl}\n`,
    );
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void simulator.stop());
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    if (error instanceof BadArguments) process.stderr.write(`${usage}\n`);
    process.exitCode = error instanceof BadArguments ? 2 : 1;
  }
}
