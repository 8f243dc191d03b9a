import { A_DAY, useProbedWorld } from "../support/probed-world";
import { dataOf, syncEnds } from "../support/stories";

const { simulator, database, service, clock, passMinutes, sync, metAs, held, probes } = useProbedWorld();

const oddly = (id: number, members: object) => ({
  status: 200,
  contentType: "application/json",
  body: JSON.stringify({ success: true, data: [{ id, ...members }], additional_data: { next_cursor: null } }),
});

// Seen red with: activities left out of the looks; each deal's planned ones asked for, however many; done ones asked for too.
test("what was planned for a matched deal, and is deleted in the CRM, is no next step within a day and ten minutes", async () => {
  const as = { tenant: "planned" };
  const { deal, person } = await metAs(as);
  const due = (days: number) => new Date(clock().getTime() + days * 86_400_000).toISOString().slice(0, 10);
  const plan = (days: number, done = false) =>
    simulator.control.add("activity", {
      subject: `In ${days}`,
      type: "call",
      deal_id: deal,
      due_date: due(days),
      done,
    });
  const [gone, stays, past] = [plan(5), plan(6), plan(-3, true)];
  for (let days = 20; days < 40; days += 1) plan(days);
  passMinutes(10);
  await sync(as);
  const nextStep = async () => {
    const query = "{ deals(first: 1) { nodes { nextActivity { subject } } } }";
    type Answer = { deals: { nodes: { nextActivity: { subject: string } | null }[] } };
    return dataOf(await service.ask<Answer>(query, {}, as)).deals.nodes[0]?.nextActivity?.subject;
  };
  expect(await nextStep()).toBe("In 5");
  simulator.control.remove("activity", gone);
  passMinutes(A_DAY);
  await sync(as);
  const asked = probes().filter(({ path }) => path === "/api/v2/activities");
  expect(asked).toHaveLength(1);
  const ids = asked[0]?.query.ids?.split(",").map(Number) ?? [];
  expect(ids).toEqual(expect.arrayContaining([gone, stays]));
  expect(ids).toHaveLength(10);
  expect(ids).not.toContain(past);
  expect(await nextStep()).toBe("In 5");
  passMinutes(11);
  await sync(as);
  expect(await nextStep()).toBe("In 6");
  expect(await held("activity", gone, "planned")).toBe(0);
  expect(await held("person", person, "planned")).toBe(1);
});

// Seen red with: nothing asked for again; what a look shows not taken for mended.
test("what could not be read is there within a day of its being mended, though no list tells it as a change", async () => {
  const as = { tenant: "mended" };
  const world = await metAs(as);
  const activity = simulator.control.add("activity", { subject: "Odd", type: "call", deal_id: world.deal, done: true });
  const organization = simulator.control.add("organization", { name: "Odd" });
  const ends = [
    simulator.control.fail({ match: "/api/v2/activities", with: oddly(activity, { done: "perhaps" }) }),
    simulator.control.fail({ match: "/api/v2/organizations", with: oddly(organization, { name: 7 }) }),
  ];
  passMinutes(10);
  await sync(as);
  for (const end of ends) end();
  const unread = () =>
    database.query<{ resource: string }>(
      `SELECT resource FROM rejected_record WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY resource`,
      ["mended"],
    );
  expect((await unread()).map(({ resource }) => resource)).toEqual(["ACTIVITIES", "ORGANIZATIONS"]);
  passMinutes(A_DAY);
  await sync(as);
  expect(await unread()).toEqual([]);
  expect(await held("activity", activity, "mended")).toBe(1);
  expect(await held("organization", organization, "mended")).toBe(1);
});

// Seen red with: what two looks left out kept as unread.
test("what could not be read, and is deleted in the CRM, is no gap any more", async () => {
  const as = { tenant: "unread and gone" };
  await metAs(as);
  const end = simulator.control.fail({ match: "/api/v2/activities", with: oddly(900_001, { done: "perhaps" }) });
  passMinutes(10);
  await sync(as);
  end();
  const gaps = async () =>
    dataOf(
      await service.ask<{ connection: { sync: { gaps: object[] } } }>(
        "{ connection { sync { gaps { code } } } }",
        {},
        as,
      ),
    ).connection.sync.gaps;
  expect(await gaps()).toEqual([{ code: "RECORDS_UNREADABLE" }]);
  passMinutes(A_DAY);
  await sync(as);
  expect(await gaps()).toEqual([{ code: "RECORDS_UNREADABLE" }]);
  passMinutes(11);
  await sync(as);
  expect(await gaps()).toEqual([]);
});

