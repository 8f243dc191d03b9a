import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const PAGE = join(__dirname, "../../dist/web");
const MOST_BYTES = 130 * 1024;

/** Built by `npm run test:web` before this. */
test("the page's first load has at most 130 KB of compressed JavaScript", () => {
  const document = readFileSync(join(PAGE, "index.html"), "utf8");
  const scripts = [...document.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)].map(([, path]) => path ?? "");
  expect(scripts.length).toBeGreaterThan(0);
  const bytes = scripts.map((path) => gzipSync(readFileSync(join(PAGE, path))).length);
  expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(MOST_BYTES);
});
