import * as v1 from "pipedrive/v1";
import * as v2 from "pipedrive/v2";
import type { Simulator, Snapshot } from "../../simulator";
import { connect, idsOf, start, stopAll } from "./client";

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

type Kind = "number" | "string" | "boolean" | "object" | "array";

function kindOf(value: unknown): Kind | "null" {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as Kind);
}

/** The wire's members with their kinds; a trailing ? marks those that may be null. Nothing else may be there. */
function hasShape(records: readonly object[], shape: Record<string, `${Kind}${"" | "?"}`>): void {
  const found = new Set<string>();
  for (const record of records) {
    expect(Object.keys(record).sort()).toEqual(Object.keys(shape).sort());
    for (const [name, value] of Object.entries(record)) {
      const kind = kindOf(value);
      const rule = shape[name] ?? "";
      if (kind !== "null" || !rule.endsWith("?"))
        found.add(`${name}: ${kind === rule.replace("?", "") ? "as on the wire" : kind}`);
    }
  }
  expect([...found].filter((line) => !line.endsWith("as on the wire"))).toEqual([]);
}

describe("version 2", () => {
  test("organizations", async () => {
    const api = new v2.OrganizationsApi(version2);
    const records = await all((cursor) => api.getOrganizations({ limit: LIMIT, cursor }));
    finds(records, expected.organizations);
    hasShape(records, {
      id: "number",
      name: "string",
      owner_id: "number",
      add_time: "string",
      update_time: "string",
      address: "object?",
      is_deleted: "boolean",
      visible_to: "number",
      label_ids: "array",
      website: "string?",
      linkedin: "string?",
      industry: "number?",
      annual_revenue: "number?",
      employee_count: "number?",
      custom_fields: "object",
    });
  });

  test("persons", async () => {
    const api = new v2.PersonsApi(version2);
    const records = await all((cursor) => api.getPersons({ limit: LIMIT, cursor }));
    finds(records, expected.persons);
    hasShape(records, {
      id: "number",
      name: "string",
      first_name: "string?",
      last_name: "string?",
      owner_id: "number",
      org_id: "number?",
      add_time: "string",
      update_time: "string",
      emails: "array",
      phones: "array",
      is_deleted: "boolean",
      visible_to: "number",
      label_ids: "array",
      picture_id: "number?",
      postal_address: "object?",
      notes: "string?",
      im: "array",
      birthday: "string?",
      job_title: "string?",
      custom_fields: "object",
    });
  });

  const dealShape = {
    id: "number",
    title: "string",
    creator_user_id: "number",
    owner_id: "number",
    person_id: "number?",
    org_id: "number?",
    pipeline_id: "number",
    stage_id: "number",
    value: "number",
    currency: "string",
    add_time: "string",
    update_time: "string",
    stage_change_time: "string?",
    status: "string",
    is_deleted: "boolean",
    is_archived: "boolean",
    archive_time: "string?",
    probability: "number?",
    lost_reason: "string?",
    visible_to: "number",
    close_time: "string?",
    won_time: "string?",
    lost_time: "string?",
    local_won_date: "string?",
    local_lost_date: "string?",
    local_close_date: "string?",
    expected_close_date: "string?",
    label_ids: "array",
    origin: "string",
    origin_id: "string?",
    channel: "number?",
    channel_id: "string?",
    acv: "number?",
    arr: "number?",
    mrr: "number?",
    custom_fields: "object",
  } as const;

  test("deals, with the optional fields", async () => {
    const api = new v2.DealsApi(version2);
    // The client's type takes one name, its code passes on whatever text it is given.
    const include_fields = "last_incoming_mail_time,last_outgoing_mail_time,participants_count" as "participants_count";
    const records = await all((cursor) => api.getDeals({ limit: LIMIT, cursor, include_fields }));
    finds(records, expected.deals);
    hasShape(records, {
      ...dealShape,
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
    hasShape(deleted, dealShape);
    expect(deleted.every((deal) => deal.is_deleted && deal.status === "deleted")).toBe(true);
    const archived = await all((cursor) => api.getArchivedDeals({ limit: LIMIT, cursor }));
    expect(archived.length).toBeGreaterThan(0);
    hasShape(archived, dealShape);
    expect(archived.every((deal) => deal.is_archived)).toBe(true);
  });

  test("pipelines and stages", async () => {
    const pipelines = new v2.PipelinesApi(version2);
    const records = await all((cursor) => pipelines.getPipelines({ limit: 1, cursor }));
    finds(records, expected.pipelines);
    hasShape(records, {
      id: "number",
      name: "string",
      order_nr: "number",
      is_deleted: "boolean",
      is_deal_probability_enabled: "boolean",
      add_time: "string",
      update_time: "string?",
    });
    const stages = new v2.StagesApi(version2);
    const found = await all((cursor) => stages.getStages({ limit: 2, cursor }));
    finds(found, expected.stages);
    hasShape(found, {
      id: "number",
      order_nr: "number",
      name: "string",
      is_deleted: "boolean",
      deal_probability: "number",
      pipeline_id: "number",
      is_deal_rot_enabled: "boolean",
      days_to_rotten: "number?",
      add_time: "string",
      update_time: "string?",
    });
  });

  test("activities", async () => {
    const api = new v2.ActivitiesApi(version2);
    const records = await all((cursor) => api.getActivities({ limit: 50, cursor }));
    finds(records, expected.activities);
    hasShape(records, {
      id: "number",
      subject: "string",
      type: "string",
      owner_id: "number",
      creator_user_id: "number",
      is_deleted: "boolean",
      add_time: "string",
      update_time: "string",
      deal_id: "number?",
      lead_id: "string?",
      person_id: "number?",
      org_id: "number?",
      project_id: "number?",
      due_date: "string?",
      due_time: "string",
      duration: "string",
      busy: "boolean",
      done: "boolean",
      marked_as_done_time: "string?",
      location: "object?",
      participants: "array",
      conference_meeting_client: "string?",
      conference_meeting_url: "string?",
      conference_meeting_id: "string?",
      public_description: "string?",
      priority: "number?",
      note: "string?",
    });
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
    const shape = {
      id: "number",
      name: "string",
      default_currency: "string",
      locale: "string",
      lang: "number",
      email: "string",
      phone: "string?",
      activated: "boolean",
      last_login: "string",
      created: "string",
      modified: "string?",
      has_created_company: "boolean",
      access: "array",
      active_flag: "boolean",
      timezone_name: "string",
      timezone_offset: "string",
      role_id: "number",
      icon_url: "string?",
      is_you: "boolean",
      is_deleted: "boolean",
      is_admin: "number",
    } as const;
    hasShape(users, shape);
    expect(users.filter((user) => user.is_you)).toHaveLength(1);
    const me = (await api.getCurrentUser()).data ?? {};
    hasShape([me], {
      ...shape,
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
    hasShape(records, {
      id: "number",
      user_id: "number",
      deal_id: "number?",
      person_id: "number?",
      org_id: "number?",
      lead_id: "string?",
      project_id: "number?",
      task_id: "number?",
      content: "string",
      add_time: "string",
      update_time: "string",
      active_flag: "boolean",
      pinned_to_lead_flag: "boolean",
      pinned_to_deal_flag: "boolean",
      pinned_to_organization_flag: "boolean",
      pinned_to_person_flag: "boolean",
      pinned_to_project_flag: "boolean",
      pinned_to_task_flag: "boolean",
      last_update_user_id: "number?",
      deal: "object?",
      person: "object?",
      organization: "object?",
      project: "object?",
      task: "object?",
      user: "object",
    });
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
    hasShape(seen, {
      id: "number",
      person_id: "object",
      add_time: "string",
      active_flag: "boolean",
      related_item_data: "object",
      person: "object",
      added_by_user_id: "object",
      related_item_type: "string",
      related_item_id: "number",
    });
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
