import type { Simulator } from "../../simulator";
import {
  type Client,
  type CursorPage,
  connect,
  idsOf,
  type OffsetPage,
  START,
  start,
  stopAll,
  TestClock,
  type WireRecord,
} from "./client";

let simulator: Simulator;
let client: Client;
let adminId: number;

beforeAll(async () => {
  simulator = await start({ deals: 120 });
  adminId = [...simulator.company.users.values()].find((user) => user.is_admin === 1)?.id ?? 0;
  client = await connect(simulator, adminId);
});
afterAll(stopAll);

describe("what version 2 refuses", () => {
  test.each([
    ["/api/v2/stages?updated_since=2026-01-01T00:00:00Z"],
    ["/api/v2/pipelines?updated_since=2026-01-01T00:00:00Z"],
    ["/api/v2/deals?updated_since=2026-01-01T00:00:00.000Z"],
    ["/api/v2/deals?updated_since=2026-01-01"],
    ["/api/v2/deals?updated_since=2026-13-01T00:00:00Z"],
    ["/api/v2/persons?limit=501"],
    ["/api/v2/persons?limit=0"],
    ["/api/v2/persons?limit=x"],
    ["/api/v2/persons?limit=1&limit=2"],
    ["/api/v2/persons?include_fields=participants_count"],
    ["/api/v2/organizations?include_fields=last_incoming_mail_time"],
    ["/api/v2/deals?status=open,closed"],
    ["/api/v2/deals?sort_by=title"],
    ["/api/v2/deals?sort_direction=up"],
    ["/api/v2/deals?owner_id=me"],
    [`/api/v2/deals?ids=${Array.from({ length: 101 }, (_, index) => index + 1).join(",")}`],
    ["/api/v2/deals?custom_fields=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"],
    ["/api/v2/deals?include_deleted=true"],
    ["/api/v2/deals/archived?include_option_labels=true"],
    ["/api/v2/activities?done=1"],
    ["/api/v2/deals?cursor=garbage"],
    ["/api/v1/notes?limit=501"],
    ["/api/v1/notes?updated_since=2026-01-01T00:00:00.5Z"],
    ["/api/v1/notes?sort=title"],
  ])("%s", async (path) => {
    const { status, body } = await client.get(path);
    expect(status).toBe(400);
    expect(body).toEqual({
      success: false,
      error: expect.stringMatching(/^Validation failed: /),
      code: "ERR_SCHEMA_VALIDATION_FAILED",
    });
  });

  test("a cursor of another order", async () => {
    const { body } = await client.get<CursorPage>("/api/v2/deals?limit=2");
    const cursor = body.additional_data.next_cursor;
    expect((await client.get(`/api/v2/deals?limit=2&cursor=${cursor}`)).status).toBe(200);
    expect((await client.get(`/api/v2/deals?limit=2&sort_by=update_time&cursor=${cursor}`)).status).toBe(400);
  });

  test("unknown routes with 404, other methods with 405, both in JSON and in the log", async () => {
    simulator.log.clear();
    expect((await client.get("/api/v2/leads")).status).toBe(404);
    const headers = { authorization: `Bearer ${client.accessToken}`, "content-type": "application/json" };
    const put = await fetch(`${simulator.url}/api/v1/notes`, { method: "PUT", headers, body: '{"content":"x"}' });
    expect(put.status).toBe(405);
    expect(await put.json()).toMatchObject({ success: false, errorCode: 405 });
    const remove = await fetch(`${simulator.url}/api/v2/deals/1`, { method: "DELETE", headers });
    expect(remove.status).toBe(405);
    expect(simulator.log.all().map(({ method, path, status }) => `${method} ${path} ${status}`)).toEqual([
      "GET /api/v2/leads 404",
      "PUT /api/v1/notes 405",
      "DELETE /api/v2/deals/1 405",
    ]);
    expect(simulator.log.of("PUT", "/api/v1/notes")[0]?.userId).toBe(adminId);
  });
});

