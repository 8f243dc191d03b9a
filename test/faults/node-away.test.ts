import { execSync } from "node:child_process";
import { visibleIds } from "../support/copy";
import { workers } from "../support/database";
import { posts, writeNote } from "../support/notes";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

/**
 * Commands that stop and start one worker node of the Citus cluster that TEST_DATABASE_URL names: only who runs the
 * tests knows them, so without them there is nothing to stop.
 */
const { TEST_CITUS_STOP: stopNode, TEST_CITUS_START: startNode } = process.env;
const withNodeToStop = stopNode && startNode && workers().length > 1 ? describe : describe.skip;
const run = (command = "") => execSync(command, { stdio: "ignore" });

jest.setTimeout(240_000);

withNodeToStop("on a Citus cluster", () => {
  const { world, simulator, database, service } = useService({ deals: 300 });
  beforeAll(() => world.cleanup(() => run(startNode)));

  /** A tenant of each node. */
  async function tenantsByNode(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (let number = 1; found.size < workers().length && number < 50; number += 1) {
      const name = `tenant-${number}`;
      const [place] = await database.query<{ node: string }>(
        `SELECT nodename || ':' || nodeport AS node FROM citus_shards
         WHERE shardid = get_shard_id_for_distribution_column('synced_copy', $1::bigint)`,
        [await database.tenantId(name)],
      );
      if (place && !found.has(place.node)) found.set(place.node, name);
    }
    return found;
  }

  async function awayNode(): Promise<string> {
    return until("the coordinator misses the node", async () => {
      const [away] = await database.query<{ node: string }>(
        `SELECT DISTINCT to_nodename || ':' || to_nodeport AS node FROM citus_check_cluster_node_health() WHERE NOT result`,
      );
      return away?.node;
    });
  }

  async function rowsOf(tenant: string): Promise<Record<string, number>> {
    const tenantId = await database.tenantId(tenant);
    const counts: Record<string, number> = {};
    for (const table of ["deal", "person", "activity", "note_write"]) {
      const [found] = await database.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM ${table} WHERE tenant_id = $1`,
        [tenantId],
      );
      counts[table] = found?.n ?? 0;
    }
    return counts;
  }

  test("a node that stops takes its own tenants with it for a while, and no others; nothing is lost or doubled", async () => {
    const { email, ownerId } = simulator.company.stories.singleDeal;
    const byNode = await tenantsByNode();
    const meetings = new Map<string, string>();
    for (const tenant of byNode.values()) {
      await connect(service, simulator, { tenant });
      await syncEnds(service, { tenant });
      meetings.set(tenant, (await recordMeeting(service, [email], {}, { tenant })).id);
    }
    const resync = (tenant: string) =>
      service.ask("mutation { requestSync(kind: RECONCILE) { __typename } }", {}, { tenant });
    const brief = (tenant: string) =>
      service.ask(
        "query ($id: ID!) { briefing(meetingId: $id) { asOf meeting { title } } }",
        { id: meetings.get(tenant) },
        { tenant },
      );
    const note = (tenant: string) =>
      writeNote(service, { meetingId: meetings.get(tenant) ?? "", idempotencyKey: `once-${tenant}` }, { tenant });

    await Promise.all([...byNode.values()].map(resync));
    run(stopNode);
    const away = await awayNode();
    const own = byNode.get(away) ?? "";
    const [other = ""] = [...byNode].filter(([node]) => node !== away).map(([, tenant]) => tenant);

    for (let round = 0; round < 5; round += 1) {
      const [missed, served] = await Promise.all([brief(own), brief(other)]);
      expect(missed.errors).toMatchObject([{ extensions: { code: "TEMPORARILY_UNAVAILABLE" } }]);
      expect(JSON.stringify(missed)).not.toContain(away);
      expect(dataOf(served)).toMatchObject({ briefing: { meeting: { title: "Next steps" } } });
    }
    await expect(note(own)).rejects.toThrow("TEMPORARILY_UNAVAILABLE");
    expect(posts(simulator)).toEqual([]);
    expect(await note(other)).toMatchObject({ state: "WRITTEN" });
    expect((await syncEnds(service, { tenant: other })).state).toBe("SUCCEEDED");

    run(startNode);
    await until("the node's tenant is served", async () => !(await brief(own)).errors);
    // Written to every node, in a session that has held a connection to this one since before it went.
    expect(await database.tenantId("first seen when it is back")).toBeGreaterThan(0);
    // Its worker's lease ends before another may go on.
    const ended = await syncEnds(service, { tenant: own }).catch(() => syncEnds(service, { tenant: own }));
    expect(ended.state).toBe("SUCCEEDED");
    for (let time = 0; time < 2; time += 1) expect(await note(own)).toMatchObject({ state: "WRITTEN" });
    expect(posts(simulator)).toHaveLength(2);
    const [mine, theirs] = await Promise.all([own, other].map(rowsOf));
    expect(mine).toEqual(theirs);
    expect(mine).toMatchObject({ deal: visibleIds(simulator, ownerId).deal?.length, note_write: 1 });
  });
});
