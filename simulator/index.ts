import type { AddressInfo } from "node:net";
import type { World } from "./api/operation";
import { operations } from "./api/operations";
import { type Control, SimulatorControl } from "./control/control";
import type { Company } from "./model/company";
import { type Settings, type SimulatorOptions, settingsFrom } from "./model/options";
import type { Entity, User } from "./model/records";
import { Tallies } from "./model/tallies";
import { Texts } from "./model/texts";
import { Clock } from "./model/times";
import { Views } from "./model/views";
import type { SignedIn } from "./oauth/consent-page";
import { Grants } from "./oauth/grants";
import { seedCompany } from "./seed/seed-company";
import { Budget } from "./server/budget";
import { Exchange } from "./server/exchange";
import { Faults } from "./server/faults";
import { LateEffects } from "./server/late-effects";
import { Limits } from "./server/limits";
import { RecordedRequests, type RequestLog } from "./server/request-log";
import { createServer } from "./server/server";

export type { Control } from "./control/control";
export type { NewCustomField } from "./control/custom-field-control";
export type { Snapshot } from "./control/snapshot";
export type { Company } from "./model/company";
export type { Field, FieldEntity, FieldType } from "./model/fields";
export type { SimulatorOptions } from "./model/options";
export type { CustomFields, CustomValue, Entity, RecordOf } from "./model/records";
export type { Stories } from "./model/stories";
export type { Identity } from "./oauth/grants";
export type { Ledger, Spending } from "./server/budget";
export type { Fault, FaultRule } from "./server/faults";
export type { LogEntry, RequestLog } from "./server/request-log";

/** A CRM on a port of its own: OAuth and the API on one origin. */
export interface Simulator {
  /** Base address and authorization address alike. */
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUrl: string;
  readonly company: Company;
  readonly log: RequestLog;
  readonly control: Control;
  /** Ends promptly, open connections included. */
  stop(): Promise<void>;
}

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const clock = new Clock(options.now ?? (() => new Date()));
  const settings = settingsFrom({ ...options, now: clock.now });
  const { deals, openPercent, seed, now, company: identity } = settings;
  const company = seedCompany({ deals, openPercent, seed, now: now(), company: identity });
  const world = worldOf(settings, company);
  const grants = new Grants(settings);
  const faults = new Faults(seed);
  const late = new LateEffects(now);
  const budget = new Budget(settings);
  const log = new RecordedRequests();
  const signedIn: SignedIn = { user: storyTeller(company) };
  const server = createServer({
    settings,
    company,
    grants,
    limits: new Limits(settings, budget),
    exchange: new Exchange({ now, log, faults, late, budget }),
    signedIn,
    operations: operations(world),
  });
  await server.listen({ host: settings.host, port: settings.port });
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `http://${settings.host}:${port}`,
    clientId: settings.clientId,
    clientSecret: settings.clientSecret,
    redirectUrl: settings.redirectUrl,
    company,
    log,
    control: new SimulatorControl({ settings, world, grants, faults, late, signedIn, budget, clock }),
    stop: () => server.close(),
  };
}

function worldOf(rules: Settings, company: Company): World {
  const tallies = new Tallies(company, rules.dealsPerson === "counts");
  const views = new Views(company);
  const texts = new Texts(company, tallies);
  const changed = (entity: Entity, id: number) => {
    views.changed();
    texts.changed(entity, id);
    tallies.changed();
  };
  return { company, views, texts, now: rules.now, rules, changed };
}

/** The owner of the first story: no admin, yet every story is visible to this user. */
function storyTeller(company: Company): User {
  const user = company.users.get(company.stories.singleDeal.ownerId);
  if (!user) throw new Error("the stories have no owner");
  return user;
}
