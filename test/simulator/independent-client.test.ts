import * as v1 from "pipedrive/v1";
import * as v2 from "pipedrive/v2";
import type { Simulator, Snapshot } from "../../simulator";
import { connect, idsOf, start, stopAll } from "./client";
import { hasShape, shapes } from "./wire-shapes";

// The official client, written by others against the real wire, reads everything. What it cannot read is our fault.

let simulator: Simulator;
let expected: Snapshot;
let accessToken: string;
let version2: v2.Configuration;
let version1: v1.Configuration;

beforeAll(async () => {
  simulator = await start({ deals: 150 });
  accessToken = (await connect(simulator)).accessToken;
  version2 = new v2.Configuration({ accessToken, basePath: `${simulator.url}/api/v2` });
  version1 = new v1.Configuration({ accessToken, basePath: `${simulator.url}/api/v1` });
  expected = simulator.control.visibleTo(simulator.company.stories.singleDeal.ownerId);
});
afterAll(stopAll);

interface CursorPage<T> {
  data?: T[];
  additional_data?: { next_cursor?: string | null };
}

async function all<T>(page: (cursor: string | undefined) => Promise<CursorPage<T>>): Promise<T[]> {
  const records: T[] = [];
  let cursor: string | undefined;
  do {
    const { data, additional_data } = await page(cursor);
    records.push(...(data ?? []));
    cursor = additional_data?.next_cursor ?? undefined;
  } while (cursor);
  return records;
}

const LIMIT = 20;
const sorted = (ids: number[]) => [...ids].sort((left, right) => left - right);

function finds(records: readonly object[], wanted: readonly object[]): void {
  expect(wanted.length).toBeGreaterThan(0);
  expect(sorted(idsOf(records))).toEqual(sorted(idsOf(wanted)));
}

describe("version 2", () => {
  test("organizations", async () => {
    const api = new v2.OrganizationsApi(version2);
    const records = await all((cursor) => api.getOrganizations({ limit: LIMIT, cursor }));
    finds(records, expected.organizations);
    hasShape(records, shapes.organization);
  });

  test("persons", async () => {
    const api = new v2.PersonsApi(version2);
    const records = await all((cursor) => api.getPersons({ limit: LIMIT, cursor }));
    finds(records, expected.persons);
    hasShape(records, shapes.person);
  });

  test("deals, with the optional fields", async () => {
    const api = new v2.DealsApi(version2);
    // The client's type takes one name, its code passes on whatever text it is given.
    const include_fields = "last_incoming_mail_time,last_outgoing_mail_time,participants_count" as "participants_count";
    const records = await all((cursor) => api.getDeals({ limit: LIMIT, cursor, include_fields }));
    finds(records, expected.deals);
    hasShape(records, {
      ...shapes.deal,
      last_incoming_mail_time: "string?",
      last_outgoing_mail_time: "string?",
      participants_count: "number",
    });
    expect(records).toEqual(expected.deals);
  });

  test("deals by status, deleted and archived ones", async () => {
    const api = new v2.DealsApi(version2);
    const byStatus = (status: "open" | "won" | "lost" | "deleted") =>
      all((cursor) => api.getDeals({ limit: LIMIT, cursor, status }));
    const current = (await Promise.all((["open", "won", "lost"] as const).map(byStatus))).flat();
    finds(current, expected.deals);
    const deleted = await byStatus("deleted");
    expect(deleted.length).toBeGreaterThan(0);
    hasShape(deleted, shapes.deal);
    expect(deleted.every((deal) => deal.is_deleted && deal.status === "deleted")).toBe(true);
    const archived = await all((cursor) => api.getArchivedDeals({ limit: LIMIT, cursor }));
    expect(archived.length).toBeGreaterThan(0);
    hasShape(archived, shapes.deal);
    expect(archived.every((deal) => deal.is_archived)).toBe(true);
  });

  test("pipelines and stages", async () => {
    const pipelines = new v2.PipelinesApi(version2);
    const records = await all((cursor) => pipelines.getPipelines({ limit: 1, cursor }));
    finds(records, expected.pipelines);
    hasShape(records, shapes.pipeline);
    const stages = new v2.StagesApi(version2);
    const found = await all((cursor) => stages.getStages({ limit: 2, cursor }));
    finds(found, expected.stages);
    hasShape(found, shapes.stage);
  });

  test("activities", async () => {
    const api = new v2.ActivitiesApi(version2);
    const records = await all((cursor) => api.getActivities({ limit: 50, cursor }));
    finds(records, expected.activities);
    hasShape(records, shapes.activity);
  });

  test("field lists, whole and by code", async () => {
    const deals = new v2.DealFieldsApi(version2);
    const persons = new v2.PersonFieldsApi(version2);
    const organizations = new v2.OrganizationFieldsApi(version2);
    const lists = {
      deal: await all((cursor) => deals.getDealFields({ limit: LIMIT, cursor })),
      person: await all((cursor) => persons.getPersonFields({ limit: LIMIT, cursor })),
      organization: await all((cursor) => organizations.getOrganizationFields({ limit: LIMIT, cursor })),
    };
    for (const entity of ["deal", "person", "organization"] as const) {
      expect(lists[entity].map((field) => field.field_code)).toEqual(
        simulator.company.fields[entity].map((field) => field.field_code),
      );
    }
    const field_code = lists.deal.find((field) => field.is_custom_field)?.field_code ?? "";
    expect((await deals.getDealField({ field_code })).data).toMatchObject({ field_code });
  });

  test("single records", async () => {
    const { dealId: id, personId, orgId, doneActivityId } = simulator.company.stories.singleDeal;
    expect((await new v2.DealsApi(version2).getDeal({ id })).data?.id).toBe(id);
    expect((await new v2.PersonsApi(version2).getPerson({ id: personId })).data?.id).toBe(personId);
    expect((await new v2.OrganizationsApi(version2).getOrganization({ id: orgId })).data?.id).toBe(orgId);
    expect((await new v2.ActivitiesApi(version2).getActivity({ id: doneActivityId })).data?.id).toBe(doneActivityId);
  });
});

