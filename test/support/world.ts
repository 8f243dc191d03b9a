import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator";
import type { Clock } from "../../src/platform/clock";
import { type Config, type Role, readConfig } from "../../src/platform/config";
import { createTestDatabase, type TestDatabase } from "./database";
import { type Program, startProgram } from "./processes";
import { environmentFor, type Service, type ServiceOptions, serviceAt, startService } from "./service";
import { standIn } from "./stand-in";
import { connect, syncEnds } from "./stories";

/** A machine that others use as well may be several times slower. */
const STARTS_WITHIN_MS = 120_000;

export interface WorldOptions extends Omit<SimulatorOptions, "now"> {
  /** Of the CRM and of all services here. */
  clock?: Clock;
}

export interface ServeOptions {
  /** Default: all. */
  roles?: readonly Role[];
  config?: ServiceOptions;
  /** Tenants whose admin has connected, and whose first sync has ended, as it starts. */
  connected?: readonly string[];
}

/** A CRM and a migrated database, and what is started on them; all of it ends with the world, what began last first. */
export class World {
  readonly #cleanups: (() => unknown)[] = [];

  static async start({ clock, ...crm }: WorldOptions = {}): Promise<World> {
    const [simulator, database] = await Promise.all([startSimulator({ ...crm, now: clock }), createTestDatabase()]);
    return new World(simulator, database, clock);
  }

  private constructor(
    readonly simulator: Simulator,
    readonly database: TestDatabase,
    private readonly clock: Clock | undefined,
  ) {
    this.cleanup(() => Promise.all([simulator.stop(), database.drop()]));
  }

  /** Of a process that serves this CRM from this database. */
  get environment() {
    return { ...environmentFor(this.simulator), DATABASE_URL: this.database.url.reveal() };
  }

  get config(): Config {
    return readConfig(this.environment);
  }

  async startService({ roles, config, connected = [] }: ServeOptions = {}): Promise<Service> {
    const only = roles && { roles: new Set(roles) };
    const service = await startService(this.simulator, this.database, { clock: this.clock, ...only, ...config });
    this.cleanup(service.stop);
    for (const tenant of connected) {
      await connect(service, this.simulator, { tenant });
      await syncEnds(service, { tenant });
    }
    return service;
  }

  /** The service as a process of its own. */
  async startProcess(environment: Record<string, string> = {}): Promise<{ program: Program; service: Service }> {
    const program = startProgram("src/main.js", { ...this.environment, LOG_LEVEL: "info", ...environment });
    const end = async () => {
      program.child.kill("SIGKILL");
      await program.ended;
    };
    this.cleanup(end);
    const [, url = ""] = await program.says(/"address":"([^"]+)"/);
    return { program, service: serviceAt(url, end) };
  }

  /** Before a story: nothing fails, and nothing was asked. */
  beginAnew(): void {
    this.simulator.control.clearFaults();
    this.simulator.log.clear();
  }

  /** Ends something of a story's own before the service and the database that it uses; a hook after all tests is too late. */
  cleanup(end: () => unknown): void {
    this.#cleanups.push(end);
  }

  async stop(): Promise<void> {
    for (let end = this.#cleanups.pop(); end; end = this.#cleanups.pop()) await end();
  }
}

/** How what a file has started is stopped, what began last first. */
const stops: (() => Promise<unknown> | undefined)[] = [];

/** Starts something before the first test of a file and stops it after the last one. */
export function useStarted<T extends { stop(): Promise<unknown> }>(start: () => Promise<T>): T {
  let started: T | undefined;
  beforeAll(async () => {
    stops.push(() => started?.stop());
    started = await start();
  }, STARTS_WITHIN_MS);
  afterAll(() => stops.pop()?.());
  return standIn(() => started);
}

/** A database alone. */
export function useDatabase(options: { empty?: boolean } = {}): TestDatabase {
  return useStarted(async () => {
    const database = await createTestDatabase(options);
    return { ...database, stop: database.drop };
  });
}

export interface Crm {
  world: World;
  simulator: Simulator;
  database: TestDatabase;
  /** A service on them from before the first test on; hooks that stand above it have run. */
  serve(options?: ServeOptions): Service;
}

/** A CRM and a database, for a file that prepares them first, has several services or none. */
export function useCrm(options: WorldOptions = {}): Crm {
  const world = useStarted(() => World.start(options));
  return {
    world,
    simulator: standIn(() => world.simulator),
    database: standIn(() => world.database),
    serve: (of = {}) => serve(world, of),
  };
}

/**
 * The world of a story file: `const { simulator, database, service } = useService({ deals: 40, connected: ["acme"] })` at its
 * top, and everything is there in its tests and in the hooks below it.
 */
export function useService({ roles, config, connected, ...crm }: WorldOptions & ServeOptions = {}) {
  const parts = useCrm(crm);
  return { ...parts, service: parts.serve({ roles, config, connected }) };
}

function serve(world: World, options: ServeOptions): Service {
  let service: Service | undefined;
  beforeAll(async () => {
    service = await world.startService(options);
  }, STARTS_WITHIN_MS);
  return standIn(() => service);
}