describe("cursors", () => {
  test.each(["", "&sort_by=update_time", "&sort_by=add_time&sort_direction=desc", "&sort_direction=desc"])(
    "a walk gives each record once, in order (%s)",
    async (sort) => {
      const records = await client.walk(`/api/v2/persons?limit=7${sort}`);
      const expected = simulator.control.visibleTo(adminId).persons;
      expect(idsOf(records).sort()).toEqual(idsOf(expected).sort());
      const field = /sort_by=(\w+)/.exec(sort)?.[1] ?? "id";
      const values = records.map((record) => record[field] as string);
      const sorted = [...values].sort((left, right) => (left < right ? -1 : left > right ? 1 : 0));
      expect(values).toEqual(sort.includes("desc") ? sorted.reverse() : sorted);
    },
  );

  test("the last page has a null cursor, full or not", async () => {
    const count = simulator.control.visibleTo(adminId).stages.length;
    const { body } = await client.get<CursorPage>(`/api/v2/stages?limit=${count}`);
    expect(body.data).toHaveLength(count);
    expect(body.additional_data).toEqual({ next_cursor: null });
  });
});

describe("offsets of version 1", () => {
  test("next_start is there only when more follows, and an empty page is null", async () => {
    const total = simulator.control.visibleTo(adminId).notes.length;
    const notes = (query: string) => client.get<OffsetPage>(`/api/v1/notes?${query}`);
    const first = await notes("limit=10");
    expect(first.body.additional_data.pagination).toEqual({
      start: 0,
      limit: 10,
      more_items_in_collection: true,
      next_start: 10,
    });
    const last = await notes(`limit=10&start=${total - 1}`);
    expect(last.body.data).toHaveLength(1);
    expect(last.body.additional_data.pagination).toEqual({
      start: total - 1,
      limit: 10,
      more_items_in_collection: false,
    });
    const full = await notes(`limit=${total}`);
    expect(full.body.additional_data.pagination).not.toHaveProperty("next_start");
    expect((await notes(`start=${total}`)).body.data).toBeNull();
  });

  test("users ignore paging and name the company", async () => {
    const { body } = await client.get<{ data: object[]; additional_data: object }>("/api/v1/users?start=3&limit=1");
    expect(body.data).toHaveLength(simulator.company.users.size);
    expect(body.additional_data).toEqual({ company_id: simulator.company.id });
    expect((await client.one("/v1/users/me")).company_domain).toBe("northwind-sales");
    expect((await client.get("/api/v1/users/5")).body).toEqual({
      success: false,
      error: "User not found or not accessible.",
    });
  });
});

