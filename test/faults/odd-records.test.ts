import { dataOf, recordMeeting, syncEnds } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: instants of the year 10000 in a schedule; a currency of any length; keys of rejected records, names of
// fields and cursors as the CRM sent them; a `Date` from before 1970.

/** Nothing but what a test asks for runs. */
const QUIET = { sync: { intervalMs: 0, reconcileIntervalMs: 0 } };
const { simulator, service } = useService({ deals: 10, connected: ["acme"], config: QUIET });

const SET_ZONE = `mutation { setQuietSettings(input: { thresholds: [], businessDays: false, twoWayActivityTypes: [],
  timeZone: "America/New_York" }) { __typename } }`;
const PRESENT = `{ deals(orderBy: QUIET_DAYS_DESC) { nodes { quiet { verdict nextChangeAt } } } }`;

beforeAll(async () => {
  await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
  dataOf(await service.ask(SET_ZONE));
});
beforeEach(() => simulator.control.clearFaults());

const ofDeal = () => {
  const { dealId, personId } = simulator.company.stories.singleDeal;
  return { deal_id: dealId, person_id: personId, participants: [{ person_id: personId, primary: true }] };
};
const page = (data: unknown[], next_cursor: string | null = null) => ({
  status: 200,
  body: { success: true, data, additional_data: { next_cursor } },
});
const LAST_DAY = { due_date: "9999-12-31", due_time: "23:59" };
const LAST_SECOND = "9999-12-31T23:59:59Z";
/** Hardly two of its characters are alike, so that no index makes it shorter. */
const LONG = String.fromCharCode(...Array.from({ length: 1_000 }, (_, at) => 0x4e00 + ((at * 7_919) % 20_000)));

const CASES: [name: string, code: string | null, arrange: () => unknown][] = [
  [
    "a step for ever ahead",
    null,
    () => simulator.control.add("activity", { ...ofDeal(), due_date: "9999-12-31", done: false }),
  ],
  [
    "a call that was held at the end of time",
    null,
    () => simulator.control.add("activity", { ...ofDeal(), ...LAST_DAY, done: true, marked_as_done_time: LAST_SECOND }),
  ],
  [
    "a mail of the same second",
    null,
    () => simulator.control.change("person", ofDeal().person_id, { last_incoming_mail_time: LAST_SECOND }),
  ],
  [
    "a deal that was added then",
    null,
    () => simulator.control.change("deal", ofDeal().deal_id, { add_time: LAST_SECOND }),
  ],
  [
    "a currency of 1,000 characters",
    null,
    () => simulator.control.change("deal", ofDeal().deal_id, { value: 5, currency: LONG }),
  ],
  [
    "custom fields whose names hold NUL, or a whole text",
    null,
    () =>
      simulator.control.change("deal", ofDeal().deal_id, {
        currency: "EUR",
        custom_fields: { "a\0b": 1, [LONG]: 2, constructor: 3 },
      }),
  ],
  [
    "records whose ids are half a character, and another half",
    null,
    () => simulator.control.fail({ match: "/api/v2/activities", with: page([{ id: "\ud800" }, { id: "\udc00" }]) }),
  ],
  [
    "a clock from before our era",
    null,
    () => simulator.control.fail({ match: /^\/api\//, with: { kind: "headers", headers: { date: "-271821-04-20" } } }),
  ],
  [
    "a cursor with NUL",
    "CRM_ANSWER_UNREADABLE",
    () => simulator.control.fail({ match: "/api/v2/persons", with: page([{ id: 1, name: "Ada" }], "a\0b") }),
  ],
];

test.each(CASES)("%s is no fault of our own: the run ends with %s", async (_name, code, arrange) => {
  arrange();
  dataOf(await service.ask("mutation { requestSync(kind: INCREMENTAL) { __typename } }"));
  expect((await syncEnds(service)).error?.code ?? null).toBe(code);
  dataOf(await service.ask(PRESENT));
});
