import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { type HostProduct, startHostProduct } from "../../../demo/host-product";
import type { Simulator } from "../../../simulator";
import { freePort } from "../../../src/database/embedded/programs";
import type { Config } from "../../../src/platform/config";
import { JWT_SECRET } from "../../support/actors";
import type { TestDatabase } from "../../support/database";
import type { Service } from "../../support/service";
import { connect, syncEnds } from "../../support/stories";
import { World, type WorldOptions } from "../../support/world";
import { launchBrowser, openBrowser } from "./browser";

const TENANT = "acme";
const PEOPLE = {
  admin: {
    name: "Anna Admin",
    claims: { sub: "anna", tenant: TENANT, role: "admin", plan: "sales", email: "anna@seller.example" },
  },
  member: { name: "Max Member", claims: { sub: "max", tenant: TENANT, role: "member", plan: "sales" } },
  starter: { name: "Stella Starter", claims: { sub: "stella", tenant: TENANT, role: "admin", plan: "free" } },
};
type PersonName = keyof typeof PEOPLE;

/** All that a user of the page needs: a CRM, the service with its page, the product around it, and browsers. */
export interface Product {
  simulator: Simulator;
  database: TestDatabase;
  service: Service;
  host: HostProduct;
  /** Signs a person in, in a browser of their own. @returns the page, on its first screen */
  signIn(person: PersonName, options?: BrowserContextOptions): Promise<Page>;
  /** A browser in which nobody is signed in, on the page's first screen. */
  openSignedOut(): Promise<Page>;
  /** Ends the service and begins it again at the same address, as after an outage. */
  stopService(): Promise<void>;
  startService(): Promise<void>;
  stop(): Promise<void>;
}

interface ProductOptions {
  crm?: WorldOptions;
  service?: Partial<Config>;
  tokenLifeSeconds?: number;
}

export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const port = await freePort();
  const [world, host, browser] = await Promise.all([
    World.start({ deals: 30, ...options.crm, redirectUrl: `http://127.0.0.1:${port}/crm/callback` }),
    startHostProduct({ jwtSecret: JWT_SECRET, people: PEOPLE, tokenLifeSeconds: options.tokenLifeSeconds }),
    launchBrowser(),
  ]);
  const start = () => world.startService({ config: { port, page: { tokenUrl: host.tokenUrl }, ...options.service } });
  const product: Product = {
    simulator: world.simulator,
    database: world.database,
    host,
    service: await start(),
    signIn: (person, browserOptions) => signIn(browser, host, person, browserOptions),
    openSignedOut: async () => {
      const page = await (await openBrowser(browser)).newPage();
      await page.goto(product.service.url);
      return page;
    },
    stopService: () => product.service.stop(),
    startService: async () => {
      product.service = await start();
    },
    stop: async () => {
      await browser.close();
      await host.stop();
      await world.stop();
    },
  };
  host.servePage(product.service.url);
  return product;
}

/** The same with its CRM connected, and read. */
export async function startConnected(options?: ProductOptions): Promise<Product> {
  const product = await startProduct(options);
  await connect(product.service, product.simulator);
  await syncEnds(product.service);
  return product;
}

async function signIn(
  browser: Browser,
  host: HostProduct,
  person: PersonName,
  options?: BrowserContextOptions,
): Promise<Page> {
  const page = await (await openBrowser(browser, options)).newPage();
  await page.goto(host.url);
  await page.getByRole("button", { name: PEOPLE[person].name }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
}
