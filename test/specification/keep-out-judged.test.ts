import * as times from "../../simulator/model/times";
import { judge } from "../../src/briefing/quiet/judge";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { KeepOut } from "../../src/connections/keep-out";
import { erasePerson } from "../../src/operator/erasure";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { recordMeeting, syncAgain, syncEnds } from "../support/stories";
import { useService } from "../support/world";

/** How far the clocks of both sides are ahead. */
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const before = (days: number) => clock().getTime() - days * DAY_MS;
const v2Time = (days: number) => times.v2Time(before(days) / 1_000);

const ADDRESS = "ottilie.ringelnatz@quellwerk.example";
const { world, simulator, database, service } = useService({ deals: 20, clock, connected: ["acme"] });
const emails = (value: string) => ({ emails: [{ value, primary: true, label: "work" }] });

// Seen red: the deal stayed what the mails of who had left made of it, until somebody asked who takes part.
test("who has an address by now that is kept out leaves by an answer to ids, and the deals that it took part in are judged", async () => {
  const { control } = simulator;
  const main = control.add("person", { name: "Main", ...emails("main@somewhere.example") });
  const mails = { last_incoming_mail_time: v2Time(1), last_outgoing_mail_time: v2Time(2) };
  const other = control.add("person", { name: "Other", ...emails("other@somewhere.example"), ...mails });
  const added = { add_time: v2Time(40), stage_change_time: v2Time(40) };
  const deal = control.add("deal", { title: "Renewal", status: "open", person_id: main, ...added });
  control.setParticipants(deal, [main, other], "moves");
  aheadMs += 11 * MINUTE_MS;
  await syncAgain(service, database);
  // So long ago that no sync matches it again.
  const startsAt = new Date(before(45)).toISOString();
  await recordMeeting(service, ["main@somewhere.example", "other@somewhere.example"], { startsAt });

  const tenantId = await database.tenantId("acme");
  const parts = { database: database.opened(), clock, logger: createLogger("silent") };
  const keepOut = new KeepOut(new Keyring(world.config.encryptionKeys));
  await erasePerson({ ...parts, keepOut }, tenantId, ADDRESS, true);
  control.change("person", other, emails(ADDRESS));
  control.fail({ match: /participants$/, with: { status: 500, body: "" } });
  await database.query("UPDATE synced_copy SET probed_at = NULL");
  aheadMs += 11 * MINUTE_MS;
  await service.ask("mutation { requestSync(kind: INCREMENTAL) { __typename } }");
  await syncEnds(service);
  expect(await database.query("SELECT 1 FROM person WHERE crm_id = $1", [other])).toEqual([]);

  const [copy] = await database.query<{ id: number }>("SELECT copy_id AS id FROM connection");
  const found = await readQuietFacts({ ...parts.database.tenant(tenantId), copyId: copy?.id ?? 0 }, [deal], clock());
  const [facts] = found?.deals ?? [];
  const signal = found && facts && judge(facts, { ...found.copy, readAt: before(0) }, clock());
  expect(signal).toMatchObject({ verdict: "QUIET" });
  const stored = await database.query(
    "SELECT verdict, quiet_since FROM deal_silence WHERE deal_id = $1 AND holds_from <= $2 AND holds_until > $2",
    [deal, clock()],
  );
  expect(stored).toEqual([{ verdict: "QUIET", quiet_since: signal?.quietSince }]);
});
