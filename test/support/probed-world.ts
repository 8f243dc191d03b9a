import { connect, dataOf, type EndedRun, recordMeeting, syncEnds } from "./stories";
import { useService } from "./world";

const MINUTE_MS = 60_000;
/** In minutes, and an hour more. */
export const A_DAY = 25 * 60;

/** A service whose clock, and the CRM's, a test moves on; companies of few deals that are met; and what was asked for by ids. */
export function useProbedWorld() {
  /** How far the clocks of both sides are ahead; it begins later than everything that made the company. */
  let aheadMs = MINUTE_MS;
  const clock = () => new Date(Date.now() + aheadMs);
  const passMinutes = (minutes: number) => {
    aheadMs += minutes * MINUTE_MS;
  };
  const { world, simulator, database, service } = useService({ deals: 40, clock });
  beforeEach(() => world.beginAnew());

  async function sync(as: object): Promise<EndedRun> {
    simulator.log.clear();
    const request = "mutation { requestSync(kind: INCREMENTAL) { ... on Refusal { message } } }";
    expect(dataOf(await service.ask(request, {}, as))).toEqual({ requestSync: {} });
    return syncEnds(service, as);
  }

  /** A world of its own: somebody at a company with a deal, who is met. */
  async function metAs(as: { tenant: string }, more = 0) {
    const address = `${as.tenant.replace(/\W/g, "")}@met.example`;
    const organization = simulator.control.add("organization", { name: `Company of ${as.tenant}` });
    const emails = [{ value: address, primary: true, label: "work" }];
    const person = simulator.control.add("person", { name: "Met", emails, org_id: organization });
    const deals = Array.from({ length: 1 + more }, () => {
      const deal = simulator.control.add("deal", {
        title: "Met",
        status: "open",
        org_id: organization,
        person_id: person,
      });
      simulator.control.setParticipants(deal, [person]);
      return deal;
    });
    await connect(service, simulator, as);
    await syncEnds(service, as);
    await recordMeeting(service, [address], { startsAt: clock().toISOString() }, as);
    return { organization, person, deal: deals[0] ?? 0, deals };
  }

  const held = async (table: string, id: number, tenant: string) =>
    (
      await database.query(
        `SELECT 1 FROM ${table} JOIN connection c USING (tenant_id, copy_id)
         WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND crm_id = $2`,
        [tenant, id],
      )
    ).length;
  const probes = () => simulator.log.all().filter(({ query }) => "ids" in query);
  return { simulator, database, service, clock, passMinutes, sync, metAs, held, probes };
}
