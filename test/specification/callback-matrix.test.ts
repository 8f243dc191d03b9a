import type { ActorClaims } from "../support/actors";
import { dumpState } from "../support/dump";
import { CONNECT, completeConsent, connect, dataOf, startConsent } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: a state that is not deleted when it is used; a state that is not bound to its user, or to its tenant;
// its expiry not looked at; the policy not asked again; consents that a disconnect leaves in place.

let now = new Date();

// Without a worker nothing but the operation itself changes the database.
const { simulator, database, service } = useService({ deals: 10, clock: () => now, roles: ["api"] });

let tenants = 0;
const newcomer = (): ActorClaims => {
  tenants += 1;
  return { tenant: `tenant-${tenants}` };
};

/** Where the state in hand comes from. What has to happen first happens before the connection changes. */
const STATES: Record<string, (as: ActorClaims) => Promise<string>> = {
  good: (as) => startConsent(service, as),
  empty: async () => "",
  malformed: async () => "ü \u0000 '; DROP TABLE connection; --",
  "too long": async () => "x".repeat(100_000),
  unknown: async () => Buffer.alloc(32, 7).toString("base64url"),
  expired: async (as) => {
    const state = await startConsent(service, as);
    now = new Date(now.getTime() + 600_001);
    return state;
  },
  used: async (as) => {
    const state = await startConsent(service, as);
    await completeConsent(service, { error: "user_denied", state }, as);
    return state;
  },
  "another user's": (as) => startConsent(service, { ...as, sub: "somebody-else" }),
  /** Of the same user id: only the tenant differs. */
  "another tenant's": () => startConsent(service, newcomer()),
};

const ACTORS: Record<string, { claims: ActorClaims; code: string | null }> = {
  allowed: { claims: {}, code: null },
  "who lost the role": { claims: { role: "member" }, code: "NOT_ALLOWED_FOR_ROLE" },
  "whose plan has lapsed": { claims: { plan: "small" }, code: "NOT_ALLOWED_ON_PLAN" },
};

const DISCONNECT = "mutation { disconnect { ... on DisconnectSuccess { connection { state } } } }";
const connectAsAnother = async (as: ActorClaims) => {
  expect((await connect(service, simulator, { ...as, sub: "another-admin" })).connection).toBeDefined();
};
const CONNECTIONS: Record<string, { make: (as: ActorClaims) => Promise<void>; code: string | null }> = {
  "never made": { make: async () => undefined, code: null },
  "made since": { make: connectAsAnother, code: "ANOTHER_CRM_CONNECTED" },
  "made and ended since": {
    make: async (as) => {
      await connectAsAnother(as);
      dataOf(await service.ask(DISCONNECT, {}, as));
    },
    code: "AUTHORIZATION_STATE_INVALID",
  },
  "asked to be ended since": {
    make: async (as) => void dataOf(await service.ask(DISCONNECT, {}, as)),
    code: "AUTHORIZATION_STATE_INVALID",
  },
};

interface Cell {
  state: string;
  actor: string;
  connection: string;
  code: string;
}
/** Every cell but the one that works; the policy speaks first, then the connection, then the state. */
const CELLS: Cell[] = Object.keys(STATES).flatMap((state) =>
  Object.entries(ACTORS).flatMap(([actor, { code: forActor }]) =>
    Object.entries(CONNECTIONS).flatMap(([connection, { code: forConnection }]) => {
      const forState = state === "good" ? null : "AUTHORIZATION_STATE_INVALID";
      const code = forActor ?? forConnection ?? forState;
      return code ? [{ state, actor, connection, code }] : [];
    }),
  ),
);

const tokenRequests = () => simulator.log.of("POST", "/oauth/token").length;

/** Runs what must change nothing, and shows that no token was asked for and no row of any table differs. */
async function changingNothing<T>(work: () => Promise<T>): Promise<T> {
  const [asked, rows] = [tokenRequests(), await dumpState(database)];
  const result = await work();
  expect(tokenRequests()).toBe(asked);
  expect(await dumpState(database)).toEqual(rows);
  return result;
}

test.each(CELLS)("state $state, actor $actor, connection $connection: $code, and nothing changes", async (cell) => {
  const as = newcomer();
  const state = (await STATES[cell.state]?.(as)) ?? "";
  await CONNECTIONS[cell.connection]?.make(as);
  const actor = { ...as, ...ACTORS[cell.actor]?.claims };
  const answer = await changingNothing(() =>
    completeConsent(service, { code: simulator.control.approve(), state }, actor),
  );
  expect(answer).toEqual({ code: cell.code, message: expect.stringMatching(/\.$/), field: null });
});

test("a state that is missing is a fault of the document, and nothing changes", async () => {
  const as = newcomer();
  for (const input of [{ code: simulator.control.approve() }, { code: simulator.control.approve(), state: null }]) {
    const { errors } = await changingNothing(() => service.ask(CONNECT, { input }, as));
    expect(errors).toMatchObject([{ extensions: { code: "BAD_USER_INPUT" } }]);
  }
});

test("of the whole table one cell connects: a good state, an allowed actor, no connection", async () => {
  expect(CELLS).toHaveLength(9 * 3 * 4 - 1);
  const as = newcomer();
  const state = await startConsent(service, as);
  expect((await completeConsent(service, { code: simulator.control.approve(), state }, as)).connection).toBeDefined();
});

test("a state that was refused to another user, or for a lost role, still works for its own", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  const code = simulator.control.approve();
  for (const wrong of [{ ...as, sub: "eve" }, { ...newcomer() }, { ...as, role: "member" }]) {
    await changingNothing(() => completeConsent(service, { code, state }, wrong));
  }
  expect((await completeConsent(service, { code, state }, as)).connection).toBeDefined();
});

