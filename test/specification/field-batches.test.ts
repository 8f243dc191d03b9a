import { type Fault, startSimulator } from "../../simulator";
import { CrmApi } from "../../src/crm/api";
import { CrmHttp } from "../../src/crm/http";
import { CrmOAuth } from "../../src/crm/oauth";
import { type CustomFieldKey, isCustomFieldKey } from "../../src/crm/parsing/fields";
import { Secret } from "../../src/platform/keyring";
import { type Batch, writeRecord } from "../../src/writeback/field-batch";
import { fieldOf, heldIn, patches } from "../support/fields";
import { useStarted } from "../support/world";

// A nomination gives a record one field; these batches have several, as decision 0028 words it. Seen red with: a
// second try after a 429.

let http: CrmHttp;
let api: CrmApi;
let dealId: number;

const simulator = useStarted(() => startSimulator({ deals: 10 }));
beforeAll(async () => {
  http = new CrmHttp();
  const { url, clientId, clientSecret, redirectUrl } = simulator;
  const oauth = new CrmOAuth(http, {
    baseUrl: url,
    authUrl: url,
    clientId,
    redirectUrl,
    concurrency: 8,
    clientSecret: new Secret(clientSecret),
  });
  const { accessToken } = await oauth.exchangeCode(simulator.control.approve());
  const fixed = async () => accessToken;
  api = new CrmApi({ http, baseUrl: url, tokens: { current: fixed, renewed: fixed } });
  dealId = simulator.company.stories.singleDeal.dealId;
});
afterAll(() => http.close());
beforeEach(() => {
  simulator.control.clearFaults();
  simulator.log.clear();
});

const key = (code: string): CustomFieldKey => {
  if (!isCustomFieldKey(code)) throw new Error(`${code} is no custom field's key`);
  return code;
};
const field = (type: string, value: unknown) => ({
  key: key(fieldOf(simulator, "DEAL", type).field_code),
  type,
  value,
});
const gone = { key: key("0".repeat(40)), type: "varchar", value: "nowhere" };
const run = (batch: Batch) => writeRecord(api, { entity: "DEAL", id: dealId }, batch);
const statesOf = async (batch: Batch) =>
  (await run(batch)).outcomes.map((one) => ("failure" in one ? one.failure.code : one.state));
const held = (type: string) => heldIn(simulator, "DEAL", dealId, fieldOf(simulator, "DEAL", type).field_code);
const sentKeys = () =>
  patches(simulator).map(({ body }) => Object.keys((body as { custom_fields: object }).custom_fields).length);

test("several fields of one record are one request", async () => {
  expect(await statesOf([field("varchar", "a"), field("double", 1.5), field("date", "2026-01-02")])).toEqual([
    "WRITTEN",
    "WRITTEN",
    "WRITTEN",
  ]);
  expect([held("varchar"), held("double"), held("date")]).toEqual(["a", 1.5, "2026-01-02"]);
  expect(sentKeys()).toEqual([3]);
});

test("one that the CRM refuses hides none of the others: each is tried once alone", async () => {
  expect(await statesOf([field("varchar", "b"), field("int", "text"), gone, field("date", "2026-02-03")])).toEqual([
    "WRITTEN",
    "VALUE_REJECTED",
    "VALUE_REJECTED",
    "WRITTEN",
  ]);
  expect([held("varchar"), held("int"), held("date")]).toEqual(["b", null, "2026-02-03"]);
  expect(sentKeys()).toEqual([4, 1, 1, 1, 1]);
});

test.each<[string, Fault, number, string[]]>([
  ["is throttled", { kind: "throttle" }, 0, ["RATE_LIMITED", "RATE_LIMITED", "RATE_LIMITED"]],
  [
    "is refused and then throttled at the second field",
    { kind: "throttle" },
    2,
    ["WRITTEN", "RATE_LIMITED", "RATE_LIMITED"],
  ],
])("a batch that %s sends nothing after that", async (_what, fault, after, states) => {
  if (after > 0) simulator.control.fail({ match: "/api/v2/deals", method: "PATCH", times: 1, with: { status: 400 } });
  simulator.control.fail({ match: "/api/v2/deals", method: "PATCH", after: Math.max(0, after - 1), with: fault });
  expect(await statesOf([field("varchar", "c"), field("double", 2), field("date", "2026-03-04")])).toEqual(states);
  expect(patches(simulator)).toHaveLength(after + 1);
});

test("a batch whose answer is lost is certain again where a later answer shows the value, and only there", async () => {
  const match = "/api/v2/deals";
  simulator.control.fail({ match, method: "PATCH", times: 1, with: { kind: "lostAfter" } });
  simulator.control.fail({ match, method: "PATCH", times: 1, after: 1, with: { kind: "reset" } });
  const { outcomes, seen } = await run([field("varchar", "d"), field("double", 3), field("date", "2026-04-05")]);
  expect(outcomes.map(({ state }) => state)).toEqual(["WRITTEN", "UNKNOWN", "WRITTEN"]);
  expect([held("varchar"), held("double"), held("date")]).toEqual(["d", 3, "2026-04-05"]);
  expect(seen?.customFields[fieldOf(simulator, "DEAL", "double").field_code]).toBe(3);
  expect(sentKeys()).toEqual([3, 1, 1, 1]);
});

test("a write has no member but custom_fields, and no standard field's name is a key", async () => {
  await run([field("varchar", "e")]);
  expect(patches(simulator).map(({ body }) => Object.keys(body as object))).toEqual([["custom_fields"]]);
  const standard = simulator.company.fields.deal.filter((one) => !one.is_custom_field);
  expect(standard.map((one) => isCustomFieldKey(one.field_code))).toEqual(standard.map(() => false));
});
