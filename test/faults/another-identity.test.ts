import type { Identity, LogEntry } from "../../simulator";
import { copiedIds, visibleIds } from "../support/copy";
import { fieldOf, setMapping, writeFields } from "../support/fields";
import { askNote, writeNote } from "../support/notes";
import { completeConsent, connect, dataOf, recordMeeting, startConsent, syncEnds, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useService } from "../support/world";
import { useWriteback } from "../support/writeback";

// Seen red with: the code that took every token for its own, in each row; a page committed without a look whether its
// authorization holds; users/me compared by company alone, or by user alone.

const THEIRS = "This is theirs";

let owner: number;
let colleague: number;

const { world, simulator, database, service } = useService({ deals: 10 });
const elsewhere = useWriteback(world);
beforeAll(() => {
  owner = simulator.company.stories.singleDeal.ownerId;
  colleague = [...simulator.company.users.values()].find(({ id, active_flag }) => active_flag && id !== owner)?.id ?? 0;
});
afterEach(() => {
  simulator.control.clearFaults();
  simulator.control.signIn(owner);
  simulator.control.mistake(owner, { userId: owner }, "living");
});

const OTHERS: [who: string, identity: () => Identity][] = [
  ["another user", () => ({ userId: colleague })],
  ["another company", () => ({ userId: owner, company: { id: 99, name: "Other", domain: "other" } })],
];

/** What the CRM was asked with a token of somebody else. */
const askedByOther = () =>
  simulator.log
    .all()
    .filter(({ userId, companyId }: LogEntry) => companyId !== undefined || userId === colleague)
    .map(({ method, path }) => `${method} ${path}`);
const ONLY_WHO = ["GET /api/v1/users/me"];

const SHOWN = "{ connection { state reauthorizationReason trouble { code } } }";
const shown = async (tenant: string) =>
  dataOf(await service.ask<{ connection: object }>(SHOWN, {}, { tenant })).connection;
const CHANGED = { state: "NEEDS_REAUTHORIZATION", reauthorizationReason: "IDENTITY_CHANGED", trouble: null };

const eventsOf = (tenant: string) =>
  database.query(
    "SELECT code FROM audit_event WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND action = 'NEEDS_REAUTHORIZATION'",
    [tenant],
  );

let tenants = 0;
const newTenant = () => `tenant-${++tenants}`;

async function connectedTenant(): Promise<string> {
  const tenant = newTenant();
  await connect(service, simulator, { tenant });
  expect(await syncEnds(service, { tenant })).toMatchObject({ state: "SUCCEEDED" });
  return tenant;
}

/** Tables of the copy that hold something of what only the other identity was shown. */
async function rowsOfOther(tenant: string): Promise<string[]> {
  const held: string[] = [];
  for (const table of ["deal", "person", "organization", "activity", "note", "stage", "pipeline", "crm_user"]) {
    const found = await database.query(
      `SELECT 1 FROM ${table} t JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND t::text LIKE '%${THEIRS}%'`,
      [tenant],
    );
    if (found.length > 0) held.push(table);
  }
  return held;
}

/** From here on the CRM shows, to whomever asks, something that it did not show to us. */
function showTheirs(): void {
  const { dealId, personId, orgId, noteId } = simulator.company.stories.singleDeal;
  simulator.control.change("deal", dealId, { title: THEIRS });
  simulator.control.change("person", personId, { name: THEIRS });
  simulator.control.change("organization", orgId, { name: THEIRS });
  simulator.control.change("note", noteId, { content: THEIRS });
  for (const { id } of simulator.company.users.values()) simulator.control.change("user", id, { name: THEIRS });
}

function showOurs(): void {
  const { dealId, personId, orgId, noteId } = simulator.company.stories.singleDeal;
  simulator.control.change("deal", dealId, { title: "Ours" });
  simulator.control.change("person", personId, { name: "Ours" });
  simulator.control.change("organization", orgId, { name: "Ours" });
  simulator.control.change("note", noteId, { content: "Ours" });
  for (const { id } of simulator.company.users.values()) simulator.control.change("user", id, { name: "Ours" });
}

/** How many calls of the API a first run makes, its question who the user is included. */
async function callsOfRun(): Promise<number> {
  simulator.log.clear();
  await connectedTenant();
  return simulator.log.of("GET", "/api/").length - 1;
}

