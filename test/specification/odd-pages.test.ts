import type { CrmApi } from "../../src/crm/api";
import type { CustomFieldKey } from "../../src/crm/parsing/fields";
import { useRenewals } from "../support/renewals";

const on = useRenewals();
let api: CrmApi;
beforeEach(async () => {
  api = on.api((await on.connected()).source);
});

const shows = (match: string | RegExp, data: readonly unknown[], paging: object) =>
  on.simulator.control.fail({
    match,
    times: 20,
    with: { status: 200, body: { success: true, data, additional_data: paging } },
  });

// Planted and seen red: it was asked for, and paid, without end.
test("a record that is larger than any answer may be is asked for alone, and not once more", async () => {
  const values = Array.from({ length: 100_001 }, () => 1);
  shows("/api/v2/persons", values, { next_cursor: null });
  await expect(api.persons({ cursor: null })).rejects.toMatchObject({ code: "UNREADABLE" });
  const sizes = on.simulator.log.of("GET", "/api/v2/persons").map(({ query }) => query.limit);
  expect(sizes).toEqual(["500", "100", "20", "4", "1"]);
});

// Planted and seen red, each: who is no longer there; those who could be read taken for all.
test("who takes part in a deal is who is active there, each once, and not known where one cannot be read", async () => {
  const last = { pagination: { start: 0, limit: 500, more_items_in_collection: false } };
  const links = [1, 2, 1].map((value) => ({ person_id: { value }, active_flag: value === 1 }));
  const end = shows(/\/participants$/, links, last);
  expect(await api.participantIds(7, 2)).toEqual([1]);
  end();
  shows(/\/participants$/, [...links, { person_id: "nobody" }], last);
  await expect(api.participantIds(7, 2)).rejects.toMatchObject({ code: "UNREADABLE" });
});

const KEY = "a".repeat(40) as CustomFieldKey;
const ANSWERS: [what: string, data: object][] = [
  ["is of another record", { id: 8, custom_fields: { [KEY]: "agreed" } }],
  ["has no custom fields in it", { id: 7 }],
];

// Seen red: what another record holds was taken for what was written, or for the proof that it was not; and without fields all
// of them counted as empty.
test.each(ANSWERS)("an answer that %s says nothing of the one that was asked for", async (_what, data) => {
  on.simulator.control.fail({ match: "/api/v2/deals/7", with: { status: 200, body: { success: true, data } } });
  await expect(api.customFieldsOf("DEAL", 7)).rejects.toMatchObject({ code: "UNREADABLE" });
  const written = api.setCustomFields("DEAL", 7, [{ key: KEY, value: "agreed" }]);
  await expect(written).rejects.toMatchObject({ code: "UNREADABLE" });
});