describe("version 1", () => {
  test("users and the caller", async () => {
    const api = new v1.UsersApi(version1);
    const users = (await api.getUsers()).data ?? [];
    finds(users, expected.users);
    hasShape(users, shapes.user);
    expect(users.filter((user) => user.is_you)).toHaveLength(1);
    const me = (await api.getCurrentUser()).data ?? {};
    hasShape([me], {
      ...shapes.user,
      company_id: "number",
      company_name: "string",
      company_domain: "string",
      company_country: "string",
      company_industry: "string",
      language: "object",
    });
  });

  test("notes", async () => {
    const api = new v1.NotesApi(version1);
    const records: v1.Note[] = [];
    let start: number | undefined = 0;
    while (start !== undefined) {
      const page: v1.GetNotesResponse = await api.getNotes({ start, limit: LIMIT });
      records.push(...(page.data ?? []));
      start = page.additional_data?.pagination?.next_start;
    }
    finds(records, expected.notes);
    hasShape(records, shapes.note);
  });

  test("participants of every deal, page by page", async () => {
    const api = new v1.DealsApi(version1);
    const seen: v1.DealParticipantItem[] = [];
    for (const [id, personIds] of expected.participants) {
      const found: (number | undefined)[] = [];
      for (let start = 0; start === 0 || start < personIds.length; start += 2) {
        const { data } = await api.getDealParticipants({ id, start, limit: 2 });
        seen.push(...(data ?? []));
        found.push(...(data ?? []).map((item) => item.person_id?.value));
      }
      expect(found).toEqual(personIds);
    }
    hasShape(seen, shapes.participant);
    expect(seen.some((item) => item.id === item.person_id?.value)).toBe(false);
  });
});

test("the official OAuth class authorizes, refreshes and revokes", async () => {
  const { clientId, clientSecret, redirectUrl: redirectUri, url: host } = simulator;
  const oauth = new v2.OAuth2Configuration({ clientId, clientSecret, redirectUri, host });
  expect(oauth.authorizationUrl).toContain(`${host}/oauth/authorize?`);
  const first = await oauth.authorize(simulator.control.approve());
  const { access_token, refresh_token } = await oauth.tokenRefresh();
  expect(access_token).not.toBe(first.access_token);
  expect(refresh_token).not.toBe(first.refresh_token);
  // It takes the company's own address from the answer, as a client of the real CRM must; here that leads nowhere.
  expect(oauth.basePath).toBe("https://northwind-sales.pipedrive.com/api/v2");
  await oauth.revokeToken("refresh_token");
  await expect(oauth.tokenRefresh()).rejects.toMatchObject({ error: "invalid_grant" });
});
