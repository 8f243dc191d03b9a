import { type Subscription, subscribe } from "../support/sockets";
import { addRunJobs, connect, dataOf, type EndedRun, syncAgain, syncEnds, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useService } from "../support/world";

const { simulator, database, service, serve } = useService({ deals: 10 });
const other = serve({ roles: ["api"] });

const STATUS = "subscription { connectionStatusChanged { state trouble { code } } }";
interface Status {
  connectionStatusChanged: { state: string; trouble: { code: string } | null };
}
const watch = (tenant: string) => subscribe<Status>(other.url, STATUS, { as: { tenant, role: "member" } });
const lastOf = ({ results }: Subscription<Status>) => results.at(-1)?.connectionStatusChanged;

test("a failed run is shown as trouble, and a run that succeeds ends it", async () => {
  const tenant = "troubled";
  const end = simulator.control.fail({ match: "/api/v2/deals", with: { kind: "throttle" } });
  await connect(service, simulator, { tenant });
  await syncEnds(service, { tenant });
  const watching = await watch(tenant);
  await until("the trouble is seen", async () => lastOf(watching)?.trouble?.code === "RATE_LIMITED");
  expect(lastOf(watching)?.state).toBe("CONNECTED");
  const runAgain = async () => {
    const ofTenant = "WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)";
    await database.query(`UPDATE sync_run SET state = 'QUEUED', error_code = NULL ${ofTenant}`, [tenant]);
    await database.query(`UPDATE sync_step SET state = 'QUEUED' ${ofTenant}`, [tenant]);
    await addRunJobs(database);
  };
  const told = watching.results.length;
  await database.query(
    "UPDATE connection SET trouble_message = 'It is for another reason.' WHERE trouble_code IS NOT NULL",
  );
  await runAgain();
  await until("the trouble in other words is told", async () => watching.results.length > told);
  end();
  await runAgain();
  await until("the trouble is over", async () => lastOf(watching)?.trouble === null);
  await watching.end();
});

// Seen red: each run began it anew, and told it twice: the renewal in words of its own, and the run in its.
test.each<[what: string, tenant: string, match: string, status: number, code: string]>([
  ["asks whose its renewed token is", "refused", "/api/v1/users/me", 403, "CRM_REFUSED"],
  ["is not told whose its renewed token is", "unproven", "/api/v1/users/me", 503, "CRM_UNAVAILABLE"],
  ["has its token renewed", "unrenewed", "/oauth/token", 503, "CRM_UNAVAILABLE"],
])("trouble that each run meets as it %s goes on since the first, and is told once", async (_what, ...of) => {
  const [tenant, match, status, code] = of;
  const as = { tenant };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await makeStale(database, as.tenant);
  const end = simulator.control.fail({ match, with: { status } });
  const watching = await watch(as.tenant);
  const seen = async () => {
    await service.ask("mutation { requestSync(kind: INCREMENTAL) { __typename } }", {}, as);
    expect((await syncEnds(service, as)).state).toBe("FAILED");
    const query = "SELECT trouble_code AS code, trouble_since AS since, trouble_last_seen_at AS last FROM connection";
    const [row] = await database.query<{ code: string; since: Date; last: Date }>(
      `${query} WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
      [as.tenant],
    );
    return row;
  };
  const first = await seen();
  await until("it is told", async () => lastOf(watching)?.trouble?.code === code);
  const told = watching.results.length;
  const second = await seen();
  expect(second).toMatchObject({ code, since: first?.since });
  expect(second?.last.getTime()).toBeGreaterThan(first?.last.getTime() ?? 0);
  end();
  await syncAgain(service, database, as);
  await until("its end is told", async () => lastOf(watching)?.trouble === null);
  expect(watching.results).toHaveLength(told + 1);
  await watching.end();
});

// Seen red: it was renewed for each list and each deal once more.
test("a token that the CRM knows is renewed once in a run, however many addresses are refused to it", async () => {
  const refused = { status: 401, body: { success: false } };
  const end = simulator.control.fail({ match: /\/api\/v\d\/(?!users\/me)/, with: refused });
  simulator.log.clear();
  const as = { tenant: "refused everywhere" };
  await connect(service, simulator, as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "FAILED", error: { code: "CRM_REFUSED" } });
  const grants = simulator.log.of("POST", "/oauth/token").map(({ grantType }) => grantType);
  expect(grants).toEqual(["authorization_code", "refresh_token"]);
  expect(simulator.log.of("GET", "/api/v2/deals")).toHaveLength(1);
  end();
  // Planted and seen red: it was said of what was no longer connected, and of what was connected next.
  const shown = "mutation { disconnect { ... on DisconnectSuccess { connection { state trouble { code } } } } }";
  const gone = { disconnect: { connection: { state: "NOT_CONNECTED", trouble: null } } };
  expect(dataOf(await service.ask(shown, {}, as))).toEqual(gone);
});

// Seen red: a run under way said why it had failed, and so did one that a disconnect then cancelled.
test("a run says why it failed once it has, and not while the lists behind one that failed are read", async () => {
  const as = { tenant: "told at its end" };
  const repair = simulator.control.fail({ match: "/api/v2/persons", with: { status: 503, body: "" } });
  const letGo = simulator.control.fail({ match: "/api/v2/deals", times: 1, with: { kind: "hang" } });
  const query = "{ syncRuns(first: 1) { nodes { state error { code } steps { resource state } } } }";
  type Runs = { syncRuns: { nodes: Pick<EndedRun, "state" | "steps" | "error">[] } };
  try {
    await connect(service, simulator, as);
    const run = await until("persons have failed", async () => {
      const [last] = dataOf(await service.ask<Runs>(query, {}, as)).syncRuns.nodes;
      return last?.steps.some(({ resource, state }) => resource === "PERSONS" && state === "FAILED") && last;
    });
    expect(run).toMatchObject({ state: "RUNNING", error: null });
  } finally {
    letGo();
    repair();
  }
  expect(await syncEnds(service, as)).toMatchObject({ state: "FAILED", error: { code: "CRM_UNAVAILABLE" } });
});
