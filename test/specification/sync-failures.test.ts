import type { FaultRule } from "../../simulator";
import { connect, type EndedRun, syncEnds } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 60, seed: 7 });
beforeEach(() => simulator.log.clear());

/** Connects a tenant of its own and waits for its first sync. */
async function syncAs(tenant: string): Promise<EndedRun> {
  await connect(service, simulator, { tenant });
  return syncEnds(service, { tenant });
}

async function syncWith(tenant: string, fault: FaultRule): Promise<EndedRun> {
  const end = simulator.control.fail(fault);
  try {
    return await syncAs(tenant);
  } finally {
    end();
  }
}

const stepOf = (run: EndedRun, resource: string) => run.steps.find((step) => step.resource === resource);

test("participants of one deal that cannot be read are a gap: the run succeeds and says so", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  const run = await syncWith("gap", { match: `/api/v1/deals/${dealId}/participants`, with: { status: 500, body: "" } });
  expect(run).toMatchObject({
    state: "SUCCEEDED",
    gaps: [{ resource: "DEAL_PARTICIPANTS", code: "CRM_UNAVAILABLE", count: 1 }],
  });
  const unread = await database.query(
    "SELECT d.crm_id FROM deal d JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'gap') AND NOT d.participants_known",
  );
  expect(unread).toEqual([{ crm_id: dealId }]);
});

