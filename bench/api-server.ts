import { ApolloServer } from "@apollo/server";
import fastifyApollo from "@as-integrations/fastify";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { GraphQLSchema } from "graphql";
import { LRUCache } from "lru-cache";
import type { ObjectLiteral, ObjectType } from "typeorm";
import { type ActorVerifier, createCallers } from "../src/auth/actor";
import { ShownNotes } from "../src/briefing/notes";
import { asApplication } from "../src/database/application-role";
import { createDataSource } from "../src/database/data-source";
import { Database } from "../src/database/database";
import type { Shape } from "../src/database/rows";
import { entities } from "../src/entities";
import { Secret } from "../src/platform/keyring";
import { createLogger } from "../src/platform/logger";
import { createMetrics } from "../src/platform/metrics";
import { createOperationContext, type OperationContext, type ResolverServices } from "../src/resolvers/context";
import { buildGraphQLSchema, callStraight } from "../src/resolvers/graphql-schema";
import { createHttpServer } from "../src/server/http-server";
import { tellEventLoopDelay } from "./api-load";
import { peerModule } from "./api-peers";
import { failed, say } from "./print";

/**
 * One schema, its resolvers and their database behind the service's own server, behind Apollo as it comes, or behind
 * Mercurius with JIT. The peers call the resolvers as type-graphql does, with STRAIGHT as the service does. With MEMORY what
 * PostgreSQL answered to a statement once is its answer from then on, so that what is left is the GraphQL layer.
 */

/** Each read of a tenant is asked for once; what comes again is answered from memory, and costs next to nothing to find there. */
function remembering(database: Database): Database {
  const known = new Map<string, Map<string, Promise<object[]>>>();
  const remembered = <T>(sql: string, of: readonly unknown[], ask: () => Promise<T[]>): Promise<T[]> => {
    // A statement's text is long, and is not written into a key each time.
    const answers = known.get(sql) ?? new Map<string, Promise<object[]>>();
    if (answers.size === 0) known.set(sql, answers);
    const name = JSON.stringify(of);
    const answer = answers.get(name) ?? (ask() as Promise<object[]>);
    answers.set(name, answer);
    return answer as Promise<T[]>;
  };
  const tenant: Database["tenant"] = (tenantId, signal) => {
    const scope = database.tenant(tenantId, signal);
    return {
      ...scope,
      rows: <T>(sql: string, parameters: readonly unknown[] = [], shape?: Shape<T>) => {
        const ask = () => (shape ? scope.rows(sql, parameters, shape) : scope.rows(sql, parameters));
        return remembered(sql, [tenantId, parameters], ask as () => Promise<T[]>);
      },
      entities: <T extends ObjectLiteral, Extra>(
        entity: ObjectType<T>,
        sql: string,
        parameters: readonly unknown[],
        extra?: Shape<Extra>,
      ) =>
        remembered(sql, [tenantId, entity.name, parameters], () =>
          extra ? scope.entities(entity, sql, parameters, extra) : scope.entities<T & Extra>(entity, sql, parameters),
        ),
    };
  };
  return Object.create(database, { tenant: { value: tenant }, idOf: { value: database.idOf.bind(database) } });
}

/** Mutations and subscriptions are not measured, so their services are not there. */
async function servicesOf(databaseUrl: string, inMemory: boolean): Promise<ResolverServices> {
  const url = await asApplication(new Secret(databaseUrl));
  const dataSource = await createDataSource({ url, entities }).initialize();
  const database = new Database(dataSource);
  const now = new Date();
  return {
    lastCopies: new LRUCache({ max: 1_000 }),
    shownNotes: new ShownNotes(database, createLogger("silent")),
    database: inMemory ? remembering(database) : database,
    clock: inMemory ? () => now : () => new Date(),
  } as ResolverServices;
}

const contextOf = async (request: FastifyRequest, verifyActor: ActorVerifier, services: ResolverServices) =>
  createOperationContext(await verifyActor((request.headers.authorization ?? "").slice("Bearer ".length)), services);

async function listen(fastify: FastifyInstance): Promise<string> {
  return fastify.listen({ host: "127.0.0.1", port: 0 });
}

async function serveByService(
  schema: GraphQLSchema,
  services: ResolverServices,
  verifyActor: ActorVerifier,
): Promise<string> {
  const server = await createHttpServer({
    ...{
      schema,
      services,
      verifyActor,
      introspection: false,
      compileQueriesAtUse: 3,
      allowedOrigins: [],
      trustedProxies: [],
      explorer: null,
      page: null,
      uninstalls: { path: "/crm/callback", uninstalls: { admits: () => false, take: async () => "UNKNOWN" as const } },
    },
    checkReady: async () => undefined,
    metrics: createMetrics(),
    logger: createLogger("info"),
  });
  return server.listen("127.0.0.1", 0);
}

async function serveByApollo(
  schema: GraphQLSchema,
  services: ResolverServices,
  verifyActor: ActorVerifier,
): Promise<string> {
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
  services: ResolverServices,
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
  const { KIND, MEMORY, STRAIGHT, DATABASE_URL = "", AUTH_JWT_SECRET = "" } = process.env;
  const kind = KIND as ServerKind;
  if (kind === "apollo") readFieldsByFunctions();
  const services = await servicesOf(DATABASE_URL, MEMORY === "1");
  const { verify: verifyActor } = createCallers(
    { proof: { kind: "secret", secret: new Secret(AUTH_JWT_SECRET) }, issuer: undefined, audience: undefined },
    (tenant) => services.database.idOf(tenant),
    createLogger("silent"),
  );
  const built = buildGraphQLSchema();
  const schema = kind === "service" || STRAIGHT === "1" ? callStraight(built) : built;
  const address = await SERVERS[kind](schema, services, verifyActor);
  tellEventLoopDelay();
  say(`listening at "port":${new URL(address).port}`);
}

if (require.main === module) main().catch(failed);
