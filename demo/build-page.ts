import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const SOURCES = "web";
const PAGE = "dist/web";
const STAMP = join(PAGE, "built-from");

/** Builds the page where its sources have changed since it was built last. */
export async function buildPage(): Promise<void> {
  const sources = digestOf(SOURCES);
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === sources) return;
  await promisify(execFile)(process.execPath, ["node_modules/vite/bin/vite.js", "build", SOURCES]);
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
