import type { LogEntry } from "../../simulator";
import { writeNote } from "../support/notes";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: one more member in the body of a note; a standard field beside the custom ones.

/** Everything that the service may ask of the CRM (specification 4.2 and 4.3), and what each may send. */
const ALLOWED: { method: string; path: RegExp; body?: (body: object) => boolean }[] = [
  "/api/v1/users/me",
  "/api/v1/users",
  "/api/v1/notes",
  "/api/v1/deals/\\d+/participants",
  ...["organizations", "persons", "deals", "pipelines", "stages", "activities"].map((list) => `/api/v2/${list}`),
  ...["dealFields", "personFields", "organizationFields"].map((list) => `/api/v2/${list}`),
  ...["deals", "persons", "organizations"].map((list) => `/api/v2/${list}/\\d+`),
].map((path) => ({ method: "GET", path: new RegExp(`^${path}$`) }));
ALLOWED.push(
  { method: "POST", path: /^\/oauth\/token$/ },
  { method: "POST", path: /^\/api\/v1\/notes$/, body: isNote },
  { method: "PATCH", path: /^\/api\/v2\/(deals|persons|organizations)\/\d+$/, body: isOneCustomFieldOrMore },
);

/** The text and exactly one parent: no author, no time, no pin. */
function isNote(body: object): boolean {
  const { content, ...rest } = body as Record<string, unknown>;
  const [[parent = "", id] = [], ...others] = Object.entries(rest);
  const isParent = ["deal_id", "person_id", "org_id"].includes(parent) && Number.isSafeInteger(id);
  return typeof content === "string" && isParent && others.length === 0;
}

function isOneCustomFieldOrMore(body: object): boolean {
  const { custom_fields: fields, ...rest } = body as { custom_fields?: object };
  const keys = Object.keys(fields ?? {});
  return Object.keys(rest).length === 0 && keys.length > 0 && keys.every((key) => /^[0-9a-f]{40}$/.test(key));
}

function isAllowed({ method, path, body, query }: LogEntry): boolean {
  const asked = ALLOWED.find((call) => call.method === method && call.path.test(path));
  if (!asked || "scope" in query) return false;
  if (method === "GET") return body === undefined;
  return asked.body === undefined || (typeof body === "object" && body !== null && asked.body(body));
}

const { simulator, service } = useService({ deals: 30 });

const mutate = async (mutation: string, variables = {}) => dataOf(await service.ask(mutation, variables));

async function sync(kind: string): Promise<void> {
  await mutate(`mutation { requestSync(kind: ${kind}) { __typename ... on Refusal { message } } }`);
  expect((await syncEnds(service)).state).toBe("SUCCEEDED");
}

/** Answers that are refused, lost and looked up, and tokens that are renewed. */
async function writeUnderFaults(meetingId: string): Promise<void> {
  for (const fault of [{ status: 401 }, { status: 500 }, { kind: "lostAfter" }, { kind: "throttle" }] as const) {
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: fault });
    await writeNote(service, { meetingId });
  }
  await until("a lost answer is looked up", async () =>
    simulator.log.of("GET", "/api/v1/notes").some(({ query }) => "deal_id" in query),
  );
}

test("whatever the product is made to do, the CRM's own log shows the documented calls and no others", async () => {
  const { singleDeal, ghosted } = simulator.company.stories;
  await connect(service, simulator);
  expect((await syncEnds(service)).state).toBe("SUCCEEDED");
  const { id: meetingId } = await recordMeeting(service, [singleDeal.email, ghosted.email]);
  const { id: own } = await recordMeeting(service, [singleDeal.email]);
  const read = `{ deals { nodes { title recentActivities { subject } recentNotes { text } } } persons { nodes { name } }
    organizations { nodes { name } } meetings { nodes { title match { status } briefing { asOf } } } crmWrites { nodes { __typename } } }`;
  await mutate(read);
  const fields =
    "{ connection { DEAL: fields(entity: DEAL, customOnly: true) { key type } fieldMappings { fieldKey } } }";
  const shown = (await mutate(fields)) as unknown as { connection: { DEAL: { key: string; type: string }[] } };
  const fieldKey = shown.connection.DEAL.find(({ type }) => type === "varchar")?.key;
  await mutate("mutation ($input: FieldMappingInput!) { setFieldMapping(input: $input) { __typename } }", {
    input: { entity: "DEAL", fieldKey },
  });
  const match = "query ($id: ID!) { meeting(id: $id) { match { persons { id } organizations { id } } } }";
  const { meeting } = (await mutate(match, { id: own })) as unknown as {
    meeting: { match: { persons: { id: string }[]; organizations: { id: string }[] } };
  };
  for (const target of [null, meeting.match.persons[0], meeting.match.organizations[0]]) {
    expect(await writeNote(service, { meetingId: own, targetId: target?.id })).toMatchObject({ state: "WRITTEN" });
  }
  const fieldsWritten = `mutation ($input: WriteFieldsInput!) { writeFields(input: $input) {
    ... on WriteFieldsReport { writes { state } } ... on Refusal { message } } }`;
  for (const [idempotencyKey, fault] of [
    ["first", null],
    ["refused", { status: 400 }],
    ["lost", { kind: "lostAfter" }],
  ] as const) {
    if (fault) simulator.control.fail({ match: /^\/api\/v2\/deals\/\d+$/, method: "PATCH", times: 1, with: fault });
    const input = { meetingId: own, idempotencyKey, values: [{ entity: "DEAL", value: `met, ${idempotencyKey}` }] };
    const { writeFields } = (await mutate(fieldsWritten, { input })) as unknown as {
      writeFields: object;
    };
    expect(writeFields).toMatchObject({ writes: [{ state: "WRITTEN" }] });
  }
  await writeUnderFaults(own);
  simulator.control.killAccessTokens(singleDeal.ownerId);
  for (const kind of ["INCREMENTAL", "RECONCILE", "FULL"]) await sync(kind);
  await recordMeeting(service, [singleDeal.email], { externalId: "again" });
  await mutate("mutation { clearFieldMapping(entity: DEAL) { __typename } }");
  simulator.control.revoke(singleDeal.ownerId);
  await mutate("mutation { requestSync { __typename } }");
  await syncEnds(service);
  await connect(service, simulator);
  await syncEnds(service);
  await mutate("mutation { disconnect { __typename } }");
  await mutate(read);

  expect(meetingId).not.toBe(own);
  expect(simulator.log.all().filter((entry) => !isAllowed(entry))).toEqual([]);
  // Each kind of call was made, so that the list above was put to the test.
  const seen = new Set(simulator.log.all().map(({ method, path }) => `${method} ${path.replace(/\d+/g, "N")}`));
  for (const call of [
    "POST /api/vN/notes",
    "PATCH /api/vN/deals/N",
    "GET /api/vN/dealFields",
    "GET /api/vN/deals/N/participants",
  ]) {
    expect(seen).toContain(call);
  }
}, 60_000);
