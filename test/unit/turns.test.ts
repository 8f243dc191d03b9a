import { EventEmitter } from "node:events";
import { TenantTurns } from "../../src/server/limits";

const WAITING = { ofUser: 5, ofTenant: 5 };

test("a tenant's operations beyond its turns wait, those beyond the waiting are refused, and other tenants are not held up", async () => {
  const turns = new TenantTurns(2, { ofUser: 1, ofTenant: 2 });
  const first = await turns.take(1, "anna");
  const second = await turns.take(1, "anna");
  let third: (() => void) | null = null;
  const waiting = turns.take(1, "anna").then((release) => {
    third = release;
  });
  await expect(turns.take(1, "anna")).rejects.toMatchObject({ extensions: { code: "TOO_MANY_OPERATIONS" } });
  (await turns.take(2, "anna"))();
  expect(third).toBeNull();
  first();
  await waiting;
  second();
  expect(third).not.toBeNull();
});

// Seen red: one member's two hundred large queries held up every large one of their colleagues, until each had run.
test("the users of a tenant take turns, and who has as many waiting as one may have takes no colleague's place", async () => {
  const turns = new TenantTurns(1, { ofUser: 2, ofTenant: 3 });
  const begun: string[] = [];
  const take = (userId: string) => turns.take(1, userId).then((release) => ({ release, at: begun.push(userId) }));
  const now = await take("anna");
  const waiting = ["anna", "anna"].map(take);
  await expect(take("anna")).rejects.toMatchObject({ extensions: { code: "TOO_MANY_OPERATIONS" } });
  waiting.push(take("ben"));
  await expect(take("cara")).rejects.toMatchObject({ extensions: { code: "TOO_MANY_OPERATIONS" } });
  now.release();
  for (const one of waiting) void one.then(({ release }) => release());
  await Promise.all(waiting);
  expect(begun).toEqual(["anna", "anna", "ben", "anna"]);
});

test("after a heavy operation the tenant's next one rests, nobody else's does, and where nobody else asks there is no rest", async () => {
  let rested: () => void = () => undefined;
  let isAnyoneElse = true;
  const rest = (tenant: number) =>
    tenant === 1 && isAnyoneElse ? new Promise<void>((resolve) => (rested = resolve)) : null;
  const turns = new TenantTurns(1, WAITING, rest);
  const begun: string[] = [];
  const take = async (name: string, tenant = 1) => {
    const release = await turns.take(tenant, "anna");
    begun.push(name);
    return release;
  };
  const first = await take("first");
  const [second, third] = [take("second"), take("third")];
  first();
  (await take("other", 2))();
  expect(begun).toEqual(["first", "other"]);
  rested();
  const release = await second;
  expect(begun).toEqual(["first", "other", "second"]);
  isAnyoneElse = false;
  release();
  (await third)();
  expect(begun).toEqual(["first", "other", "second", "third"]);
});

// Seen red: a queue was as long as its bounds allowed, whatever was waited for: two hundred large queries of a user took minutes, and
// a client that had given up after half of one was served all the same.
test("who has waited for so long, or has gone, is refused and holds no place; the others are served in their order", async () => {
  const turns = new TenantTurns(1, { ofUser: 2, ofTenant: 2 });
  const refusal = { extensions: { code: "TOO_MANY_OPERATIONS" } };
  const first = await turns.take(1, "anna");
  await expect(turns.take(1, "anna", 1)).rejects.toMatchObject(refusal);
  const client = new EventEmitter();
  const gone = turns.take(1, "anna", 60_000, client);
  const begun: string[] = [];
  const take = (name: string) =>
    turns.take(1, "anna", 60_000, client).then((release) => ({ release, at: begun.push(name) }));
  const stays = turns.take(1, "anna", 60_000).then((release) => ({ release, at: begun.push("stays") }));
  await expect(turns.take(1, "anna")).rejects.toMatchObject(refusal);
  client.emit("close");
  await expect(gone).rejects.toMatchObject(refusal);
  const next = take("next");
  first();
  (await stays).release();
  const { release } = await next;
  expect(begun).toEqual(["stays", "next"]);
  expect(client.listenerCount("close")).toBe(0);
  release();
  (await turns.take(1, "ben"))();
});
