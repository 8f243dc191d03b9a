import { A_DAY, useProbedWorld } from "../support/probed-world";

const { simulator, database, passMinutes, sync, metAs, held, probes } = useProbedWorld();
const missed = (tenant: string) =>
  database.query(
    "SELECT resource, crm_id FROM missed_record WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );

type World = Awaited<ReturnType<typeof metAs>>;
const WAYS: [string, string, keyof Omit<World, "deals">, (world: World) => void][] = [
  ["a person that is deleted", "person", "person", ({ person }) => simulator.control.remove("person", person)],
  [
    "an organization that is deleted",
    "organization",
    "organization",
    ({ organization }) => simulator.control.remove("organization", organization),
  ],
  ["a deal that is archived", "deal", "deal", ({ deal }) => simulator.control.archive(deal)],
  ["a deal that is hidden", "deal", "deal", ({ deal }) => simulator.control.hide("deal", deal)],
  ["a person that is hidden", "person", "person", ({ person }) => simulator.control.hide("person", person)],
  [
    "a person that is merged into another",
    "person",
    "person",
    ({ person }) => simulator.control.merge("person", person, simulator.control.add("person", { name: "Winner" })),
  ],
  [
    "an organization that is merged into another",
    "organization",
    "organization",
    ({ organization }) =>
      simulator.control.merge("organization", organization, simulator.control.add("organization", { name: "Winner" })),
  ],
  [
    "a deal that is merged into another",
    "deal",
    "deal",
    ({ deal }) => simulator.control.merge("deal", deal, simulator.control.add("deal", { title: "Winner" })),
  ],
];

test.each(WAYS)(
  "of matched records %s is gone within a day and ten minutes, after two looks and not after one",
  async (way, table, key, happen) => {
    const as = { tenant: way };
    const world = await metAs(as);
    passMinutes(A_DAY);
    await sync(as);
    happen(world);
    passMinutes(A_DAY);
    await sync(as);
    // A deal's deletion is told by the list itself; everything else waits for the second look.
    const isTold = way.includes("deal that is merged");
    expect(await held(table, world[key], way)).toBe(isTold ? 0 : 1);
    passMinutes(9);
    await sync(as);
    expect(probes()).toEqual([]);
    expect(await held(table, world[key], way)).toBe(isTold ? 0 : 1);
    passMinutes(2);
    await sync(as);
    expect(await held(table, world[key], way)).toBe(0);
    expect(await missed(way)).toEqual([]);
  },
);

test("a record that one look did not show, and the next does, stays and is brought up to date", async () => {
  const as = { tenant: "glitch" };
  const { person } = await metAs(as);
  passMinutes(A_DAY);
  simulator.control.hide("person", person);
  await sync(as);
  expect(await missed("glitch")).toEqual([{ resource: "PERSONS", crm_id: person }]);
  passMinutes(11);
  simulator.control.show("person", person);
  await sync(as);
  expect(await held("person", person, "glitch")).toBe(1);
  expect(await missed("glitch")).toEqual([]);
});

// Seen red with the pages of an answer without an end taken for all of it: the person was removed.
test("an answer that fails or does not end is no miss: nothing is removed, the lists behind are read, and it is asked again within hours", async () => {
  const as = { tenant: "failing" };
  const { person } = await metAs(as);
  const refusals = [500, 403, 404].map((status) => ({ status, body: { success: false, error: "Simulated" } }));
  for (const answer of [...refusals, { kind: "empty" } as const]) {
    passMinutes(A_DAY);
    const where = (query: object) => "ids" in query;
    const end = simulator.control.fail({ match: "/api/v2/persons", where, with: answer });
    expect(await sync(as)).toMatchObject({ state: "SUCCEEDED" });
    expect(probes().map(({ path }) => path)).toContain("/api/v2/persons");
    end();
    expect(await missed("failing")).toEqual([]);
  }
  passMinutes(4 * 60 + 1);
  await sync(as);
  expect(probes().map(({ path }) => path)).toContain("/api/v2/persons");
  expect(await held("person", person, "failing")).toBe(1);
});

// Seen red with: the next round put off until the clock had come so far; the second look counted from then.
test("a look by a clock far ahead holds up neither the next round nor the second look", async () => {
  const as = { tenant: "far ahead" };
  const { person } = await metAs(as);
  simulator.control.hide("person", person);
  passMinutes(30 * A_DAY);
  await sync(as);
  expect(await missed("far ahead")).toEqual([{ resource: "PERSONS", crm_id: person }]);
  passMinutes(-29 * A_DAY);
  await sync(as);
  expect(probes().map(({ path }) => path)).toContain("/api/v2/persons");
  expect(await held("person", person, "far ahead")).toBe(1);
  passMinutes(11);
  await sync(as);
  expect(await held("person", person, "far ahead")).toBe(0);
});

test("where more than half of many are left out twice, the user has to be active before any is removed", async () => {
  const as = { tenant: "many" };
  const { deals } = await metAs(as, 109);
  for (const deal of deals) simulator.control.hide("deal", deal);
  passMinutes(A_DAY);
  await sync(as);
  passMinutes(11);
  simulator.control.fail({ match: "/api/v1/users/me", after: 1, times: 1, with: { status: 503, body: "" } });
  await sync(as);
  expect(await held("deal", deals[0] ?? 0, "many")).toBe(1);
  simulator.control.clearFaults();
  passMinutes(15);
  await sync(as);
  expect(await held("deal", deals[0] ?? 0, "many")).toBe(0);
  expect(await held("deal", deals[109] ?? 0, "many")).toBe(0);
});

test("matched records are asked for by a hundred ids, once a day", async () => {
  const as = { tenant: "hundreds" };
  const { deals } = await metAs(as, 249);
  passMinutes(A_DAY);
  await sync(as);
  const asked = probes().filter(({ path }) => path === "/api/v2/deals");
  expect(asked.map(({ query }) => query.ids?.split(",").length)).toEqual([100, 100, 50]);
  expect(new Set(asked.flatMap(({ query }) => query.ids?.split(",").map(Number) ?? []))).toEqual(new Set(deals));
  passMinutes(60);
  await sync(as);
  expect(probes()).toEqual([]);
});
