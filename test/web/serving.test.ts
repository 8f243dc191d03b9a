import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Fastify from "fastify";
import { ProductPage } from "../../src/server/pages";
import { useStarted } from "../support/world";
import { startProduct } from "./support/product";
import { state } from "./support/steps";

const product = useStarted(startProduct);

const get = (path: string) => fetch(`${product.service.url}${path}`);

test.each(["/", "/settings", "/settings/", "/quiet/settings/?from=mail", "/meetings/", "/crm/callback?code=c&state=s"])(
  "%s is the page, with headers that shut it",
  async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    const document = await answer.text();
    expect(document).toContain(`<meta name="token-url" content="${product.host.tokenUrl}"`);
    expect(document).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=/);
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain(`connect-src 'self' ${product.host.url}`);
    expect(policy).not.toMatch(/unsafe|\*|data:/);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    });
  },
);

test("scripts and styles are kept by browsers for good: their addresses change with their content", async () => {
  const document = await (await get("/")).text();
  const assets = [...document.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
  expect(assets.length).toBeGreaterThanOrEqual(2);
  for (const path of assets) {
    const answer = await get(path);
    expect([path, answer.status, answer.headers.get("cache-control")]).toEqual([
      path,
      200,
      "public, max-age=31536000, immutable",
    ]);
  }
});

test.each(["/assets/..%2findex.html", "/assets/../../package.json", "/package.json", "/assets/", "/elsewhere"])(
  "%s is not there",
  async (path) => {
    expect((await get(path)).status).toBeGreaterThanOrEqual(400);
  },
);

// Seen red: an address with a broken escape got the framework's own JSON.
test.each(["/meetings/%E0%A4%A", `/meetings/${"m".repeat(200)}/%`, "/elsewhere/%zz", "/elsewhere"])(
  "at %s a person is told by the page, and a program in JSON",
  async (path) => {
    const shown = await fetch(`${product.service.url}${path}`, { headers: { accept: "text/html,*/*" } });
    expect([shown.status, shown.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(shown.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await shown.text()).toBe(await (await get("/")).text());
    const told = await get(path);
    expect([told.status, await told.json()]).toEqual([404, expect.objectContaining({ error: "Not Found" })]);
  },
);

test("the page shows what it is asked for with a slash at the end, and that it does not know a broken address", async () => {
  const page = await product.signIn("admin");
  await page.goto(`${product.service.url}/settings/`);
  await page.getByRole("heading", { level: 1, name: "CRM connection" }).waitFor();
  await page.goto(`${product.service.url}/meetings/%E0%A4%A`);
  await page.getByRole("heading", { level: 1, name: "There is no such meeting" }).waitFor();
});

test("a browser loads the page without one complaint about its policy", async () => {
  const page = await product.openSignedOut();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(`${product.service.url}/settings`);
  await page.getByText("You are not signed in").waitFor();
  expect(complaints.filter((text) => !text.includes("401"))).toEqual([]);
});

const parts = { tokenUrl: "https://app.example.com/token", redirectUrl: "https://app.example.com/crm/callback" };

/** The page of one version, as a process serves it. */
async function servePageOf(version: string) {
  const directory = mkdtempSync(join(tmpdir(), "page-"));
  mkdirSync(join(directory, "assets"));
  for (const file of [`index-${version}.js`, `index-${version}.css`])
    writeFileSync(join(directory, "assets", file), `/* ${version} */`);
  writeFileSync(join(directory, "index.html"), `${version} /assets/index-${version}.js /assets/index-${version}.css`);
  const fastify = Fastify();
  await new ProductPage({ ...parts, directory }).serve(fastify);
  return { url: await fastify.listen({ host: "127.0.0.1", port: 0 }), stop: () => fastify.close() };
}

// Seen red: each second file was 404, and a browser that had got the document of one version stood before an empty page.
test("while two versions take turns, a browser gets the files of the document that it has got, and of no version for ever", async () => {
  const versions = [await servePageOf("old"), await servePageOf("new")];
  let turn = 0;
  const balancer = createServer(async ({ url }, answer) => {
    turn += 1;
    const { status, headers, body } = await fetch(`${versions[turn % 2]?.url}${url}`, { redirect: "manual" });
    answer.writeHead(status, Object.fromEntries(headers));
    for await (const chunk of body ?? []) answer.write(chunk);
    answer.end();
  });
  await new Promise<void>((listening) => balancer.listen(0, "127.0.0.1", listening));
  const asked = (path: string) => fetch(`http://127.0.0.1:${(balancer.address() as AddressInfo).port}${path}`);
  for (const path of ["/", "/settings", "/quiet"]) {
    const [version, ...files] = (await (await asked(path)).text()).split(" ");
    for (const file of files) expect([file, await (await asked(file)).text()]).toEqual([file, `/* ${version} */`]);
  }
  const gone = await asked("/assets/index-gone.js");
  expect([gone.status, gone.headers.get("cache-control")]).toEqual([404, "no-store"]);
  balancer.closeAllConnections();
  balancer.close();
  for (const { stop } of versions) await stop();
});

// Seen red: a page of the new version told people that it "Cannot query field" of a type, whenever a process of the old one was asked.
test("a page asks the next process where one of another version does not understand it, and says so where none does", async () => {
  const page = await product.signIn("admin");
  await state(page, "Not connected").waitFor();
  let refusals = 2;
  const asked: number[] = [];
  await page.route("**/graphql", (route) => {
    if (refusals === 0 || !route.request().postData()?.includes("query Settings")) return route.continue();
    refusals -= 1;
    asked.push(performance.now());
    const errors = [{ message: "Cannot query field.", extensions: { code: "GRAPHQL_VALIDATION_FAILED" } }];
    return route.fulfill({ status: 400, json: { errors } });
  });
  await page.reload();
  await state(page, "Not connected").waitFor();
  expect(refusals).toBe(0);
  refusals = Number.POSITIVE_INFINITY;
  asked.length = 0;
  await page.reload();
  await page.getByRole("alert").filter({ hasText: "The page and the service are of two versions." }).waitFor();
  // Seen red: eight within some milliseconds.
  expect((asked[7] ?? 0) - (asked[0] ?? 0)).toBeGreaterThan(3_000);
  const again = page.getByRole("button", { name: "Try again" });
  await again.waitFor();
  refusals = 0;
  // An event of the connection makes the page ask by itself, and the button may be gone before it is pressed.
  await again.or(state(page, "Not connected")).first().click();
  await state(page, "Not connected").waitFor();
});

test("a service that has no built page says how to build it", () => {
  const empty = mkdtempSync(join(tmpdir(), "no-page-"));
  expect(() => new ProductPage({ ...parts, directory: empty })).toThrow("npm run build");
});