test("a rate limit on participants ends the asking: the others were not read yet, and the next run asks", async () => {
  const run = await syncWith("limited", { match: /\/participants$/, after: 20, with: { kind: "throttle" } });
  const asked = simulator.log.of("GET", /\/participants$/);
  // Besides the one that was refused, at most those that were in flight with it.
  expect(asked.length).toBeGreaterThan(20);
  expect(asked.length).toBeLessThanOrEqual(20 + 8);
  expect(new Set(asked.map(({ path }) => path)).size).toBe(asked.length);
  const [unread] = await database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM deal d JOIN connection c USING (tenant_id, copy_id)
     WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'limited') AND d.participants_due AND NOT d.participants_known`,
  );
  expect(unread?.n).toBeGreaterThan(8);
  const refused = asked.length - 20;
  expect(run).toMatchObject({ state: "SUCCEEDED" });
  expect(new Map(run.gaps.map(({ code, count }) => [code, count]))).toEqual(
    new Map([
      ["RATE_LIMITED", refused],
      ["NOT_READ_YET", (unread?.n ?? 0) - refused],
    ]),
  );
  expect(stepOf(run, "DEAL_PARTICIPANTS")).toMatchObject({ requests: asked.length, fetched: asked.length });
  simulator.log.clear();
  await service.ask("mutation { requestSync { __typename } }", {}, { tenant: "limited" });
  expect((await syncEnds(service, { tenant: "limited" })).gaps).toEqual([]);
  expect(simulator.log.of("GET", /\/participants$/)).toHaveLength(unread?.n ?? 0);
});

test.each(["pipelines", "stages"])(
  "%s that cannot be read are a gap: the run succeeds with them missing",
  async (list) => {
    const run = await syncWith(`no-${list}`, { match: `/api/v2/${list}`, with: { status: 500, body: "" } });
    expect(run).toMatchObject({
      state: "SUCCEEDED",
      gaps: [{ resource: list.toUpperCase(), code: "CRM_UNAVAILABLE" }],
    });
    expect(stepOf(run, list.toUpperCase())?.state).toBe("FAILED");
  },
);

test.each([
  ["an outage", { status: 503, body: "" }, "CRM_UNAVAILABLE"],
  ["a cut answer", { kind: "cut" as const }, "CRM_UNAVAILABLE"],
  ["a proxy's page", { kind: "html" as const }, "CRM_UNAVAILABLE"],
  ["garbage", { kind: "garbage" as const }, "CRM_ANSWER_UNREADABLE"],
  ["null", { kind: "null" as const }, "CRM_ANSWER_UNREADABLE"],
  ["a missing scope", { status: 403, body: '{"success":false,"error":"Scope and URL mismatch"}' }, "CRM_REFUSED"],
  // Seen red: it ended the run, so that of the lists behind it none was read for as long as that lasted.
  ["a refusal of even a renewed token", { status: 401, body: '{"success":false}' }, "CRM_REFUSED", 2],
])(
  "%s on a main list fails the run with its code after one request, and holds up no other list",
  async (name, fault, code, requests = 1) => {
    const tenant = `failing ${name}`;
    const run = await syncWith(tenant, { match: "/api/v2/persons", with: fault });
    expect(run).toMatchObject({ state: "FAILED", error: { code, message: expect.stringMatching(/\.$/) } });
    expect(simulator.log.of("GET", "/api/v2/persons")).toHaveLength(requests);
    expect(run.steps.filter(({ state }) => state !== "SUCCEEDED").map(({ resource }) => resource)).toEqual(["PERSONS"]);
  },
);

test.each([
  ["a rate limit", { kind: "throttle" as const }, "RATE_LIMITED"],
  ["an unpaid account", { status: 402, body: '{"success":false}' }, "CRM_ACCOUNT_CLOSED"],
])("%s would meet every call: it ends the run at once", async (name, fault, code) => {
  const tenant = `ended by ${name}`;
  const run = await syncWith(tenant, { match: "/api/v2/persons", with: fault });
  expect(run).toMatchObject({ state: "FAILED", error: { code, message: expect.stringMatching(/\.$/) } });
  expect(simulator.log.of("GET", "/api/v2/persons")).toHaveLength(1);
  expect(stepOf(run, "ORGANIZATIONS")?.state).toBe("SUCCEEDED");
  expect(stepOf(run, "DEALS")?.state).toBe("CANCELLED");
});

const block = { status: 403, body: "error code: 1015", contentType: "text/plain; charset=UTF-8" };
const forbidden = (body: object) => ({ status: 403, body: { success: false, ...body } });

test.each([
  ["a block of the CRM's front door", block, "CRM_UNAVAILABLE", "CONNECTED"],
  ["a limit of the company's plan", forbidden({ code: "feature_capping_api" }), "CRM_REFUSED", "CONNECTED"],
  [
    "a right that is missing",
    forbidden({ error: "You do not have permissions to do this." }),
    "CRM_REFUSED",
    "CONNECTED",
  ],
  ["a token that was just renewed", { status: 401, body: { success: false } }, "CRM_REFUSED", "CONNECTED"],
])("%s, said to the question who the user is, ends the run with its own code", async (what, fault, code, state) => {
  const tenant = `asked who: ${what}`;
  const run = await syncWith(tenant, { match: "/api/v1/users/me", after: 1, with: fault });
  expect(run).toMatchObject({ state: "FAILED", error: { code } });
  expect(
    await database.query(
      "SELECT state FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
      [tenant],
    ),
  ).toEqual([{ state }]);
});

test("a record that cannot be read is kept aside and counted, and the page goes on", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  const body = JSON.stringify({
    success: true,
    data: [
      { id: dealId, title: "odd", status: "paused" },
      { id: 900_001, title: "fine", status: "open" },
      "not a record",
    ],
    additional_data: { next_cursor: null },
  });
  const run = await syncWith("odd", {
    match: /^\/api\/v2\/deals$/,
    with: { status: 200, body, contentType: "application/json" },
  });
  expect(run.state).toBe("SUCCEEDED");
  expect(stepOf(run, "DEALS")).toMatchObject({ fetched: 3, written: 1, rejected: 2 });
  const kept = await database.query<{ record_key: string; reason: string }>(
    "SELECT r.record_key, r.reason FROM rejected_record r JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'odd') ORDER BY 1",
  );
  expect(kept).toHaveLength(2);
  expect(kept[0]).toMatchObject({ record_key: String(dealId), reason: expect.stringContaining("status") });
});

test("what cannot be read is kept with the deal that it names", async () => {
  const data = [7, "8", "nine", null, undefined, 1e30].map((deal_id, index) => ({
    id: 900_100 + index,
    done: [],
    deal_id,
  }));
  const body = JSON.stringify({ success: true, data, additional_data: { next_cursor: null } });
  const answer = { status: 200, body, contentType: "application/json" };
  await syncWith("named", { match: /^\/api\/v2\/activities$/, with: answer });
  const kept = await database.query<{ deal_id: number | null }>(
    "SELECT deal_id FROM rejected_record JOIN tenant ON id = tenant_id WHERE external_id = 'named' ORDER BY record_key",
  );
  expect(kept.map(({ deal_id }) => deal_id)).toEqual([7, 8, null, null, null, null]);
});

test("a cursor that comes again ends the run instead of going in a circle", async () => {
  const body = JSON.stringify({ success: true, data: [], additional_data: { next_cursor: "again" } });
  const run = await syncWith("circle", {
    match: "/api/v2/persons",
    with: { status: 200, body, contentType: "application/json" },
  });
  expect(run).toMatchObject({ state: "FAILED", error: { code: "CRM_ANSWER_UNREADABLE" } });
});

test("a token that is refused is renewed once and the call repeated once", async () => {
  simulator.control.fail({
    match: "/api/v2/organizations",
    times: 1,
    with: { status: 401, body: '{"success":false}' },
  });
  const run = await syncAs("renewed");
  expect(run.state).toBe("SUCCEEDED");
  expect(simulator.log.of("POST", "/oauth/token").map(({ grantType }) => grantType)).toEqual([
    "authorization_code",
    "refresh_token",
  ]);
  expect(
    simulator.log
      .of("GET", "/api/v2/organizations")
      .map(({ status }) => status)
      .slice(0, 2),
  ).toEqual([401, 200]);
});

test("notes of which a page is larger than any answer may be are read in smaller pages", async () => {
  const content = `<p>${"Long. ".repeat(16_000)}</p>`;
  const added = Array.from({ length: 190 }, () => simulator.control.add("note", { content }));
  const run = await syncAs("long notes");
  expect(run).toMatchObject({ state: "SUCCEEDED", error: null });
  const kept = await database.query(
    "SELECT 1 FROM note n JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'long notes') AND n.crm_id = ANY ($1) AND n.content = $2",
    [added, content],
  );
  expect(kept).toHaveLength(added.length);
  const asked = simulator.log.of("GET", "/api/v1/notes").map(({ query }) => `${query.start}+${query.limit}`);
  expect(asked.slice(0, 3)).toEqual(["0+500", "0+100", "99+100"]);
});

const pagesOf = (list: string) => simulator.log.of("GET", list).map(({ query }) => Number(query.limit));

// Seen red with: pages as large as before, the second one halved again and again; 408 and 524 as any failure.
test.each<[string, FaultRule["with"]]>([
  ["no answer in time", { kind: "hang" }],
  ...[408, 504, 524].map((status): [string, FaultRule["with"]] => [`a time-out of ${status}`, { status }]),
])(
  "a list whose full pages get %s is read in smaller ones",
  async (what, fault) => {
    const where = ({ limit = "" }) => Number(limit) > 100;
    const run = await syncWith(`slow: ${what}`, { match: "/api/v2/activities", where, with: fault });
    expect(run).toMatchObject({ state: "SUCCEEDED", error: null, gaps: [] });
    expect(pagesOf("/api/v2/activities").slice(0, 3)).toEqual([500, 100, 100]);
  },
  120_000,
);

test("after ten small pages a full one is asked for again: each costs the same, and the CRM may be quick by now", async () => {
  for (let index = 0; index < 1_600; index += 1) simulator.control.add("organization", { name: `O ${index}` });
  const run = await syncWith("slow once", { match: "/api/v2/organizations", times: 1, with: { status: 504 } });
  expect(run.state).toBe("SUCCEEDED");
  expect(pagesOf("/api/v2/organizations").slice(0, 13)).toEqual([500, ...Array(11).fill(100), 500]);
});

test("a list of which no page comes in time is asked for twice, not once for each size", async () => {
  const run = await syncWith("never in time", { match: "/api/v2/persons", with: { status: 504 } });
  expect(run).toMatchObject({ state: "FAILED", error: { code: "CRM_UNAVAILABLE" } });
  expect(pagesOf("/api/v2/persons")).toEqual([500, 100]);
});
