import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import fastifyStatic from "@fastify/static";
import Fastify from "fastify";
import { startHostProduct } from "../../demo/host-product";
import { JWT_SECRET } from "../support/actors";
import { until } from "../support/stories";
import { useCrm, useStarted } from "../support/world";
import { launchBrowser, openBrowser } from "./support/browser";

const BUILT = "dist/example-page";
const PEOPLE = {
  admin: { name: "Admin", claims: { sub: "anna", tenant: "acme", role: "admin", plan: "sales" } },
};

const { world } = useCrm({ deals: 10 });
const host = useStarted(() => startHostProduct({ jwtSecret: JWT_SECRET, people: PEOPLE }));
/** Another origin than the service's and the host's. */
const front = useStarted(async () => {
  const server = Fastify();
  await server.register(fastifyStatic, { root: resolve(BUILT) });
  return { url: await server.listen({ host: "127.0.0.1", port: 0 }), stop: () => server.close() };
});
/** Stopped before the servers: they would wait for its connections that are open and have asked for nothing. */
const browser = useStarted(async () => {
  const started = await launchBrowser();
  return { open: () => openBrowser(started), stop: () => started.close() };
});

test("the example page asks and hears the service from an origin that is allowed, and from no other", async () => {
  expect(readFileSync(`${BUILT}/index.html`, "utf8")).toContain('type="module"');
  const service = await world.startService({ connected: ["acme"], config: { allowedOrigins: [front.url] } });
  const closed = await world.startService({ roles: ["api"] });
  host.servePage(front.url);
  const page = await (await browser.open()).newPage();
  await page.goto(host.url);
  await page.getByRole("button", { name: "Admin" }).click();
  await page.waitForURL(`${front.url}/**`);
  const open = (url: string) => page.goto(`${front.url}/?service=${url}&host=${host.url}`);

  await open(service.url);
  await page.getByText("anna is ADMIN").waitFor();
  await until("the state is told", async () => (await page.locator("#state").innerText()) === "CONNECTED");
  await service.ask("mutation { disconnect { __typename } }");
  await until("the change is told", async () => (await page.locator("#state").innerText()) === "NOT_CONNECTED");

  await open(closed.url);
  await page.getByText("Failed to fetch").waitFor();

  // Seen red: a link to the page gave its reader's token to whatever it named. By this name it is no address of this machine.
  const asked: (string | undefined)[] = [];
  const thief = createServer(({ headers }, response) => {
    asked.push(headers.authorization);
    response.writeHead(204, { "access-control-allow-origin": "*", "access-control-allow-headers": "*" }).end();
  });
  await new Promise<void>((listening) => thief.listen(0, "127.0.0.1", listening));
  await open(`http://localhost:${(thief.address() as AddressInfo).port}`);
  await page.getByText("service is none of this machine").waitFor();
  expect(asked).toEqual([]);
  thief.close();
});