describe("fields and times", () => {
  test("mail times and counts are absent unless asked for", async () => {
    const optional = ["last_incoming_mail_time", "last_outgoing_mail_time", "participants_count"];
    const { dealId } = simulator.company.stories.singleDeal;
    const plain = await client.one(`/api/v2/deals/${dealId}`);
    for (const name of optional) expect(plain).not.toHaveProperty(name);
    const [asked] = await client.list(`/api/v2/deals?ids=${dealId}&include_fields=${optional.join(",")}`);
    expect(asked?.participants_count).toBe(2);
    expect(asked?.last_incoming_mail_time).toMatch(/Z$/);
    const [person] = await client.list("/api/v2/persons?limit=1");
    for (const name of optional) expect(person).not.toHaveProperty(name);
    const [activity] = await client.list("/api/v2/activities?limit=1");
    expect(activity).not.toHaveProperty("attendees");
    const [attended] = await client.list("/api/v2/activities?limit=1&include_fields=attendees");
    expect(attended?.attendees).toHaveLength(1);
  });

  test("the counts are the company's", async () => {
    const { dealId, personId, orgId, plannedActivityId } = simulator.company.stories.singleDeal;
    const names = "activities_count,undone_activities_count,notes_count,next_activity_id";
    const deal = await client.one(`/api/v2/deals/${dealId}?include_fields=${names}`);
    expect(deal).toMatchObject({
      activities_count: 2,
      undone_activities_count: 1,
      notes_count: 1,
      next_activity_id: plannedActivityId,
    });
    const person = await client.one(`/api/v2/persons/${personId}?include_fields=open_deals_count,closed_deals_count`);
    expect(person).toMatchObject({ open_deals_count: 1, closed_deals_count: 0 });
    const org = await client.one(`/api/v2/organizations/${orgId}?include_fields=people_count`);
    expect(org.people_count).toBe(2);
  });

  test("version 2 has RFC 3339 without a fraction, version 1 has blanks", async () => {
    const [deal] = await client.list("/api/v2/deals?limit=1");
    expect(deal?.add_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const [note] = await client.list("/api/v1/notes?limit=1");
    expect(note?.add_time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  });

  test("custom fields have every key, can be narrowed, and can carry labels", async () => {
    const fields = simulator.company.fields.deal.filter((field) => field.is_custom_field);
    const segment = fields.find((field) => field.field_type === "enum");
    const code = segment?.field_code ?? "";
    const id = segment?.options?.[1]?.id ?? 0;
    const dealId = simulator.control.add("deal", {
      custom_fields: { ...simulator.company.emptyCustomFields.deal, [code]: id },
    });
    const customFields = async (query: string) =>
      (await client.one<{ custom_fields: WireRecord }>(`/api/v2/deals/${dealId}${query}`)).custom_fields;
    expect(Object.keys(await customFields("")).sort()).toEqual(fields.map((field) => field.field_code).sort());
    expect(await customFields(`?custom_fields=${code}`)).toEqual({ [code]: id });
    const labelled = await customFields(`?custom_fields=${code}&include_option_labels=true`);
    expect(labelled).toEqual({ [code]: { id, label: "Small business" } });
    simulator.control.remove("deal", dealId);
  });

  test("updated_since includes its instant, updated_until does not, and zones are understood", async () => {
    const clock = new TestClock();
    const other = await start({ deals: 10, now: clock.now });
    const reader = await connect(other);
    clock.advance(100);
    other.control.change("person", other.company.stories.freeMail.personId, { job_title: "CEO" });
    const found = async (query: string) => idsOf(await reader.list(`/api/v2/persons?${query}`));
    const expected = [other.company.stories.freeMail.personId];
    expect(await found("updated_since=2026-11-20T10:01:40Z")).toEqual(expected);
    expect(await found("updated_since=2026-11-20T12:01:40%2B02:00")).toEqual(expected);
    expect(await found("updated_since=2026-11-20T10:01:41Z")).toEqual([]);
    expect(await found("updated_since=2026-11-20T10:01:40Z&updated_until=2026-11-20T10:01:40Z")).toEqual([]);
    other.control.change("note", other.company.stories.singleDeal.noteId, { content: "<p>new</p>" });
    const notes = await reader.list("/api/v1/notes?updated_since=2026-11-20T10:01:40Z");
    expect(idsOf(notes)).toEqual([other.company.stories.singleDeal.noteId]);
  });

  test("every answer carries the clock, the limits and the cookies", async () => {
    const { headers } = await client.get("/api/v2/deals?limit=1");
    expect(headers.get("date")).toBe(START.toUTCString());
    expect(headers.get("x-correlation-id")).toMatch(/^[0-9a-f-]{36}$/);
    for (const name of ["limit", "remaining", "reset"])
      expect(Number(headers.get(`x-ratelimit-${name}`))).toBeGreaterThan(0);
    expect(headers.get("set-cookie")).toContain("pipedrive-cdl=");
  });
});

test("field lists page and answer by code", async () => {
  for (const entity of ["deal", "person", "organization"] as const) {
    const fields = await client.walk(`/api/v2/${entity}Fields?limit=7`);
    expect(fields.map((field) => field.field_code)).toEqual(
      simulator.company.fields[entity].map((field) => field.field_code),
    );
    const code = fields.find((field) => field.is_custom_field)?.field_code;
    expect(code).toMatch(/^[0-9a-f]{40}$/);
    const single = await client.one(`/api/v2/${entity}Fields/${code}?include_fields=required_fields`);
    expect(single).toMatchObject({ field_code: code, required_fields: { enabled: false } });
    expect((await client.get(`/api/v2/${entity}Fields/nope`)).status).toBe(404);
  }
});
