import { readdirSync } from "node:fs";
import { type Module, parseSync } from "@swc/core";

/** The syntax tree of the service's own files, for tests that hold how they are written. */

export interface Node {
  type: string;
  span: { start: number; end: number };
  [key: string]: unknown;
}

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

export function* nodesOf(value: unknown): Generator<Node> {
  if (isNode(value)) yield value;
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) yield* nodesOf(part);
}

export const parse = (source: string): Module => parseSync(source, { syntax: "typescript", decorators: true });

/** The files of src, by their paths in it. */
export const sourceFiles = (): string[] =>
  readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
