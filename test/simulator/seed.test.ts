import { type Company, startSimulator } from "../../simulator";
import { BadArguments, optionsFrom } from "../../simulator/arguments";
import { seedCompany } from "../../simulator/seed/seed-company";
import { START } from "./client";

function company(deals: number, seed = 1, openPercent = 50): Company {
  return seedCompany({ deals, openPercent, seed, now: START, company: { id: 1, name: "Acme", domain: "acme" } });
}

const asText = (value: Company) =>
  JSON.stringify(value, (_key, item) => (item instanceof Map ? [...item.entries()] : item));

const dealsOf = ({ deals, participants }: Company, personId: number) =>
  [...deals.values()].filter(
    (deal) => deal.person_id === personId || participants.get(deal.id)?.some((link) => link.personId === personId),
  );

test("the same seed and instant give the same company, another seed gives another", () => {
  expect(asText(company(200))).toBe(asText(company(200)));
  expect(asText(company(200, 2))).not.toBe(asText(company(200)));
});

test("the size is what was asked for, the rest in proportion", () => {
  const made = company(1_000);
  expect(made.deals.size).toBe(1_000);
  expect(made.organizations.size).toBe(400);
  expect(made.persons.size).toBe(1_000);
  expect(made.activities.size).toBe(2_500);
  expect(made.notes.size).toBe(1_000);
  expect(made.users.size).toBeGreaterThanOrEqual(6);
  expect(made.users.size).toBeLessThanOrEqual(12);
});

test.each([0, 10, 20, 96])("%i in a hundred deals are open; how many take part in them stays as it was", (percent) => {
  const half = company(2_000);
  const made = company(2_000, 1, percent);
  const open = [...made.deals.values()].filter(({ status }) => status === "open").length;
  expect(Math.abs(open - 20 * percent)).toBeLessThan(60);
  const shares = ({ deals, participants }: Company) => {
    const counts = [...deals.keys()].map((id) => participants.get(id)?.length ?? 0);
    return [0, 1, 2, 3, 4, 5].map((wanted) => counts.filter((count) => count === wanted).length);
  };
  for (const [index, count] of shares(made).entries())
    expect(Math.abs(count - (shares(half)[index] ?? 0))).toBeLessThan(100);
});

describe.each([
  [10, 1],
  [10, 7],
  [11, 3],
  [500, 2],
])("the stories of %i deals with seed %i", (deals, seed) => {
  const made = company(deals, seed);
  const { stories } = made;
  const person = (id: number) => made.persons.get(id) ?? fail(`no person ${id}`);
  const deal = (id: number) => made.deals.get(id) ?? fail(`no deal ${id}`);
  const onlyDeals = (personId: number, ids: number[]) =>
    expect(dealsOf(made, personId).map(({ id }) => id)).toEqual(ids);

  test("one person on one open deal with everything", () => {
    const story = stories.singleDeal;
    expect(deal(story.dealId)).toMatchObject({
      status: "open",
      person_id: story.personId,
      org_id: story.orgId,
      owner_id: story.ownerId,
      stage_id: story.stageId,
      pipeline_id: story.pipelineId,
      value: 48250.75,
    });
    expect(made.stages.get(story.stageId)?.pipeline_id).toBe(story.pipelineId);
    for (const id of story.participantIds) onlyDeals(id, [story.dealId]);
    expect(made.participants.get(story.dealId)?.map((link) => link.personId)).toEqual(story.participantIds);
    const done = made.activities.get(story.doneActivityId);
    const ago = START.getTime() - Date.parse(done?.marked_as_done_time ?? "");
    expect(ago).toBeLessThan(3 * 86_400_000);
    expect(made.activities.get(story.plannedActivityId)).toMatchObject({ done: false, deal_id: story.dealId });
    expect(made.notes.get(story.noteId)?.deal_id).toBe(story.dealId);
    expect(person(story.personId).emails[0]?.value).toBe(story.email);
  });

  test("one person on two open deals of different owners", () => {
    const { personId, dealIds, ownerIds } = stories.severalDeals;
    onlyDeals(personId, dealIds);
    expect(dealIds.map((id) => deal(id).status)).toEqual(["open", "open"]);
    expect(dealIds.map((id) => deal(id).owner_id)).toEqual(ownerIds);
    expect(ownerIds[0]).not.toBe(ownerIds[1]);
  });

  test("two persons with one address, and addresses that no one else has", () => {
    const holders = (email: string) =>
      [...made.persons.values()]
        .filter((one) => one.emails.some(({ value }) => value.trim().toLowerCase() === email))
        .map(({ id }) => id);
    expect(holders(stories.sharedAddress.email)).toEqual(stories.sharedAddress.personIds);
    for (const id of stories.sharedAddress.personIds) onlyDeals(id, []);
    for (const { email, personId } of [
      stories.singleDeal,
      stories.severalDeals,
      stories.freeMail,
      stories.ghosted,
      stories.secondaryAddress,
      stories.noParticipants,
    ]) {
      expect(holders(email)).toEqual([personId]);
    }
  });

  test("free mail, a secondary address in odd form, a deal without participants", () => {
    expect(stories.freeMail.email).toMatch(/@gmail\.com$/);
    onlyDeals(stories.freeMail.personId, [stories.freeMail.dealId]);
    const { storedEmail, email, personId, dealId } = stories.secondaryAddress;
    expect(person(personId).emails[1]).toMatchObject({ value: storedEmail, primary: false });
    expect(storedEmail).not.toBe(email);
    expect(storedEmail.trim().toLowerCase()).toBe(email);
    onlyDeals(personId, [dealId]);
    expect(made.participants.get(stories.noParticipants.dealId) ?? []).toEqual([]);
  });

  test("we wrote last, long after their last mail, and nothing happened since", () => {
    const { dealId, personId } = stories.ghosted;
    const { last_incoming_mail_time: incoming, last_outgoing_mail_time: outgoing } = person(personId);
    const days = (Date.parse(outgoing ?? "") - Date.parse(incoming ?? "")) / 86_400_000;
    expect(days).toBeGreaterThan(14);
    const done = [...made.activities.values()].filter((activity) => activity.deal_id === dealId);
    expect(done.every((activity) => activity.done && (activity.marked_as_done_time ?? "") < (incoming ?? ""))).toBe(
      true,
    );
    expect(deal(dealId).status).toBe("open");
  });

  test("every story is visible to every user", () => {
    for (const id of [stories.singleDeal.dealId, ...stories.severalDeals.dealIds, stories.ghosted.dealId]) {
      expect(deal(id).visible_to).toBe(7);
    }
  });
});

