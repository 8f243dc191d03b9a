import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import type { ActorClaims } from "../support/actors";
import { askRaw } from "../support/http";
import { coordinates, operation } from "../support/schema-walk";
import { subscribe } from "../support/sockets";
import { until } from "../support/stories";
import {
  type CursorRow,
  eventsOf,
  type IdRow,
  type NameRow,
  type OperationRow,
  tenancyRows,
} from "../support/tenancy-rows";
import {
  ASKING,
  idOf,
  MARK,
  malformedIds,
  ONE_OF_TENANT,
  OTHER,
  rowsOfOthers,
  startTenants,
  unknownId,
} from "../support/tenants";
import { useStarted } from "../support/world";

// Seen red with: an operation without a row; ids of another copy accepted; another message for a foreign target;
// another tenant's cursor accepted; every receipt shown to members; every tenant's subscribers woken; with the row
// policies off, a disconnect that deletes every tenant's tokens.

const schema = buildGraphQLSchema();
const table = tenancyRows(schema);
const all = coordinates(schema);

const DEEP = process.env.DEEP === "1";
jest.setTimeout(120_000);
const ROLES = ["owner", "admin", "member"];
const PLANS = ["sales", "free"];
/** Each asks as another user than the one whose receipts are there. */
const ACTORS = ROLES.flatMap((role) => PLANS.map((plan): ActorClaims => ({ role, plan, sub: `${role}-${plan}` })));
const MEMBER: ActorClaims = { role: "member", plan: "sales", sub: "mia" };

const tenants = useStarted(startTenants);

type Kind = "Query" | "Mutation" | "Subscription";
interface Place<R> {
  name: string;
  kind: Kind;
  field: string;
  row: R;
}

function places<R extends { kind: string }>(kind: R["kind"]): Place<R>[] {
  return all.flatMap((name) => {
    const [, root, field] = /^(\w+)\.(\w+)/.exec(name) ?? [];
    const rows = (table.get(name) ?? []).filter((row) => row.kind === kind);
    return rows.map((row) => ({ name, kind: root as Kind, field: field ?? "", row: row as unknown as R }));
  });
}

const ofKind = (kind: Kind) => (place: { kind: Kind }) => place.kind === kind;

async function ask(place: Place<unknown>, args: Record<string, unknown>, as: ActorClaims, of?: string) {
  const query = operation(schema, place.kind, place.field, Object.keys(args), of);
  return askRaw(tenants.service.url, { query, variables: args }, as);
}

const own = (tenant = "acme") => ({ meeting: tenants.meetingOf(tenant), deal: tenants.ids.own.Deal ?? "" });
const narrowed = ({ field, row }: Place<IdRow>) => (field === "node" ? row.type : undefined);
const askId = (place: Place<IdRow>, id: string, as: ActorClaims = {}) =>
  ask(place, place.row.args(id, own(as.tenant)), as, narrowed(place));

const UNMATCHED: Record<string, string> = {
  Deal: "NOT EXISTS (SELECT 1 FROM matched_record m WHERE m.tenant_id = t.tenant_id AND (m.copy_id, m.entity, m.crm_id) = (t.copy_id, 'DEAL', t.crm_id))",
  Person:
    "NOT EXISTS (SELECT 1 FROM matched_record m WHERE m.tenant_id = t.tenant_id AND (m.copy_id, m.entity, m.crm_id) = (t.copy_id, 'PERSON', t.crm_id))",
  Organization:
    "NOT EXISTS (SELECT 1 FROM matched_record m WHERE m.tenant_id = t.tenant_id AND (m.copy_id, m.entity, m.crm_id) = (t.copy_id, 'ORGANIZATION', t.crm_id))",
  Activity:
    "NOT EXISTS (SELECT 1 FROM matched_record m WHERE m.tenant_id = t.tenant_id AND m.copy_id = t.copy_id AND m.crm_id IN (t.deal_id, t.person_id, t.organization_id))",
  Note: "NOT EXISTS (SELECT 1 FROM matched_record m WHERE m.tenant_id = t.tenant_id AND m.copy_id = t.copy_id AND m.crm_id IN (t.deal_id, t.person_id, t.organization_id))",
};

