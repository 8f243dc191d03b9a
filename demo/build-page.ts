import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const SOURCES = "web";
const PAGE = "dist/web";
const STAMP = join(PAGE, "built-from");

/** The page, and GraphiQL. */
const ROOTS = [SOURCES, join(SOURCES, "explorer")];

/** Builds them where their sources have changed since they were built last. */
export async function buildPage(): Promise<void> {
  const sources = digestOf(SOURCES);
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === sources) return;
  for (const root of ROOTS)
    await promisify(execFile)(process.execPath, ["node_modules/vite/bin/vite.js", "build", root]);
  writeFileSync(STAMP, sources);
}

function digestOf(folder: string): string {
  const hash = createHash("sha256").update(readFileSync("package-lock.json"));
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  for (const name of names.sort()) hash.update(`\n${name}\n`).update(readFileSync(name));
  return hash.digest("hex");
}