test.each(OTHERS)(
  "a run whose token turns out to be of %s between any two of its requests writes nothing of theirs",
  async (_who, identity) => {
    const calls = await callsOfRun();
    expect(calls).toBeGreaterThan(10);
    for (let call = 1; call < calls; call += 1) {
      showOurs();
      simulator.log.clear();
      const tenant = newTenant();
      const kill = () => simulator.control.killAccessTokens(owner);
      // The first is the question of the connect.
      simulator.control.fail({ match: "/api/", after: call, times: 1, with: { kind: "meanwhile", act: kill } });
      const turn = () => {
        simulator.control.mistake(owner, identity());
        showTheirs();
      };
      simulator.control.fail({ match: "/oauth/token", after: 1, with: { kind: "meanwhile", act: turn } });
      await connect(service, simulator, { tenant });
      const run = await syncEnds(service, { tenant });
      expect({ call, ...run }).toMatchObject({ call, state: "FAILED", error: { code: "NEEDS_REAUTHORIZATION" } });
      expect({ call, asked: askedByOther(), rows: await rowsOfOther(tenant) }).toEqual({
        call,
        asked: ONLY_WHO,
        rows: [],
      });
      expect(await shown(tenant)).toEqual(CHANGED);
      expect(await eventsOf(tenant)).toEqual([{ code: "IDENTITY_CHANGED" }]);
      simulator.control.clearFaults();
      simulator.control.mistake(owner, { userId: owner }, "living");
    }
    showOurs();
  },
  120_000,
);

test.each(OTHERS)(
  "a token that is of %s without having been renewed is found out when a run begins",
  async (_who, identity) => {
    const tenant = await connectedTenant();
    simulator.log.clear();
    simulator.control.mistake(owner, identity(), "living");
    showTheirs();
    await service.ask("mutation { requestSync { __typename } }", {}, { tenant });
    expect(await syncEnds(service, { tenant })).toMatchObject({ error: { code: "NEEDS_REAUTHORIZATION" } });
    expect([askedByOther(), await rowsOfOther(tenant)]).toEqual([ONLY_WHO, []]);
    expect(await shown(tenant)).toEqual(CHANGED);
    showOurs();
  },
);

/** How the token comes to be another's before its next use. */
const MOMENTS: Record<string, (tenant: string, identity: Identity) => Promise<unknown>> = {
  "renewed because of its age": (tenant, identity) => {
    simulator.control.mistake(owner, identity);
    return makeStale(database, tenant);
  },
  "renewed because the CRM refused it": async (_tenant, identity) => {
    simulator.control.mistake(owner, identity);
    simulator.control.killAccessTokens(owner);
  },
  "renewed and stored, and not used yet": async (tenant, identity) => {
    simulator.control.mistake(owner, identity, "living");
    await database.query(
      "UPDATE credential SET version = version + 1 WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
      [tenant],
    );
  },
};

interface Prepared {
  tenant: string;
  meetingId: string;
  lostWriteId: string;
}

const REQUEST_SYNC = "mutation { requestSync { ... on Refusal { code } } }";

/** What needs a token, and how it says that there is none to be had. */
const USES: Record<string, (prepared: Prepared) => Promise<void>> = {
  "a sync": async ({ tenant }) => {
    const asked = await service.ask<{ requestSync: { code?: string } }>(REQUEST_SYNC, {}, { tenant });
    const code = asked.data.requestSync.code ?? (await syncEnds(service, { tenant })).error?.code;
    expect(code).toBe("NEEDS_REAUTHORIZATION");
  },
  "a note": async ({ tenant, meetingId }) => {
    const answer = await askNote(service, { meetingId }, { tenant });
    expect(answer.write?.error?.code ?? answer.code).toBe("NEEDS_REAUTHORIZATION");
  },
  "values of fields": async ({ tenant, meetingId }) => {
    const values = [{ entity: "DEAL" as const, value: THEIRS }];
    const answer = await writeFields(service, meetingId, values, { as: { tenant } });
    expect(answer.writes?.[0]?.error?.code ?? answer.code).toBe("NEEDS_REAUTHORIZATION");
  },
  "the list of fields": async ({ tenant }) => {
    const query = "{ connection { fields(entity: DEAL) { key } } }";
    const { errors } = await service.ask(query, {}, { tenant });
    expect(errors?.[0]?.extensions.code).toBe("NEEDS_REAUTHORIZATION");
  },
  "a look-up of a lost note": async ({ tenant, lostWriteId }) => {
    await elsewhere.lookUps.lookUp({ tenantId: await database.tenantId(tenant), writeId: lostWriteId });
    const [receipt] = await database.query("SELECT state FROM note_write WHERE id = $1", [lostWriteId]);
    expect(receipt).toEqual({ state: "UNKNOWN" });
  },
};

