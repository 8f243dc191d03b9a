import type { Page } from "playwright-core";
import { screenshot, seriousFindings } from "./support/browser";
import { type Product, startProduct } from "./support/product";

let product: Product;

beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.stop());
afterEach(() => product.simulator.control.clearFaults());

const state = (page: Page, text: string) => page.getByRole("status").filter({ hasText: text });

async function connectThroughConsent(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Connect Pipedrive" }).click();
  await page.getByRole("button", { name: "Allow and Install" }).click();
  await page.getByText(/^Connected as /).waitFor();
}

async function disconnect(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Disconnect …" }).click();
  await page.getByRole("button", { name: "Disconnect and delete the copy" }).click();
  await page.getByRole("button", { name: "Connect Pipedrive" }).waitFor();
}

test("an admin connects through the consent page, sees who is bound, and disconnects; another browser sees it live", async () => {
  const [admin, member] = [await product.signIn("admin"), await product.signIn("member")];
  await state(member, "Not connected").waitFor();
  await screenshot(admin, "settings-not-connected");
  expect(await seriousFindings(admin)).toEqual([]);

  await connectThroughConsent(admin);
  const { company } = product.simulator;
  const bound = company.users.get(company.stories.singleDeal.ownerId);
  await admin.getByText(bound?.email ?? "").waitFor();
  await admin.getByRole("definition").filter({ hasText: company.name }).waitFor();
  expect(admin.url()).toBe(`${product.service.url}/settings`);
  await state(member, "Connected").waitFor();
  await member.getByText(bound?.email ?? "").waitFor();

  await admin.getByText("Succeeded").waitFor();
  await admin.getByText("What the last run read").click();
  await admin.getByRole("listitem").filter({ hasText: "Deals" }).first().waitFor();
  expect(await seriousFindings(admin)).toEqual([]);
  await screenshot(admin, "settings-connected");

  await admin.getByRole("button", { name: "Disconnect …" }).click();
  const dialog = admin.getByRole("dialog");
  await dialog.getByText("notes and field values that were written to the CRM").waitFor();
  expect(await seriousFindings(admin)).toEqual([]);
  await screenshot(admin, "settings-disconnect");
  await admin.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await disconnect(admin);
  await state(member, "Not connected").waitFor();
});