async function unmatchedId(type: string): Promise<string | null> {
  const where = UNMATCHED[type];
  if (!where) return null;
  const copyId = tenants.copyOf("acme");
  const [row] = await tenants.database.query<{ crm_id: number }>(
    `SELECT crm_id FROM ${type.toLowerCase()} t WHERE copy_id = $1 AND ${where} ORDER BY crm_id LIMIT 1`,
    [copyId],
  );
  if (!row) throw new Error(`every ${type} is matched`);
  return idOf(type, copyId, row.crm_id);
}

/** An answer as far as it may depend on anything but the id that was sent. */
const without = (text: string, id: string) => text.replaceAll(JSON.stringify(id), '"ID"');

/** Nothing of globex, and no failure of our own. */
function expectClean(place: string, text: string): void {
  expect({ place, shows: text.includes(MARK) }).toEqual({ place, shows: false });
  expect({ place, text: text.includes("INTERNAL_SERVER_ERROR") ? text : "" }).toEqual({ place, text: "" });
}

async function unchangedForOthers(tenant: string, work: () => Promise<void>): Promise<void> {
  const before = await rowsOfOthers(tenants, tenant);
  await work();
  expect(await rowsOfOthers(tenants, tenant)).toEqual(before);
}

const sent = () => tenants.simulator.log.all().map(({ method, path }) => `${method} ${path}`);

test("every operation, argument and input field has its row in the matrix, and no row is of none", () => {
  expect(all.filter((name) => !table.has(name)).map((name) => `no row for ${name}`)).toEqual([]);
  expect([...table.keys()].filter((name) => !all.includes(name))).toEqual([]);
});

describe.each(["Query", "Mutation"] as const)("an id in a %s", (kind) => {
  const rows = places<IdRow>("id").filter(ofKind(kind));
  const named = rows.map((place) => [`${place.name} of a ${place.row.type}`, place] as const);

  test.each(named)(
    "%s: foreign, unmatched, unknown, malformed and other ids answer alike to every actor",
    async (name, place) => {
      const { type } = place.row;
      const foreign = tenants.ids.foreign[type] ?? "";
      const unmatched = await unmatchedId(type);
      const anotherType = type === "Stage" ? "Pipeline" : "Stage";
      const { own: mine, foreign: theirs } = tenants.ids;
      // Any type is right for node: another's is no odd one there.
      const others = place.field === "node" ? [theirs[anotherType]] : [theirs[anotherType], mine[anotherType]];
      const odd = [...malformedIds(type, tenants.copyOf("acme")), ...others.map((id) => id ?? "")];
      for (const tenant of ASKING) {
        const actors = DEEP || tenant === "acme" ? ACTORS : ACTORS.slice(2, 5);
        await unchangedForOthers(tenant, async () => {
          for (const actor of actors) {
            const as = { ...actor, tenant };
            const unknown = unknownId(type, tenants.copyOf("acme"));
            const expected = without((await askId(place, unknown, as)).text, unknown);
            const isUsual = actor.role === "admin" && actor.plan === "sales";
            const tried = [foreign, ...(unmatched ? [unmatched] : []), ...(DEEP || isUsual ? odd : [])];
            for (const id of tried) {
              const { text } = await askId(place, id, as);
              expect({ name, tenant, actor, id, text: without(text, id) }).toEqual({
                name,
                tenant,
                actor,
                id,
                text: expected,
              });
              expectClean(name, text);
            }
          }
        });
      }
      expect(sent()).toEqual([]);
    },
  );

  test.each(named.filter(([, { row }]) => !row.takesAway))(
    "%s: the own id is answered otherwise, so that the sameness above means something",
    async (_, place) => {
      const mine = tenants.ids.own[place.row.type] ?? "";
      const unknown = unknownId(place.row.type, tenants.copyOf("acme"));
      await unchangedForOthers("acme", async () => {
        const { text } = await askId(place, mine, { tenant: "acme" });
        expect(without(text, mine)).not.toBe(without((await askId(place, unknown, { tenant: "acme" })).text, unknown));
        expect(text).not.toContain("errors");
        expectClean(place.name, text);
        await expectOwn(text);
      });
      tenants.simulator.log.clear();
    },
  );
});

test("a member's colleague's receipts are answered like unknown ones", async () => {
  for (const type of ["NoteWrite", "FieldWrite"]) {
    const [place] = places<IdRow>("id").filter(({ field, row }) => field === "node" && row.type === type);
    if (!place) throw new Error(`no row for node(id) of a ${type}`);
    const id = tenants.ids.own[type] ?? "";
    const text = (await askId(place, id, { ...MEMBER, tenant: "acme" })).text;
    expect(without(text, id)).toBe(
      (await askId(place, unknownId(type, tenants.copyOf("acme")), { ...MEMBER, tenant: "acme" })).text,
    );
  }
});