test("the data has the cases that trip clients up", () => {
  const made = company(2_000);
  const persons = [...made.persons.values()];
  const deals = [...made.deals.values()];
  const activities = [...made.activities.values()];
  const some = <T>(items: readonly T[], test: (item: T) => unknown) =>
    expect(items.some((item) => test(item))).toBe(true);
  some(persons, ({ emails }) => emails.length > 1);
  some(persons, ({ emails }) => emails.length === 0);
  some(persons, ({ emails }) => emails.some(({ value }) => value === ""));
  some(persons, ({ emails }) => emails.some(({ value }) => value !== value.trim()));
  some(persons, ({ emails }) => emails.some(({ value }) => value !== value.toLowerCase()));
  some(persons, ({ org_id }) => org_id === null);
  some(persons, ({ name }) => /[^\x20-\x7e]/.test(name));
  for (const status of ["open", "won", "lost", "deleted"]) some(deals, (deal) => deal.status === status);
  some(deals, (deal) => deal.is_archived);
  some(deals, (deal) => deal.person_id === null);
  some(deals, (deal) => deal.org_id === null);
  some(deals, (deal) => deal.stage_change_time === null);
  some(deals, (deal) => (deal.expected_close_date ?? "9") < "2026-11-20" && deal.status === "open");
  some(activities, (activity) => activity.due_time === "");
  some(activities, (activity) => !activity.done && (activity.due_date ?? "") < "2026-11-19");
  some(activities, (activity) => !activity.done && (activity.due_date ?? "") > "2026-11-21");
  expect(new Set(deals.map((deal) => deal.currency)).size).toBeGreaterThan(3);
  expect(new Set([...made.participants.values()].map((links) => links.length))).toEqual(new Set([1, 2, 3, 4, 5]));
  expect([...made.users.values()].filter((user) => !user.active_flag)).toHaveLength(1);
  expect([...made.users.values()].filter((user) => user.is_admin === 1)).toHaveLength(1);
  const newest =
    activities
      .map(({ update_time }) => update_time)
      .sort()
      .at(-1) ?? "";
  expect(newest > "2026-11-18T00:00:00Z" && newest <= "2026-11-20T10:00:00Z").toBe(true);
});

test("every type of custom field is there, and each is filled somewhere", () => {
  const made = company(2_000);
  const tables = { deal: made.deals, person: made.persons, organization: made.organizations };
  for (const entity of ["deal", "person", "organization"] as const) {
    const custom = made.fields[entity].filter((field) => field.is_custom_field);
    expect(new Set(custom.map((field) => field.field_type)).size).toBe(17);
    for (const { field_code: code } of custom) {
      expect([...tables[entity].values()].some(({ custom_fields }) => (custom_fields?.[code] ?? null) !== null)).toBe(
        true,
      );
    }
  }
});

test("sizes out of range and bad arguments are refused with a reason", async () => {
  await expect(startSimulator({ deals: 9 })).rejects.toThrow("deals must be a whole number from 10 to 100000");
  expect(optionsFrom(["--deals", "20", "--seed", "3", "--port", "0"])).toMatchObject({ deals: 20, seed: 3, port: 0 });
  expect([optionsFrom([]).help, optionsFrom(["--help"]).help]).toEqual([false, true]);
  for (const args of [["--deals", "9"], ["--port", "x"], ["--nope"], ["--redirect-url", "nope"]]) {
    expect(() => optionsFrom(args)).toThrow(BadArguments);
  }
});

function fail(message: string): never {
  throw new Error(message);
}
