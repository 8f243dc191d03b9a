import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Page } from "../../src/server/pages";
import { useStarted } from "../support/world";
import { startProduct } from "./support/product";

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

test("a service that has no built page says how to build it", () => {
  const parts = { tokenUrl: "https://app.example.com/token", redirectUrl: "https://app.example.com/crm/callback" };
  const empty = mkdtempSync(join(tmpdir(), "no-page-"));
  expect(() => new Page({ ...parts, directory: empty })).toThrow("npm run build");
});