/** Every global id in an answer is acme's, and every deal, person and organization is matched. */
async function expectOwn(text: string): Promise<void> {
  const { copyOf, database } = tenants;
  const ids = [...text.matchAll(/"id":"([\w-]+)"/g)].map(([, id]) => Buffer.from(id ?? "", "base64url").toString());
  for (const id of ids) {
    const [type = "", first, crmId] = id.split(":");
    if (ONE_OF_TENANT.includes(type)) expect(id).toBe(`${type}:acme`);
    else if (crmId !== undefined) {
      expect({ id, copy: Number(first) }).toEqual({ id, copy: copyOf("acme") });
      if (!["Deal", "Person", "Organization"].includes(type)) continue;
      const matched = await database.query(
        "SELECT 1 FROM matched_record WHERE copy_id = $1 AND entity = upper($2) AND crm_id = $3 LIMIT 1",
        [copyOf("acme"), type, crmId],
      );
      expect({ id, matched: matched.length }).toEqual({ id, matched: 1 });
    } else {
      const source = { SyncRun: "sync_run", Meeting: "meeting", NoteWrite: "note_write", FieldWrite: "field_write" }[
        type
      ];
      const [row] = await database.query<{ tenant: string }>(
        `SELECT t.external_id AS tenant FROM ${source} s JOIN tenant t ON t.id = s.tenant_id WHERE s.id = $1`,
        [first],
      );
      expect({ id, tenant: row?.tenant }).toEqual({ id, tenant: "acme" });
    }
  }
}

test.each(
  places<OperationRow>("operation")
    .filter(ofKind("Query"))
    .map((place) => [place.name, place] as const),
)("%s shows every actor of acme what is acme's, along every edge, and nothing unmatched", async (name, place) => {
  for (const actor of ACTORS) {
    const { text } = await ask(place, place.row.args("", own()), { ...actor, tenant: "acme" });
    expectClean(name, text);
    await expectOwn(text);
  }
  for (const tenant of ASKING) {
    const { text } = await ask(place, place.row.args("", own(tenant)), { tenant });
    expectClean(name, text);
    if (tenant !== "acme") expect(text).not.toContain(own().meeting);
  }
  expect(sent()).toEqual([]);
});

describe("cursors", () => {
  const lists = places<CursorRow>("cursor");
  const cursorOf = async (place: Place<CursorRow>, tenant: string) => {
    const { text } = await ask(place, { first: 1 }, { tenant });
    const answer = JSON.parse(text) as { data: Record<string, { pageInfo: { endCursor: string } }> };
    return answer.data[place.field]?.pageInfo.endCursor ?? "";
  };
  /** A cursor with an owner that never was, whose owner is the third member. */
  const ofNobody = (cursor: string) => {
    const parts: unknown[] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    parts[2] = typeof parts[2] === "number" ? 987_654 : "nobody";
    return Buffer.from(JSON.stringify(parts)).toString("base64url");
  };

  test.each(lists.map((place) => [place.name, place] as const))(
    "%s: another tenant's is refused like one of nobody's",
    async (name, place) => {
      const foreign = await cursorOf(place, OTHER);
      for (const tenant of ASKING) {
        for (const actor of ACTORS) {
          const as = { ...actor, tenant };
          const { text } = await ask(place, { after: foreign }, as);
          expect(text).toBe((await ask(place, { after: ofNobody(foreign) }, as)).text);
          const isRefused = place.field === "auditEvents" && actor.role === "member";
          const code = isRefused ? "NOT_ALLOWED_FOR_ROLE" : "BAD_USER_INPUT";
          expect(JSON.parse(text)).toMatchObject({ errors: [{ extensions: { code } }] });
          expectClean(name, text);
        }
      }
      const mine = await ask(place, { after: await cursorOf(place, "acme") }, { tenant: "acme" });
      expect(mine.text).not.toContain("errors");
    },
  );

  test.each(lists.map((place) => [place.name, place] as const))(
    "%s: of another list or malformed, it is refused",
    async (_, place) => {
      const others = lists.filter(({ field }) => field !== place.field).map((list) => cursorOf(list, "acme"));
      const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
      const own: unknown[] = JSON.parse(Buffer.from(await cursorOf(place, "acme"), "base64url").toString());
      const wrong = [
        own.slice(0, -1),
        [...own, "1"],
        [...own.slice(0, -1), "'; DROP TABLE deal"],
        [...own.slice(0, -1), {}],
      ];
      const malformed = ["", "x", "\u0000", json(null), json({}), json([[]]), "a".repeat(5_000), ...wrong.map(json)];
      for (const after of [...(await Promise.all(others)), ...malformed]) {
        const { text } = await ask(place, { after }, { tenant: "acme" });
        expect({ after, code: JSON.parse(text).errors?.[0]?.extensions.code }).toEqual({
          after,
          code: "BAD_USER_INPUT",
        });
      }
    },
  );
});

