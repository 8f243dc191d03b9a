import { ApolloServer } from "@apollo/server";
import fastifyApollo from "@as-integrations/fastify";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { GraphQLSchema } from "graphql";
import { type ActorVerifier, createActorVerifier } from "../src/auth/actor";
import { asApplication } from "../src/database/application-role";
import { createDataSource } from "../src/database/data-source";
import { JointReads } from "../src/database/joint-reads";
import { TenantDoor } from "../src/database/tenant-door";
import { entities } from "../src/entities";
import { createLogger } from "../src/platform/logger";
import { createMetrics } from "../src/platform/metrics";
import { Secret } from "../src/platform/secret";
import { createOperationContext, type OperationContext, type Services } from "../src/resolvers/context";
import { buildGraphQLSchema } from "../src/resolvers/graphql-schema";
import { createHttpServer } from "../src/server/http-server";
import { tellEventLoopDelay } from "./api-load";
import { peerModule } from "./api-peers";
import { failed, say } from "./print";

/**
 * One schema, its resolvers and their database behind the service's own server, behind Apollo as it comes, or behind
 * Mercurius with JIT. With MEMORY what PostgreSQL answered to a statement once is its answer from then on, so that what
 * is left is the GraphQL layer.
 */

type Statement = (sql: string, parameters?: unknown[]) => Promise<unknown>;

function remembering(door: TenantDoor): TenantDoor {
  const known = new Map<string, Map<string, Promise<unknown>>>();
  const enter: TenantDoor["enter"] = (tenantId, signal) => {
    const scope = door.enter(tenantId, signal);
    const ask: Statement = scope.manager.query.bind(scope.manager);
    const query: Statement = (sql, parameters) => {
      const answers = known.get(sql) ?? new Map<string, Promise<unknown>>();
      known.set(sql, answers);
      const key = JSON.stringify([tenantId, parameters]);
      const answer = answers.get(key) ?? ask(sql, parameters);
      answers.set(key, answer);
      return answer;
    };
    const manager = Object.create(scope.manager, { query: { value: query } });
    return { ...scope, manager, reads: new JointReads(manager) };
  };
  return Object.create(door, { enter: { value: enter }, idOf: { value: door.idOf.bind(door) } });
}

/** Mutations and subscriptions are not measured, so their services are not there. */
async function servicesOf(databaseUrl: string, inMemory: boolean): Promise<Services> {
  const url = await asApplication(new Secret(databaseUrl));
  const dataSource = await createDataSource({ url, entities }).initialize();
  const door = new TenantDoor(dataSource);
  const now = new Date();
  return {
    door: inMemory ? remembering(door) : door,
    clock: inMemory ? () => now : () => new Date(),
  } as Services;
}

const contextOf = async (request: FastifyRequest, verifyActor: ActorVerifier, services: Services) =>
  createOperationContext(await verifyActor((request.headers.authorization ?? "").slice("Bearer ".length)), services);

async function listen(fastify: FastifyInstance): Promise<string> {
  return fastify.listen({ host: "127.0.0.1", port: 0 });
}

async function serveByService(schema: GraphQLSchema, services: Services, verifyActor: ActorVerifier): Promise<string> {
  const server = await createHttpServer({
    ...{
      schema,
      services,
      verifyActor,
      introspection: false,
      compileQueriesAtUse: 3,
      allowedOrigins: [],
      trustedProxies: [],
      page: null,
    },
    checkReady: async () => undefined,
    metrics: createMetrics(),
    logger: createLogger("info"),
  });
  return server.listen("127.0.0.1", 0);
}

async function serveByApollo(schema: GraphQLSchema, services: Services, verifyActor: ActorVerifier): Promise<string> {
  const apollo = new ApolloServer<OperationContext>({ schema });
  await apollo.start();
  const fastify = Fastify();
  await fastify.register(fastifyApollo(apollo), {
    path: "/graphql",
    context: (request) => contextOf(request, verifyActor, services),
  });
  return listen(fastify);
}

async function serveByMercurius(
  schema: GraphQLSchema,
  services: Services,
  verifyActor: ActorVerifier,
): Promise<string> {
  const fastify = Fastify();
  const mercurius = peerModule<Parameters<typeof fastify.register>[0]>("mercurius", "mercurius");
  const context = (request: FastifyRequest) => contextOf(request, verifyActor, services);
  await fastify.register(mercurius, { schema, jit: 1, context } as object);
  return listen(fastify);
}

const SERVERS = { service: serveByService, apollo: serveByApollo, mercurius: serveByMercurius };
export type ServerKind = keyof typeof SERVERS;

/** As type-graphql reads fields where it is not told that a type's values are plain objects; it exports no way to its list. */
function readFieldsByFunctions(): void {
  const { TypeGraphQLMetadataStorage: metadata } = globalThis as unknown as {
    TypeGraphQLMetadataStorage: { objectTypes: { simpleResolvers?: boolean }[] };
  };
  for (const type of metadata.objectTypes) type.simpleResolvers = false;
}

async function main(): Promise<void> {
  const { KIND, MEMORY, DATABASE_URL = "", AUTH_JWT_SECRET = "" } = process.env;
  const kind = KIND as ServerKind;
  if (kind === "apollo") readFieldsByFunctions();
  const services = await servicesOf(DATABASE_URL, MEMORY === "1");
  const verifyActor = createActorVerifier(
    { proof: { kind: "secret", secret: new Secret(AUTH_JWT_SECRET) }, issuer: undefined, audience: undefined },
    (tenant) => services.door.idOf(tenant),
    createLogger("silent"),
  );
  const address = await SERVERS[kind](buildGraphQLSchema(), services, verifyActor);
  tellEventLoopDelay();
  say(`listening at "port":${new URL(address).port}`);
}

if (require.main === module) main().catch(failed);
