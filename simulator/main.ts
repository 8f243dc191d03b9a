import type { AddressInfo } from "node:net";
import { BadArguments, optionsFrom, usage } from "./arguments";
import { startSimulator } from "./index";
import { startRemoteControl } from "./remote/remote-control";

void main();

async function main(): Promise<void> {
  try {
    const { controlPort, help, ...options } = optionsFrom(process.argv.slice(2));
    if (help) return void process.stdout.write(`${usage}\n`);
    const simulator = await startSimulator(options);
    const { url, clientId, clientSecret, redirectUrl } = simulator;
    process.stdout.write(
      `simulated CRM at ${url} with ${simulator.company.deals.size} deals; set CRM_BASE_URL=${url} CRM_AUTH_URL=${url} ` +
        `CRM_CLIENT_ID=${clientId} CRM_CLIENT_SECRET=${clientSecret} CRM_REDIRECT_URL=${redirectUrl}\n`,
    );
    const remote = controlPort === undefined ? null : await startRemoteControl(simulator, controlPort);
    if (remote) {
      const { port } = remote.server.address() as AddressInfo;
      process.stdout.write(`commands at http://127.0.0.1:${port}/\n`);
    }
    const stop = () => void Promise.all([simulator.stop(), remote?.close()]);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    if (error instanceof BadArguments) process.stderr.write(`${usage}\n`);
    process.exitCode = error instanceof BadArguments ? 2 : 1;
  }
}