/** A tenant with a meeting, a nominated field and a note whose answer was lost. */
async function prepared(): Promise<Prepared> {
  const tenant = await connectedTenant();
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, { tenant });
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code, { tenant });
  simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "lostAfter" } });
  const lost = await writeNote(service, { meetingId }, { tenant });
  const [receipt] = await database.query<{ id: string }>(
    "SELECT id FROM note_write WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  expect([lost.state, receipt?.id]).toEqual(["UNKNOWN", expect.any(String)]);
  return { tenant, meetingId, lostWriteId: receipt?.id ?? "" };
}

const held = () => JSON.stringify([...simulator.company.notes.values(), ...simulator.company.deals.values()]);

const MATRIX = Object.keys(USES).flatMap((use) =>
  Object.keys(MOMENTS).flatMap((moment) => OTHERS.map(([who, identity]) => ({ use, moment, who, identity }))),
);

test.each(MATRIX)(
  "$use with a token that was $moment and is of $who: nothing is read or written, and a person has to authorize",
  async ({ use, moment, identity }) => {
    const story = await prepared();
    const { tenant } = story;
    await MOMENTS[moment]?.(tenant, identity());
    const before = { crm: held(), copy: await copiedIds(database, tenant) };
    simulator.log.clear();
    await USES[use]?.(story);
    expect(askedByOther()).toEqual(ONLY_WHO);
    expect({ crm: held(), copy: await copiedIds(database, tenant) }).toEqual(before);
    expect(await shown(tenant)).toEqual(CHANGED);
    expect(await eventsOf(tenant)).toEqual([{ code: "IDENTITY_CHANGED" }]);
    simulator.log.clear();
    for (const again of Object.values(USES)) await again(story);
    const source = elsewhere.tokens.of(await database.tenantId(tenant), (await copyIdOf(tenant)) ?? 0);
    await expect(source.current()).rejects.toMatchObject({ code: "NEEDS_REAUTHORIZATION" });
    expect(simulator.log.all()).toEqual([]);
  },
);

async function copyIdOf(tenant: string): Promise<number | undefined> {
  const [row] = await database.query<{ id: number }>(
    "SELECT copy_id AS id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  return row?.id;
}

test("a page that the CRM answered before another identity was found, and that comes after, is not written", async () => {
  const tenant = newTenant();
  simulator.log.clear();
  const release = simulator.control.fail({ match: "/api/v2/persons", with: { kind: "hangAfter" } });
  await connect(service, simulator, { tenant });
  await until("persons are asked for", async () => simulator.log.of("GET", "/api/v2/persons").length > 0);
  simulator.control.mistake(owner, { userId: colleague });
  const copyId = await makeStale(database, tenant);
  await expect(elsewhere.tokens.of(await database.tenantId(tenant), copyId).current()).rejects.toMatchObject({
    code: "NEEDS_REAUTHORIZATION",
  });
  release();
  expect(await syncEnds(service, { tenant })).toMatchObject({
    state: "FAILED",
    error: { code: "NEEDS_REAUTHORIZATION" },
  });
  const { organization, person } = await copiedIds(database, tenant);
  expect([organization?.length, person]).toEqual([visibleIds(simulator, owner).organization?.length, []]);
  expect(askedByOther()).toEqual(ONLY_WHO);
});

test("after that the same user gets the copy back, another one a new one, and another company is refused", async () => {
  const tenant = await connectedTenant();
  const loseIdentity = async () => {
    simulator.control.mistake(owner, { userId: colleague });
    simulator.control.mistake(colleague, { userId: owner });
    const copyId = await makeStale(database, tenant);
    await expect(elsewhere.tokens.of(await database.tenantId(tenant), copyId).current()).rejects.toThrow();
    expect(await shown(tenant)).toEqual(CHANGED);
    simulator.control.mistake(owner, { userId: owner });
    simulator.control.mistake(colleague, { userId: colleague });
    return copyId;
  };
  const first = await loseIdentity();
  const state = await startConsent(service, { tenant });
  simulator.control.mistake(owner, { userId: owner, company: { id: 99, name: "Other", domain: "other" } });
  const code = simulator.control.approve({ state });
  expect((await completeConsent(service, { code, state }, { tenant })).code).toBe("DIFFERENT_CRM_COMPANY");
  expect(await shown(tenant)).toEqual(CHANGED);
  simulator.control.mistake(owner, { userId: owner });
  await connect(service, simulator, { tenant });
  expect(await syncEnds(service, { tenant })).toMatchObject({ state: "SUCCEEDED" });
  expect(await copyIdOf(tenant)).toBe(first);
  await loseIdentity();
  simulator.control.signIn(colleague);
  await connect(service, simulator, { tenant });
  expect(await syncEnds(service, { tenant })).toMatchObject({ state: "SUCCEEDED" });
  expect(await copyIdOf(tenant)).not.toBe(first);
  expect(await copiedIds(database, tenant)).toEqual(visibleIds(simulator, colleague));
});
