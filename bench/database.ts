import { Client } from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { withClient } from "./tenants";

/** A server that keeps a million records in its memory, as one for so many would: PostgreSQL's default is 128 MB. */
export async function startRoomyPostgres(directory: string): Promise<EmbeddedPostgres> {
  const options = { directory, durable: false };
  const first = await startEmbeddedPostgres(options);
  await withClient(first.url.reveal(), (client) => client.query("ALTER SYSTEM SET shared_buffers = '2GB'"));
  await first.stop();
  return startEmbeddedPostgres(options);
}

/** A new, empty database on the benchmark's server. @returns its address */
export async function createDatabase(serverUrl: string, name: string): Promise<string> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(serverUrl);
  url.pathname = name;
  return url.href;
}