test("a state works to the end of its ten minutes", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  now = new Date(now.getTime() + 599_999);
  expect((await completeConsent(service, { code: simulator.control.approve(), state }, as)).connection).toBeDefined();
});

test("ten who complete one state at the same time are one connect, and have its answer; the code is exchanged once", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  const asked = tokenRequests();
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => completeConsent(service, { code: simulator.control.approve(), state }, as)),
  );
  expect(tokenRequests()).toBe(asked + 1);
  // Seen red: one had it, nine were told that they had connected nothing.
  expect(answers.map(({ connection }) => connection?.state)).toEqual(Array(10).fill("CONNECTED"));
});

// Seen red: nine were told that their state was used, and not why it had come to nothing.
test("ten at the same time whose code the CRM refuses have one answer; the code is sent once", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  const asked = tokenRequests();
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => completeConsent(service, { code: "1.2.x", state }, as)),
  );
  expect(tokenRequests()).toBe(asked + 1);
  expect(answers[0]?.code).toBe("AUTHORIZATION_REJECTED");
  expect(answers).toEqual(Array(10).fill(answers[0]));
});

describe("a connect that is repeated", () => {
  const connected = async () => {
    const as = newcomer();
    const state = await startConsent(service, as);
    expect((await completeConsent(service, { code: simulator.control.approve(), state }, as)).connection).toBeDefined();
    const repeat = (claims: ActorClaims = {}, input: object = { code: "1.2.x" }) =>
      changingNothing(() => completeConsent(service, { ...input, state }, { ...as, ...claims }));
    return { as, repeat };
  };

  test("has the first one's answer for as long as the state lives, and nothing is done again", async () => {
    const { repeat } = await connected();
    for (let times = 0; times < 2; times += 1) expect((await repeat()).connection?.state).toBe("CONNECTED");
    now = new Date(now.getTime() + 600_000);
    expect((await repeat()).code).toBe("ANOTHER_CRM_CONNECTED");
  });

  test("is nobody else's, needs the role still, and is no cancellation", async () => {
    const { repeat } = await connected();
    expect((await repeat({ sub: "another-admin" })).code).toBe("ANOTHER_CRM_CONNECTED");
    expect((await repeat(newcomer())).code).toBe("AUTHORIZATION_STATE_INVALID");
    expect((await repeat({ role: "member" })).code).toBe("NOT_ALLOWED_FOR_ROLE");
    expect((await repeat({}, { error: "user_denied" })).code).toBe("ANOTHER_CRM_CONNECTED");
  });

  test("is refused once that connection is another one, or none", async () => {
    const { as, repeat } = await connected();
    await database.query(
      "UPDATE connection SET state = 'NEEDS_REAUTHORIZATION', reauthorization_reason = 'GRANT_REVOKED' WHERE state = 'CONNECTED'",
    );
    expect((await repeat()).code).toBe("AUTHORIZATION_STATE_INVALID");
    now = new Date(now.getTime() + 1_000);
    await connectAsAnother(as);
    expect((await repeat()).code).toBe("ANOTHER_CRM_CONNECTED");
    dataOf(await service.ask(DISCONNECT, {}, as));
    expect((await repeat()).code).toBe("AUTHORIZATION_STATE_INVALID");
  });
});

test.each([
  ["cancels in the CRM", () => ({ error: "user_denied" }), "AUTHORIZATION_DENIED_BY_USER"],
  ["cancels, as the CRM's SDK has it", () => ({ error: "access_denied" }), "AUTHORIZATION_DENIED_BY_USER"],
  // Seen red: whatever went wrong at the CRM was the user's cancellation.
  ["meets a fault of the CRM", () => ({ error: "server_error" }), "AUTHORIZATION_REJECTED"],
  ["meets a wrong registration", () => ({ error: "invalid_scope" }), "AUTHORIZATION_REJECTED"],
  [
    "brings a code beside an error",
    () => ({ error: "x", code: simulator.control.approve() }),
    "AUTHORIZATION_REJECTED",
  ],
])("a user who %s is told so; the state is used up and nothing else changes", async (_what, make, code) => {
  const as = newcomer();
  const state = await startConsent(service, as);
  const [asked, before] = [tokenRequests(), await dumpState(database)];
  expect((await completeConsent(service, { ...make(), state }, as)).code).toBe(code);
  const after = await dumpState(database);
  expect(tokenRequests()).toBe(asked);
  const [spent] = after.filter((row) => !before.some(({ text }) => text === row.text));
  expect(spent?.text).toContain(`"code": "${code}"`);
  expect(spent?.table).toContain("authorization_request");
  const kept = ({ text }: { text: string }) => before.some((row) => row.text === text);
  expect(after.filter(kept)).toHaveLength(before.length - 1);
  const again = await completeConsent(service, { code: simulator.control.approve(), state }, as);
  expect(again.code).toBe("AUTHORIZATION_STATE_INVALID");
});

test("an error with a state that was never issued is not taken for a cancelled consent", async () => {
  const as = newcomer();
  await startConsent(service, as);
  const answer = await changingNothing(() => completeConsent(service, { error: "user_denied", state: "forged" }, as));
  expect(answer.code).toBe("AUTHORIZATION_STATE_INVALID");
});

test.each([{}, { code: "" }, { code: null, error: "" }])(
  "an answer with neither code nor error (%j) is refused and leaves the state usable",
  async (input) => {
    const as = newcomer();
    const state = await startConsent(service, as);
    const answer = await changingNothing(() => completeConsent(service, { ...input, state }, as));
    expect(answer).toMatchObject({ code: "INVALID_INPUT", field: "code" });
    expect((await completeConsent(service, { code: simulator.control.approve(), state }, as)).connection).toBeDefined();
  },
);
