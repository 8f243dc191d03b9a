import type { Simulator } from "../../simulator";
import { judgeAgain } from "./copy";
import type { TestDatabase } from "./database";
import type { Service } from "./service";
import { connect, recordMeeting, syncEnds, until } from "./stories";

/** Connects, syncs, and records meetings with every second person of the CRM. @returns the copy */
export async function connectAndMatchDeals(
  service: Service,
  simulator: Simulator,
  database: TestDatabase,
  tenant: string,
): Promise<number> {
  await connect(service, simulator, { tenant });
  await syncEnds(service, { tenant });
  await until("the meetings are matched again", async () => {
    const [jobs] = await database.query<{ n: number }>("SELECT count(*)::int AS n FROM graphile_worker.jobs");
    return jobs?.n === 0 || (await planned(database)) === jobs?.n;
  });
  const { severalDeals } = simulator.company.stories;
  const invited = [...simulator.company.persons.values()]
    .filter(({ id }) => id % 2 === 1 && id !== severalDeals.personId)
    .flatMap(({ emails }) => emails.map(({ value }) => value.trim()))
    .filter((email) => email.includes("@") && email !== severalDeals.email);
  await recordMeeting(service, [...new Set(invited)].slice(0, 400), {}, { tenant });
  const [row] = await database.query<{ copy_id: number }>(
    "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  return row?.copy_id ?? 0;
}

/** Jobs that wait for their time. */
async function planned(database: TestDatabase): Promise<number> {
  return (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE run_at > now()")).length;
}

// A subscripted array in an UPDATE ends Citus 13.2 with a segmentation fault.
const oneOf = (values: readonly string[]) =>
  `CASE ${values.map((value, n) => `WHEN crm_id % ${values.length} = ${n} THEN ${value}`).join(" ")} END`;

/** Few instants, few amounts, three currencies, and nothing at all in some: most deals tie with others. */
export async function makeTies(database: TestDatabase, copyId: number): Promise<void> {
  const instants = Array.from(
    { length: 10 },
    (_, n) => `timestamptz '2026-10-0${1 + (n % 5)}T00:00:00.00000${n % 2}Z'`,
  );
  await database.query(
    `UPDATE deal SET update_time = ${oneOf(instants)}, status = ${oneOf(["'open'", "'won'", "'lost'"])},
       value = CASE WHEN crm_id % 11 = 0 THEN NULL ELSE crm_id % 4 * 400000000000000000.01 - crm_id % 3 END,
       currency = CASE WHEN crm_id % 13 = 0 THEN NULL ELSE ${oneOf(["'SEK'", "'EUR'", "'JPY'"])} END
     WHERE copy_id = $1`,
    [copyId],
  );
  await database.query("UPDATE deal SET update_time = NULL WHERE copy_id = $1 AND crm_id % 7 = 0", [copyId]);
  await judgeAgain(database, copyId);
}

export interface DealFacts {
  crm_id: number;
  micros: string | null;
  value: string | null;
  currency: string | null;
  status: string;
  pipeline_id: number;
  stage_id: number;
  owner_id: number;
}

/** What every deal list should be made of. */
export function matchedDeals(database: TestDatabase, copyId: number): Promise<DealFacts[]> {
  return database.query<DealFacts>(
    `SELECT d.crm_id, (extract(epoch FROM d.update_time) * 1000000)::bigint::text AS micros, d.value, d.currency, d.status,
       d.pipeline_id, d.stage_id, d.owner_id
     FROM deal d WHERE d.copy_id = $1 AND d.crm_id IN (
       SELECT crm_id FROM matched_record WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme') AND copy_id = $1 AND entity = 'DEAL')`,
    [copyId],
  );
}

/** Hundredths, so that amounts that a float cannot hold are compared exactly. */
export const cents = (value: string | null) => {
  const [whole = "0", part = ""] = (value ?? "0").split(".");
  return BigInt(whole + part.padEnd(2, "0"));
};
const compare = <T extends bigint | number | string>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0);
const updated = ({ micros }: DealFacts) => (micros === null ? -1n : BigInt(micros));
export const money = ({ value, currency }: DealFacts) => (value === null || currency === null ? "~" : currency);

export const PLAINLY = {
  UPDATED_AT_DESC: (a: DealFacts, b: DealFacts) => compare(updated(b), updated(a)) || b.crm_id - a.crm_id,
  VALUE_DESC: (a: DealFacts, b: DealFacts) =>
    compare(money(a), money(b)) || compare(cents(b.value), cents(a.value)) || a.crm_id - b.crm_id,
};
