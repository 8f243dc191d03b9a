import { parseArgs } from "node:util";
import { startHostProduct } from "../demo/host-product";

const TENANT = "t1";
const PEOPLE = {
  admin: { name: "Example Admin", claims: { sub: "admin", tenant: TENANT, role: "admin", plan: "sales" } },
  member: { name: "Example Member", claims: { sub: "member", tenant: TENANT, role: "member", plan: "sales" } },
};
const USAGE = `Usage: npm run example:host -- --page <address> [--page <address>] [--port 4100]
AUTH_JWT_SECRET is the service's. The first page is where a sign-in leads to; each may ask for tokens.`;

/** The product around the service in the small: `WEB=on WEB_TOKEN_URL=http://127.0.0.1:4100/token npm start` tries the page with it. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { page: { type: "string", multiple: true }, port: { type: "string", default: "4100" } },
  });
  const jwtSecret = process.env.AUTH_JWT_SECRET;
  const [page, ...others] = values.page ?? [];
  if (!jwtSecret || !page) throw new Error(USAGE);
  const host = await startHostProduct({ jwtSecret, people: PEOPLE, port: Number(values.port) });
  host.servePage(page, others);
  process.stdout.write(`Choose who you are at ${host.url}; tokens at ${host.tokenUrl}\n`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
