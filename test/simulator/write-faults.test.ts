import type { Fault } from "../../simulator";
import { connect, type Reply, start, useClient, type WireRecord } from "./client";

const { simulator, client, clock, authorize } = useClient({ deals: 10 });

const story = () => simulator.company.stories.singleDeal;
const code = () => simulator.company.fields.deal.find((field) => field.is_custom_field)?.field_code ?? "";

interface Write {
  rule: { method: string; match: string | RegExp };
  send: () => Promise<Reply<{ data: WireRecord }>>;
  /** As a read shows it: how often the note is there, or the field's value. */
  seen: () => Promise<unknown>;
  before: unknown;
  after: unknown;
  done: number;
}

const writes: Record<"a note" | "a field", Write> = {
  "a note": {
    rule: { method: "POST", match: "/api/v1/notes" },
    send: () => client.send("POST", "/api/v1/notes", { content: "<p>Once</p>", deal_id: story().dealId }),
    seen: async () => {
      const notes = await client.list(`/api/v1/notes?deal_id=${story().dealId}&sort=add_time DESC`);
      return notes.filter(({ content }) => content === "<p>Once</p>").length;
    },
    before: 0,
    after: 1,
    done: 201,
  },
  "a field": {
    rule: { method: "PATCH", match: /^\/api\/v2\/deals\/\d+$/ },
    send: () => client.send("PATCH", `/api/v2/deals/${story().dealId}`, { custom_fields: { [code()]: "Once" } }),
    seen: async () => {
      const deal = await client.one<{ custom_fields: WireRecord }>(`/api/v2/deals/${story().dealId}`);
      return deal.custom_fields[code()];
    },
    before: null,
    after: "Once",
    done: 200,
  },
};

describe.each(Object.entries(writes))("%s", (_name, { rule, send, seen, before, after, done }) => {
  beforeEach(() => simulator.control.change("deal", story().dealId, { custom_fields: { [code()]: null } }));
  const fail = (fault: Fault) => simulator.control.fail({ ...rule, times: 1, with: fault });

  test.each<[string, Fault, number | "lost", boolean]>([
    ["reset before the effect", { kind: "reset" }, "lost", false],
    ["lost after the effect", { kind: "lostAfter" }, "lost", true],
    ["cut after the effect", { kind: "cut" }, "lost", true],
    ["500 before the effect", { status: 500 }, 500, false],
    ["503 page before the effect", { kind: "html", status: 503 }, 503, false],
    ["502 after the effect", { kind: "failAfter", status: 502 }, 502, true],
    ["429 before the effect", { kind: "throttle" }, 429, false],
    ["slow, with the effect", { kind: "delay", ms: 20 }, done, true],
    ["ignored with a good answer", { kind: "ignored" }, done, false],
  ])("%s", async (_title, fault, outcome, isDone) => {
    fail(fault);
    if (outcome === "lost") await expect(send()).rejects.toThrow();
    else expect((await send()).status).toBe(outcome);
    expect(await seen()).toEqual(isDone ? after : before);
    expect((await send()).status).toBe(done);
  });

  test("late without a time: there when it is released, once", async () => {
    fail({ kind: "late" });
    await expect(send()).rejects.toThrow("fetch failed");
    clock.advance(3_000);
    expect(await seen()).toEqual(before);
    expect(simulator.control.releaseLateEffects()).toBe(1);
    expect(await seen()).toEqual(after);
    expect(simulator.control.releaseLateEffects()).toBe(0);
    expect(await seen()).toEqual(after);
  });

  test("late by 90 seconds of the simulator's clock, whatever becomes of the token", async () => {
    fail({ kind: "late", ms: 90_000, status: 504 });
    expect((await send()).status).toBe(504);
    clock.advance(89);
    expect(await seen()).toEqual(before);
    simulator.control.killAccessTokens(story().ownerId);
    await authorize();
    clock.advance(1);
    expect(await seen()).toEqual(after);
  });

  test("hanging after the effect until the rule is gone", async () => {
    fail({ kind: "hangAfter" });
    const reply = send();
    while ((await seen()) !== after) await client.get("/api/v1/users/me");
    simulator.control.clearFaults();
    expect((await reply).status).toBe(done);
    expect(await seen()).toEqual(after);
  });

  test("a deal deleted or archived after the request came in", async () => {
    const { dealId } = story();
    fail({ kind: "meanwhile", act: () => simulator.control.archive(dealId) });
    expect((await send()).status).toBe(400);
    simulator.control.change("deal", dealId, { is_archived: false });
    fail({ kind: "meanwhile", act: () => simulator.control.remove("deal", dealId) });
    expect(await send()).toMatchObject({ status: 400, body: { code: "ERR_DEAL_DELETED" } });
    expect(await seen()).toEqual(before);
  });

  test("a late effect on a deal that is gone by then does nothing", async () => {
    fail({ kind: "late" });
    await expect(send()).rejects.toThrow("fetch failed");
    simulator.control.remove("deal", story().dealId);
    expect(simulator.control.releaseLateEffects()).toBe(1);
    expect(await seen()).toEqual(before);
  });

  test("a refusal is no effect: a late one is refused at once for the token, and leaves nothing held", async () => {
    simulator.control.killAccessTokens(story().ownerId);
    fail({ kind: "late" });
    expect((await send()).status).toBe(401);
    expect(simulator.control.releaseLateEffects()).toBe(0);
  });
});