test.each(places<NameRow>("name").map((place) => [place.name, place] as const))(
  "%s: what another tenant has named so is neither found nor changed",
  async (name, { row, ...place }) => {
    const taken = row.taken(tenants);
    for (const tenant of ASKING) {
      await unchangedForOthers(tenant, async () => {
        for (const actor of row.creates ? ACTORS.slice(0, 1) : ACTORS) {
          const as = { ...actor, tenant };
          const { text } = await ask({ ...place, row }, row.args(taken, own(tenant)), as);
          expectClean(name, text.replaceAll(taken, ""));
          if (row.creates) continue;
          expect(text).toBe((await ask({ ...place, row }, row.args("never used by anyone", own(tenant)), as)).text);
        }
      });
    }
    if (!row.creates) expect(sent()).toEqual([]);
    tenants.simulator.log.clear();
  },
);

/** What ends or changes acme's connection comes last. */
const LAST = ["requestSync", "disconnect", "startConnect", "connect"];
const operations = places<OperationRow>("operation")
  .filter(ofKind("Mutation"))
  .sort((a, b) => LAST.indexOf(a.field) - LAST.indexOf(b.field));

describe.each(["Subscription"] as const)("a %s", (kind) => {
  const rows = places<OperationRow>("operation").filter(ofKind(kind));
  test.each(rows.map((place) => [place.name, place] as const))(
    "%s tells every actor over its socket of acme alone",
    async (name, place) => {
      const event = eventsOf(tenants).get(place.field);
      const query = event?.query ?? operation(schema, place.kind, place.field, []);
      const listen = (of: ActorClaims) =>
        Promise.all(
          ACTORS.map((actor) => subscribe(tenants.service.url, query, { as: { ...actor, ...of, tenant: "acme" } })),
        );
      const watching = await listen(event?.only ? { sub: event.only } : {});
      const colleagues = event?.only ? await listen({}) : [];
      const happens = async (tenant: string, of = tenant) => {
        if (!event) return;
        await tenants.database.query("SELECT pg_notify($2, id || ' ' || $3) FROM tenant WHERE external_id = $1", [
          tenant,
          event.channel,
          event.told(of),
        ]);
      };
      await until("each has heard the present state, or what happened", async () => {
        await happens("acme");
        return watching.every(({ results }) => results.length > 0);
      });
      const channels = ["connection_changed", "progress_changed"];
      for (const channel of channels)
        await tenants.database.query("SELECT pg_notify($1, id::text) FROM tenant WHERE external_id = $2", [
          channel,
          OTHER,
        ]);
      await happens("acme", OTHER);
      const witness = await subscribe(tenants.service.url, query, { as: { tenant: OTHER } });
      await until("the other tenant hears of its own", async () => {
        await happens(OTHER);
        return witness.results.length > 0;
      });
      for (const { results, end } of watching) {
        if (!event) expect(results).toHaveLength(1);
        expectClean(name, JSON.stringify(results));
        await expectOwn(JSON.stringify(results));
        await end();
      }
      expect(colleagues.flatMap(({ results }) => results)).toEqual([]);
      await Promise.all([witness, ...colleagues].map((one) => one.end()));
    },
  );
});

test.each(operations.map((place) => [place.name, place] as const))(
  "%s by any actor of any other tenant leaves every row of the others as it was",
  async (name, place) => {
    for (const tenant of ASKING) {
      for (const actor of ACTORS) {
        await unchangedForOthers(tenant, async () => {
          const { text } = await ask(place, place.row.args("", own(tenant)), { ...actor, tenant });
          expectClean(name, text);
        });
      }
    }
  },
);
