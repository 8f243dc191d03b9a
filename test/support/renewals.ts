import { pino } from "pino";
import type { Fault, Simulator } from "../../simulator";
import type { Credential } from "../../src/connections/credentials";
import { CrmApi } from "../../src/crm/api";
import type { TokenSource } from "../../src/crm/calls";
import type { Config } from "../../src/platform/config";
import type { Secret } from "../../src/platform/keyring";
import type { TestDatabase } from "./database";
import type { Service } from "./service";
import { connect, dataOf, until } from "./stories";
import { copyOf, startTokens, type TokenParts } from "./tokens";
import { useStarted, World } from "./world";

export interface Connected {
  tenant: string;
  tenantId: number;
  copyId: number;
  source: TokenSource;
}

interface Shown {
  state: string;
  reauthorizationReason: string | null;
  trouble: { code: string; message: string; since: string; lastSeenAt: string } | null;
}

/** A CRM, a service without workers, and access tokens beside it, all by one clock that moves only when told. */
export interface Renewals {
  simulator: Simulator;
  database: TestDatabase;
  service: Service;
  config: Config;
  access: TokenParts;
  /** The CRM user of every consent. */
  userId: number;
  clock(): Date;
  later(ms: number): void;
  /** Warnings and errors since a tenant connected last. */
  logged: { level: number }[];
  /** A tenant that no other test has touched, connected just now; the CRM's log begins after that. */
  connected(parts?: TokenParts): Promise<Connected>;
  stored(connected: Connected): Promise<Credential>;
  shown(connected: Connected): Promise<Shown>;
  attempts(connected: Connected): Promise<unknown[]>;
  /** Makes the token endpoint fail until the function that it returns is called. */
  fail(fault: Fault): () => void;
  /** The answer of `users/me` to a token that the CRM does not know. */
  sameUser(): Fault;
  /** How many requests for tokens the CRM got. */
  asked(): number;
  isSent(): Promise<boolean>;
  api(source: TokenSource): CrmApi;
  /** Fails unless the CRM takes the token. */
  use(token: Secret): Promise<void>;
  stop(): Promise<void>;
}

async function startRenewals(): Promise<Renewals> {
  let now = new Date();
  const clock = () => now;
  const world = await World.start({ deals: 10, clock });
  const { simulator, database, config } = world;
  const logged: Renewals["logged"] = [];
  const logger = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line)) });
  const service = await world.startService({ roles: ["api"] });
  const access = await startTokens(config, () => ({ clock, logger }));
  world.cleanup(access.close);
  const asked = () => simulator.log.of("POST", "/oauth/token").length;
  const api = (source: TokenSource) => new CrmApi({ http: access.http, baseUrl: simulator.url, tokens: source });
  let tenants = 0;
  return {
    simulator,
    database,
    service,
    config,
    access,
    clock,
    logged,
    asked,
    api,
    userId: simulator.company.stories.singleDeal.ownerId,
    later: (ms) => {
      now = new Date(now.getTime() + ms);
    },
    connected: async (parts = access) => {
      tenants += 1;
      const tenant = `tenant-${tenants}`;
      await connect(service, simulator, { tenant });
      simulator.log.clear();
      logged.length = 0;
      const copyId = await copyOf(database, tenant);
      const tenantId = await database.tenantId(tenant);
      return { tenant, tenantId, copyId, source: parts.tokens.of(tenantId, copyId) };
    },
    stored: async ({ tenant, tenantId, copyId }) => {
      const stored = await access.credentials.read(access.database.tenant(tenantId), copyId);
      if (!stored) throw new Error(`${tenant} has no credential`);
      return stored;
    },
    shown: async ({ tenant }) => {
      const query = "{ connection { state reauthorizationReason trouble { code message since lastSeenAt } } }";
      return dataOf(await service.ask<{ connection: Shown }>(query, {}, { tenant })).connection;
    },
    attempts: ({ tenant }) =>
      database.query(
        "SELECT version FROM renewal_attempt WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
        [tenant],
      ),
    fail: (fault) => simulator.control.fail({ match: "/oauth/token", with: fault }),
    sameUser: () => {
      const { id: company_id, name: company_name, domain: company_domain, users } = simulator.company;
      const user = users.get(simulator.company.stories.singleDeal.ownerId);
      return { status: 200, body: { success: true, data: { ...user, company_id, company_name, company_domain } } };
    },
    isSent: () => until("the renewal is sent", async () => asked() > 0),
    use: async (token) => void (await api({ current: async () => token, renewed: async () => token }).currentUser()),
    stop: () => world.stop(),
  };
}

/** For all tests of a file; each begins without faults. */
export function useRenewals(): Renewals {
  const on = useStarted(startRenewals);
  afterEach(() => on.simulator.control.clearFaults());
  return on;
}

/** How a connection is shown. */
export const WORKS = { state: "CONNECTED", reauthorizationReason: null, trouble: null };
export const REVOKED = { state: "NEEDS_REAUTHORIZATION", reauthorizationReason: "GRANT_REVOKED", trouble: null };
export const UNCONFIRMED = { ...REVOKED, reauthorizationReason: "RENEWAL_UNCONFIRMED" };

/** How a need for a token fails. */
export const NEEDS_REAUTHORIZATION = { code: "NEEDS_REAUTHORIZATION" };
export const NOT_CONNECTED = { code: "NOT_CONNECTED" };

/** A refusal of the token endpoint in the documented form. */
export const refusal = (status: number, error: string): Fault => ({
  status,
  body: { success: false, message: "No", error },
});
