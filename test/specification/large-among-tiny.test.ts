import { readParticipantIds, readUnreadDealsOf } from "../../src/briefing/records";
import { readNextActivities } from "../../src/briefing/timeline";
import type { CopyScope } from "../../src/database/database";
import { FEW_BLOCKS, fillTenants, onOneServer, reading } from "../support/blocks";
import { useDatabase } from "../support/world";

/** Of which the average has so little that to read all of it would be as good as any index. */
const TINY = { tenants: 1_500, of: 3 };
const LARGE = 12_000;

const each = "generate_series(1, $2::int) g";
const FILL = [
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, organization_id, participants_due, participants_known, custom_fields)
   SELECT $1, $1, g, '', 'open', g, true, false, '{}' FROM ${each}`,
  `INSERT INTO deal_participant SELECT $1, $1, g, g FROM ${each}`,
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, person_id, organization_id, participant_ids, due_at, due_has_time, done)
   SELECT $1, $1, g, 'A call', 'call', g, g, g, '{}', now() + interval '1 day', true, false FROM ${each}`,
];

const database = useDatabase();
let tenantId: number;

beforeAll(async () => {
  ({ tenantId } = await fillTenants(database, FILL, { small: TINY, large: LARGE }));
}, 300_000);

// Seen red with a tenant taken for the average one: all that the copy has was read by the table's key, or by another index.
onOneServer.each<[string, string[], (copy: CopyScope) => Promise<unknown[]>]>([
  ["who takes part in a deal", ["deal_participant"], (copy) => readParticipantIds(copy, [7_000])],
  ["what a deal has planned", ["activity"], (copy) => readNextActivities(copy, [7_000], new Date())],
  ["a company's unread deals", ["deal", "data_gap"], (copy) => readUnreadDealsOf(copy, [7_000])],
])(
  "%s is found without all that the tenant has, however many others have next to nothing",
  async (_what, tables, read) => {
    const { found, blocks } = await reading(database, tables, tenantId, (copy) => read({ ...copy, copyId: tenantId }));
    expect(found).toHaveLength(1);
    expect(blocks).toBeLessThan(FEW_BLOCKS);
  },
);
