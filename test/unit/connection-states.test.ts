import { admit } from "../../src/connections/connecting";
import { MOVES, mayMove, statesBefore } from "../../src/connections/connection";
import { CONNECTION_STATES, type ConnectionState } from "../../src/entities/connection";

const ALLOWED = new Set([
  "NOT_CONNECTED -> CONNECTED",
  "CONNECTED -> NEEDS_REAUTHORIZATION",
  "CONNECTED -> NOT_CONNECTED",
  "NEEDS_REAUTHORIZATION -> CONNECTED",
  "NEEDS_REAUTHORIZATION -> NOT_CONNECTED",
]);
const PAIRS = CONNECTION_STATES.flatMap((from) => CONNECTION_STATES.map((to) => [from, to] as const));

test.each(PAIRS)("%s to %s is allowed exactly where the specification has it", (from, to) => {
  expect(mayMove(from, to)).toBe(ALLOWED.has(`${from} -> ${to}`));
});

test("the table knows every state, and looking back agrees with looking ahead", () => {
  expect(Object.keys(MOVES).sort()).toEqual([...CONNECTION_STATES].sort());
  for (const [from, to] of PAIRS) expect(statesBefore(to).includes(from)).toBe(mayMove(from, to));
});

const bound = { companyId: 1, userId: 10 };
const CASES: [string, ConnectionState, typeof bound | null, { companyId: number; id: number }, string][] = [
  ["the first connection makes a copy", "NOT_CONNECTED", null, { companyId: 1, id: 10 }, "NEW_COPY"],
  [
    "a connected CRM is kept, even for the same user",
    "CONNECTED",
    bound,
    { companyId: 1, id: 10 },
    "ANOTHER_CRM_CONNECTED",
  ],
  [
    "a connected CRM is kept against another company",
    "CONNECTED",
    bound,
    { companyId: 2, id: 10 },
    "ANOTHER_CRM_CONNECTED",
  ],
  [
    "the same user authorizes again on the same copy",
    "NEEDS_REAUTHORIZATION",
    bound,
    { companyId: 1, id: 10 },
    "SAME_COPY",
  ],
  [
    "another user of the company sees other records",
    "NEEDS_REAUTHORIZATION",
    bound,
    { companyId: 1, id: 11 },
    "NEW_COPY",
  ],
  [
    "another company has to be disconnected first",
    "NEEDS_REAUTHORIZATION",
    bound,
    { companyId: 2, id: 10 },
    "DIFFERENT_CRM_COMPANY",
  ],
];
test.each(CASES)("%s", (_case, state, held, user, admission) => {
  expect(admit({ state, bound: held }, user)).toBe(admission);
});
