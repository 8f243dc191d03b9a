import { MINUTE_MS } from "../../src/platform/clock";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Days, startDays } from "../support/days";
import { connect } from "../support/stories";

let database: TestDatabase;
let days: Days;
beforeAll(async () => {
  database = await createTestDatabase();
  days = await startDays(database, { deals: 20 });
});
afterAll(async () => {
  await days.stop();
  await database.drop();
});

const pass = (minutes: number) => days.until(new Date(days.clock().getTime() + minutes * MINUTE_MS));
const asked = () => days.simulator.log.of("GET", /\/users$/).length;
const titleOf = (deal: number) => database.query("SELECT title, owner_id FROM deal WHERE crm_id = $1", [deal]);
const isKnown = async (user: number) =>
  (await database.query("SELECT 1 FROM crm_user WHERE crm_id = $1 AND active", [user])).length > 0;

// Seen red: each run that saw a deal of theirs change read all users, up to 1,920 tokens a day.
test("who is on no list of users is looked for once, however often their deals change, and who is new at once", async () => {
  const { service, simulator } = days;
  const { control, company } = simulator;
  const [left = 0, leftToo = 0] = control
    .visibleTo(company.stories.singleDeal.ownerId)
    .users.filter((user) => user.id !== company.stories.singleDeal.ownerId)
    .map(({ id = 0 }) => id);
  for (const user of [left, leftToo]) control.hide("user", user);
  const deal = control.add("deal", { title: "Of one who left", owner_id: left });
  await connect(service, simulator);
  await pass(10);
  expect(asked()).toBe(1);
  for (const title of ["Once", "Twice", "Three times"]) {
    control.change("deal", deal, { title });
    await pass(40);
    expect(await titleOf(deal)).toEqual([{ title, owner_id: left }]);
    expect(asked()).toBe(2);
  }
  control.change("deal", deal, { owner_id: leftToo });
  await pass(30);
  expect(asked()).toBe(3);
  const joined = control.add("user", { name: "Just Joined" });
  control.change("deal", deal, { owner_id: joined });
  await pass(30);
  expect(await isKnown(joined)).toBe(true);
  expect(asked()).toBe(4);
});

// Seen red with: who is named noted as missing before anybody has looked.
test("who is new is known with the next change where the first look failed", async () => {
  const { control } = days.simulator;
  const deal = control.add("deal", { title: "One" });
  await pass(20);
  const joined = control.add("user", { name: "Joined Later" });
  const end = control.fail({ match: /^\/api\/v1\/users$/, with: { status: 503, body: "" } });
  control.change("deal", deal, { owner_id: joined });
  await pass(40);
  end();
  control.change("deal", deal, { title: "Two" });
  await pass(40);
  expect(await isKnown(joined)).toBe(true);
});
