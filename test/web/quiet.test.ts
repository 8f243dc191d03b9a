import type { Page } from "playwright-core";
import { pastMeetings } from "../../demo/meetings";
import { connect, recordMeeting, syncEnds } from "../support/stories";
import { useStarted } from "../support/world";
import { screenshot, seriousFindings } from "./support/browser";
import { startProduct } from "./support/product";
import { disconnected } from "./support/steps";

let page: Page;

const product = useStarted(() => startProduct({ crm: { deals: 60 } }));
beforeAll(async () => {
  const { service, simulator } = product;
  await connect(service, simulator);
  await syncEnds(service);
  page = await product.signIn("member");
});

const openBoard = () => page.getByRole("link", { name: "Quiet deals" }).click();
const silences = async () =>
  (
    await page
      .getByRole("cell")
      .getByText(/^\d+ days?$/)
      .allTextContents()
  ).map((text) => Number.parseInt(text, 10));

test("while no meeting is recorded the board is empty, and says what is looked at", async () => {
  await openBoard();
  await page.getByRole("heading", { name: "No deal has gone quiet" }).waitFor();
  await page.getByText("Deals without a recorded meeting are not looked at.").waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  await screenshot(page, "quiet-empty");
});

test("quiet deals stand by pipeline and stage, the longest silence first, with days, value and why, and as a picture", async () => {
  const { service, simulator } = product;
  for (const { attendees, ...input } of pastMeetings(simulator.company, Date.now())) {
    await recordMeeting(
      service,
      attendees.map(({ email }) => email),
      input,
    );
  }
  const { ghosted } = simulator.company.stories;
  const startsAt = new Date(Date.now() - 36 * 86_400_000).toISOString();
  await recordMeeting(service, [ghosted.email], { startsAt });
  await page.reload();
  const row = page.getByRole("row").filter({ hasText: "Corvus Optik – rollout" });
  await row.getByText("Ghosted").waitFor();
  await row.getByText("no answer is known to our last").waitFor();
  await page.getByRole("region", { name: "New business" }).waitFor();
  await page.getByRole("img", { name: /deals? by stage and days of silence/ }).waitFor();
  for (const table of await page.getByRole("table").all()) {
    const days = (
      await table
        .getByRole("cell")
        .getByText(/^\d+ days?$/)
        .allTextContents()
    ).map(Number.parseFloat);
    expect(days).toEqual([...days].sort((a, b) => b - a));
  }
  expect((await silences()).length).toBeGreaterThan(1);
  expect(await seriousFindings(page)).toEqual([]);
  await screenshot(page, "quiet");
});

test("deals that are cooling come where they are asked for", async () => {
  const before = (await silences()).length;
  await page.getByLabel("Also deals that are cooling").check();
  await page.getByRole("row").getByText("Cooling").first().waitFor();
  expect((await silences()).length).toBeGreaterThan(before);
  expect(await seriousFindings(page)).toEqual([]);
});

test("without a connection the board shows nothing of before, and the way to connect", async () => {
  await disconnected(product);
  await page.getByRole("heading", { name: "No CRM is connected" }).waitFor();
  expect(await page.getByRole("table").count()).toBe(0);
});
