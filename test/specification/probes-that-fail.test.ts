import { A_DAY, useProbedWorld } from "../support/probed-world";

const { simulator, database, passMinutes, sync, metAs, held, probes } = useProbedWorld();

const DOWN = { status: 500, body: { success: false, error: "Simulated" } };
const names = (id: number) => (query: Readonly<Record<string, string>>) =>
  query.ids?.split(",").includes(String(id)) ?? false;
/** From now on the CRM fails each time that it is asked for one of these among others. */
const failsFor = (list: string, id: number) =>
  simulator.control.fail({ match: `/api/v2/${list}`, where: names(id), with: DOWN });

// Seen red with: all records of its kind behind the batch left out, and those of the batch.
test("a record for which the CRM fails each time keeps no other from being gone within a day and ten minutes, of its batch or behind it", async () => {
  const as = { tenant: "one fails" };
  const { deals } = await metAs(as, 249);
  const [failing = 0, ofBatch = 0, behind = 0] = [deals[3], deals[70], deals[180]];
  failsFor("deals", failing);
  for (const deal of [failing, ofBatch, behind]) simulator.control.hide("deal", deal);
  passMinutes(A_DAY);
  await sync(as);
  // Three batches, and what finds one among a hundred.
  expect(probes().filter(({ path }) => path === "/api/v2/deals")).toHaveLength(3 + 15);
  passMinutes(11);
  await sync(as);
  const left = await Promise.all([failing, ofBatch, behind].map((deal) => held("deal", deal, as.tenant)));
  expect(left).toEqual([1, 0, 0]);
});

const FORBIDDEN = { status: 403, body: { success: false, error: "Simulated" } };

// Seen red: the first, the middle and the last of them were said to be unreadable, and the operator was called.
test("where no record of a kind may be looked at any more, none is told as one that cannot be read", async () => {
  const as = { tenant: "no right" };
  await metAs(as, 9);
  simulator.control.fail({ match: "/api/v2/deals", where: ({ ids }) => ids !== undefined, with: FORBIDDEN });
  passMinutes(A_DAY);
  expect((await sync(as)).gaps).toEqual([]);
  simulator.control.clearFaults();
});

// Seen red: failing, the other halves of their batch and all behind it were left out; refused, all but the first half.
test.each([
  ["fails", DOWN, [0, 30, 60, 90]],
  ["answers 403", FORBIDDEN, [70]],
])(
  "records for which the CRM %s keep no other from being gone, wherever in a batch they are",
  async (way, fault, places) => {
    const as = { tenant: `some ${way}` };
    const { deals } = await metAs(as, 149);
    const failing = places.map((place) => deals[place] ?? 0);
    const where = (query: Readonly<Record<string, string>>) => failing.some((id) => names(id)(query));
    simulator.control.fail({ match: "/api/v2/deals", where, with: fault });
    for (const deal of deals) if (!failing.includes(deal)) simulator.control.hide("deal", deal);
    for (const minutes of [A_DAY, 11]) {
      passMinutes(minutes);
      await sync(as);
      expect(probes().length).toBeLessThanOrEqual(70);
    }
    const left = await Promise.all(deals.map((deal) => held("deal", deal, as.tenant)));
    expect(deals.filter((_deal, index) => left[index] === 1)).toEqual(failing);
  },
);

// Seen red: for as long as these failed, no deal was looked at any more.
test("where those that are asked for alone fail each time, others of their batch are the next time", async () => {
  const as = { tenant: "unlucky" };
  const { deals } = await metAs(as, 149);
  const failing = [0, 50, 99].map((place) => deals[place] ?? 0);
  const where = (query: Readonly<Record<string, string>>) => failing.some((id) => names(id)(query));
  const end = simulator.control.fail({ match: "/api/v2/deals", where, with: DOWN });
  const [ofBatch = 0, behind = 0] = [deals[70], deals[120]];
  for (const deal of [ofBatch, behind]) simulator.control.hide("deal", deal);
  for (const minutes of [A_DAY, 4 * 60 + 1, 11]) {
    passMinutes(minutes);
    await sync(as);
  }
  end();
  expect(await Promise.all([ofBatch, behind].map((deal) => held("deal", deal, as.tenant)))).toEqual([0, 0]);
});

// Seen red, each: a kind was asked for seven times, up to three minutes and a half; and a batch until its part had no more requests, up to an hour.
test.each([
  ["gives no answer is asked three times for a kind of records", 9, 0, 3],
  ["answers for single records alone is asked 18 times for a batch", 99, 1, 18],
])("a CRM that %s once its turn is over", async (which, more, answered, requests) => {
  const as = { tenant: `late ${which.slice(0, 7)}` };
  await metAs(as, more);
  passMinutes(A_DAY);
  // The first takes as long as a turn; all that did would take longer than a lease that nobody extends.
  let minutes = 0.3;
  const where = ({ ids }: Readonly<Record<string, string>>) => {
    if (!ids || ids.split(",").length === answered) return false;
    passMinutes(minutes);
    minutes = 0;
    return true;
  };
  simulator.control.fail({ match: "/api/v2/deals", where, with: { status: 504, body: "late" } });
  await sync(as);
  expect(probes().filter(({ path }) => path === "/api/v2/deals")).toHaveLength(requests);
});

