import type { CrmApi } from "../../src/crm/api";
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
