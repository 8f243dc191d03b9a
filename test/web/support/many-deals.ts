import type { TestDatabase } from "../../support/database";

/** Tables that hold something of a deal, and the column that has its id. */
const OF_A_DEAL = [
  ["deal", "crm_id"],
  ["deal_participant", "deal_id"],
  ["deal_silence", "deal_id"],
  ["matched_record", "crm_id"],
] as const;
const FIRST_ID = 1_000_000;

/** As many copies of one deal, with its people and its silence, as if the CRM had them and a meeting had matched them. */
export async function multiplyDeal(database: Pick<TestDatabase, "query">, title: string, times: number): Promise<void> {
  const [deal] = await database.query<{ copy_id: number; crm_id: number }>(
    "SELECT copy_id, crm_id FROM deal WHERE title = $1",
    [title],
  );
  for (const [table, column] of OF_A_DEAL) {
    const only = table === "matched_record" ? "AND t.entity = 'DEAL'" : "";
    await database.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object('${column}', ${FIRST_ID} + n))).*
       FROM ${table} t, generate_series(1, $1) n WHERE t.copy_id = $2 AND t.${column} = $3 ${only}`,
      [times, deal?.copy_id, deal?.crm_id],
    );
  }
}