// Seen red with: a small list's walk that removes nothing; what its page shows not taken for seen.
test("a pipeline or stage that is deleted in the CRM is gone with the next run that reads their lists", async () => {
  const as = { tenant: "stages" };
  await metAs(as);
  const pipeline = simulator.control.add("pipeline", { name: "For a week", order_nr: 9 });
  const stage = simulator.control.add("stage", { name: "For a week", pipeline_id: pipeline, order_nr: 9 });
  passMinutes(10);
  await sync(as);
  expect([await held("pipeline", pipeline, "stages"), await held("stage", stage, "stages")]).toEqual([1, 1]);
  simulator.control.remove("stage", stage);
  simulator.control.remove("pipeline", pipeline);
  const heldIn = async (table: string) =>
    (
      await database.query(
        `SELECT 1 FROM ${table} WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'stages')`,
      )
    ).length;
  const before = [await heldIn("pipeline"), await heldIn("stage")];
  passMinutes(10);
  await sync(as);
  expect([await held("pipeline", pipeline, "stages"), await held("stage", stage, "stages")]).toEqual([0, 0]);
  expect([await heldIn("pipeline"), await heldIn("stage")]).toEqual(before.map((count) => count - 1));
});

// Seen red with: it first in each turn, which had no time for anything else, hundreds of times over.
test("what could not be read and is slow by its id too keeps no matched record from being asked for, nor the run from its end", async () => {
  const as = { tenant: "slow" };
  await metAs(as);
  const organization = simulator.control.add("organization", { name: "Odd" });
  const end = simulator.control.fail({ match: "/api/v2/organizations", with: oddly(organization, { name: 7 }) });
  passMinutes(10);
  await sync(as);
  end();
  passMinutes(A_DAY);
  const isSlow = (query: Readonly<Record<string, string>>) => {
    if (query.ids === String(organization)) passMinutes(0.3);
    return query.ids === String(organization);
  };
  simulator.control.fail({ match: "/api/v2/organizations", where: isSlow, with: { status: 504, body: "late" } });
  await sync(as);
  expect(probes().filter(({ query }) => query.ids === String(organization))).toHaveLength(1);
  expect(probes().map(({ path }) => path)).toContain("/api/v2/deals");
});

// Seen red with: a day until the next look; and, for a right that is gone for good, the whole round each four hours.
test.each([
  ["could not be asked for are asked for again within hours, as matched records are", 503, 1],
  ["are refused wait for the next day, and hurry no matched record", 403, 0],
])("planned activities that %s", async (way, status, looks) => {
  const as = { tenant: way };
  const { deal } = await metAs(as);
  simulator.control.add("activity", { subject: "Call", type: "call", deal_id: deal, due_date: "2099-01-01" });
  passMinutes(10);
  await sync(as);
  passMinutes(A_DAY);
  const end = simulator.control.fail({
    match: "/api/v2/activities",
    with: { status, body: { success: false, error: "Simulated" } },
  });
  await sync(as);
  end();
  passMinutes(5 * 60);
  await sync(as);
  for (const path of ["/api/v2/activities", "/api/v2/deals"])
    expect(probes().filter((asked) => asked.path === path)).toHaveLength(looks);
});

// Seen red with: all lists walked again by each such deal.
test("a deal that could not be read, and can be, did not come late", async () => {
  const as = { tenant: "mended deal" };
  await metAs(as);
  const deal = simulator.control.add("deal", { title: "Odd", status: "open" });
  const where = ({ ids }: Readonly<Record<string, string>>) => !ids || ids === String(deal);
  const end = simulator.control.fail({ match: "/api/v2/deals", where, with: oddly(deal, { title: 7 }) });
  for (const minutes of [10, A_DAY, A_DAY]) {
    passMinutes(minutes);
    await sync(as);
  }
  end();
  passMinutes(A_DAY);
  await sync(as);
  expect(await held("deal", deal, "mended deal")).toBe(1);
  expect(await database.query("SELECT 1 FROM sync_list WHERE late_at IS NOT NULL")).toEqual([]);
});

const readAll = async (as: object) => {
  dataOf(await service.ask("mutation { requestSync(kind: FULL) { ... on Refusal { message } } }", {}, as));
  return syncEnds(service, as);
};

// Seen red with: nothing removed, and the RECONCILE that was to find it put off by each FULL.
test("a note that is deleted in the CRM is gone with the next FULL, as with a RECONCILE, which it puts off", async () => {
  const as = { tenant: "everything" };
  const { deal } = await metAs(as);
  const note = simulator.control.add("note", { content: "Gone", deal_id: deal });
  passMinutes(10);
  await sync(as);
  expect(await held("note", note, as.tenant)).toBe(1);
  simulator.control.remove("note", note);
  expect(await readAll(as)).toMatchObject({ state: "SUCCEEDED" });
  expect(await held("note", note, as.tenant)).toBe(0);
});

test("a FULL while a list was never read to its end goes on with that one, and begins nothing anew", async () => {
  const as = { tenant: "everything, early" };
  const end = simulator.control.fail({ match: "/api/v1/notes", with: { status: 500, body: "" } });
  await metAs(as);
  await readAll(as);
  end();
  const passes = "SELECT resource, removes FROM sync_pass WHERE tenant_id = $1";
  const tenantId = await database.tenantId(as.tenant);
  expect(await database.query(passes, [tenantId])).toEqual([{ resource: "NOTES", removes: false }]);
});