// Seen red with: what was planned left out for the rest of the round.
test("a planned activity for which the CRM fails each time keeps no other from being gone", async () => {
  const as = { tenant: "planned fails" };
  const { deal } = await metAs(as);
  const plan = () =>
    simulator.control.add("activity", { subject: "Call", type: "call", deal_id: deal, due_date: "2099-01-01" });
  const [failing, gone] = [plan(), plan()];
  passMinutes(10);
  await sync(as);
  failsFor("activities", failing);
  for (const activity of [failing, gone]) simulator.control.remove("activity", activity);
  passMinutes(A_DAY);
  await sync(as);
  passMinutes(11);
  await sync(as);
  const left = await Promise.all([failing, gone].map((activity) => held("activity", activity, as.tenant)));
  expect(left).toEqual([1, 0]);
});

// Seen red with: the same hundred asked for first each time.
test("what could not be read, and the CRM fails for by its id, keeps nothing else from being mended", async () => {
  const as = { tenant: "unread fails" };
  await metAs(as);
  const [failing, mended] = [1, 2].map(() => simulator.control.add("organization", { name: "Odd" }));
  const data = [failing, mended].map((id) => ({ id, name: 7 }));
  const body = { success: true, data, additional_data: { next_cursor: null } };
  const end = simulator.control.fail({ match: "/api/v2/organizations", with: { status: 200, body } });
  passMinutes(10);
  await sync(as);
  end();
  failsFor("organizations", failing ?? 0);
  passMinutes(A_DAY);
  await sync(as);
  expect(await held("organization", mended ?? 0, as.tenant)).toBe(1);
  const unread = `SELECT record_key FROM rejected_record WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`;
  expect(await database.query(unread, [as.tenant])).toEqual([{ record_key: String(failing) }]);
});

// Seen red with: one in each run, for ever.
test("a second look that fails is made ever more rarely for as long as that lasts, each four hours in the end", async () => {
  const as = { tenant: "looked at in vain" };
  const { person } = await metAs(as);
  simulator.control.hide("person", person);
  passMinutes(A_DAY);
  await sync(as);
  const end = failsFor("persons", person);
  for (const [minutes, looks] of [
    [11, 1],
    [9, 0],
    [5 * 60, 1],
    [4 * 60 - 5, 0],
  ] as const) {
    passMinutes(minutes);
    await sync(as);
    expect([minutes, probes().length]).toEqual([minutes, looks]);
  }
  end();
  passMinutes(7);
  await sync(as);
  expect(await held("person", person, as.tenant)).toBe(0);
});

/** Whether a round is made so many hours after the last one, and none five minutes before. */
async function expectRoundAfter(hours: number, as: { tenant: string }): Promise<void> {
  passMinutes(hours * 60 - 5);
  await sync(as);
  expect(probes()).toEqual([]);
  passMinutes(6);
  await sync(as);
  expect(probes()).not.toEqual([]);
}

// Seen red with: each four hours, for as long as it lasts.
test("a failure that lasts has the round made again after four hours, then after twice as long each time, and daily in the end", async () => {
  const as = { tenant: "lasts" };
  const { person } = await metAs(as);
  const end = failsFor("persons", person);
  passMinutes(A_DAY);
  await sync(as);
  for (const hours of [4, 8, 16, 22, 22]) await expectRoundAfter(hours, as);
  end();
  for (const hours of [22, 22]) await expectRoundAfter(hours, as);
  failsFor("persons", person);
  for (const hours of [22, 4, 8]) await expectRoundAfter(hours, as);
});

// Seen red: nobody was told, but by a line of the log, of records of which it was not known for weeks whether they were gone.
test("what the CRM fails for by its id, or refuses, part after part, is a record that cannot be read until it is answered", async () => {
  const as = { tenant: "told" };
  const { organization, person } = await metAs(as);
  const gapsIn = async (minutes: number) => {
    passMinutes(minutes);
    const { state, gaps } = await sync(as);
    return [state, ...gaps.map(({ resource, code, count }) => `${resource} ${code} ${count}`)];
  };
  const [persons, organizations] = ["PERSONS RECORDS_UNREADABLE 1", "ORGANIZATIONS RECORDS_UNREADABLE 1"];
  failsFor("persons", person);
  const where = names(organization);
  simulator.control.fail({ match: "/api/v2/organizations", where, with: FORBIDDEN });
  expect(await gapsIn(A_DAY)).toEqual(["SUCCEEDED", organizations]);
  expect(await gapsIn(4 * 60 + 1)).toEqual(["SUCCEEDED", organizations, persons]);
  expect(probes().filter(({ path }) => path === "/api/v2/persons")).toHaveLength(1);
  expect(await gapsIn(8 * 60 + 1)).toEqual(["SUCCEEDED", organizations, persons]);
  const reasons =
    "SELECT reason FROM rejected_record WHERE reason LIKE 'asked for%' AND record_key = ANY ($1) ORDER BY 1";
  expect(await database.query(reasons, [[organization, person]])).toEqual([
    { reason: "asked for by its id: REFUSED" },
    { reason: "asked for by its id: UNAVAILABLE" },
  ]);
  simulator.control.clearFaults();
  expect(await gapsIn(16 * 60 + 1)).toEqual(["SUCCEEDED"]);
});

// Seen red with: forgotten with the turn that it ended.
test("a failure that takes as long as a turn has the round made again after four hours too", async () => {
  const as = { tenant: "late" };
  const { organization } = await metAs(as);
  const takesLong = (query: Readonly<Record<string, string>>) => {
    if (names(organization)(query)) passMinutes(0.3);
    return names(organization)(query);
  };
  simulator.control.fail({ match: "/api/v2/organizations", where: takesLong, with: { status: 504, body: "late" } });
  passMinutes(A_DAY);
  await sync(as);
  await expectRoundAfter(4, as);
});