test.each<[keyof typeof writes, () => unknown]>([
  ["a field", () => simulator.control.fieldsOf("deal", story().dealId)[code()]],
  [
    "a note",
    () => simulator.control.notesOf("deal", story().dealId).filter(({ content }) => /Once/.test(content)).length,
  ],
])("the control sees %s that is due, before any request does", async (name, seen) => {
  const { rule, send, after } = writes[name];
  simulator.control.fail({ ...rule, with: { kind: "late", ms: 90_000 } });
  await expect(send()).rejects.toThrow("fetch failed");
  expect(seen()).not.toEqual(after);
  clock.advance(90);
  expect(seen()).toEqual(after);
});

test("a value is kept and echoed as the rule says", async () => {
  simulator.control.fail({ ...writes["a field"].rule, with: { kind: "storedAs", value: "ONCE" } });
  const { body } = await writes["a field"].send();
  expect(body.data.custom_fields).toMatchObject({ [code()]: "ONCE" });
  expect(simulator.control.fieldsOf("deal", story().dealId)[code()]).toBe("ONCE");
  simulator.control.fail({ ...writes["a note"].rule, with: { kind: "storedAs", value: "<p>ONCE</p>" } });
  expect((await writes["a note"].send()).body.data.content).toBe("<p>ONCE</p>");
});

test("a value that does not fit is refused under every twist", async () => {
  const path = `/api/v2/deals/${story().dealId}`;
  for (const fault of [{ kind: "ignored" }, { kind: "storedAs", value: "x" }] as const) {
    const off = simulator.control.fail({ match: path, method: "PATCH", with: fault });
    expect((await client.send("PATCH", path, { custom_fields: { [code()]: 5 } })).status).toBe(400);
    off();
  }
});

test("a rule by chance hits the same requests for the same seed", async () => {
  const pattern = async (seed: number) => {
    const other = await start({ deals: 10, seed });
    const caller = await connect(other);
    other.control.fail({ match: "/api/v2/stages", chance: 0.5, with: { status: 500 } });
    const statuses: number[] = [];
    for (let call = 0; call < 24; call++) statuses.push((await caller.get("/api/v2/stages")).status);
    return statuses.join(" ");
  };
  const first = await pattern(3);
  expect(first).toContain("200");
  expect(first).toContain("500");
  expect(await pattern(3)).toBe(first);
  expect(await pattern(4)).not.toBe(first);
});
