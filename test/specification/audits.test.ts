import { auditServer } from "graphql-http";
import { fetch } from "undici";
import { type Simulator, startSimulator } from "../../simulator";
import { tokenFor } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";

let simulator: Simulator;
let database: TestDatabase;
let service: Service;
let authorization: string;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10 }), createTestDatabase()]);
  service = await startService(simulator, database, { roles: new Set(["api"]), introspection: false });
  authorization = `Bearer ${await tokenFor()}`;
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

const asked = (url: string, { headers = {}, ...init }: { headers?: Record<string, string> } = {}) =>
  fetch(url, { ...init, headers: { ...headers, authorization } });

test("GraphQL over HTTP is served as its specification says", async () => {
  const results = await auditServer({ url: `${service.url}/graphql`, fetchFn: asked });
  const failed = results.flatMap((result) => (result.status === "ok" ? [] : [[result.status, result.name, result.reason]]));
  expect(results.length).toBeGreaterThanOrEqual(60);
  expect(failed).toEqual([]);
});
