import { createCallers } from "../../src/auth/actor";
import { Secret } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { JWT_SECRET, tokenFor } from "../support/actors";

// Seen red with: a token believed by its payload alone; a token believed for a minute whatever its end; one believed for ever;
// one believed for as long as the clock was set back; one whose tenant has another number by now.

const START = Date.now();
let now: number;
let tenantId = 1;
const auth = {
  proof: { kind: "secret" as const, secret: new Secret(JWT_SECRET) },
  issuer: undefined,
  audience: undefined,
};
const verifier = () =>
  createCallers(
    auth,
    async () => tenantId,
    createLogger("silent"),
    () => new Date(now),
  ).verify;
const inSeconds = (seconds: number) => {
  now = START + seconds * 1_000;
};
const endsIn = (seconds: number) => tokenFor({}, Math.floor(START / 1_000) + seconds);

beforeEach(() => inSeconds(0));

test("a token is proven once a minute, however often it comes", async () => {
  const verify = verifier();
  const token = await endsIn(3_600);
  const first = await verify(token);
  inSeconds(59);
  expect(await verify(token)).toBe(first);
  inSeconds(61);
  const second = await verify(token);
  expect(second).not.toBe(first);
  expect(second).toEqual(first);
});

test("a token that was believed is refused when it has ended", async () => {
  const verify = verifier();
  const token = await endsIn(20);
  await verify(token);
  inSeconds(24);
  await verify(token);
  inSeconds(26);
  await expect(verify(token)).rejects.toThrow("has ended");
});

test("a clock that is set back has each token proven again", async () => {
  const verify = verifier();
  const token = await endsIn(3_600);
  inSeconds(1_800);
  const first = await verify(token);
  inSeconds(0);
  expect(await verify(token)).not.toBe(first);
});

test("a believed token is of its tenant's present number", async () => {
  const verify = verifier();
  const token = await endsIn(3_600);
  const numbers: number[] = [];
  for (tenantId of [2, 3, 1]) numbers.push((await verify(token)).tenantId);
  expect(numbers).toEqual([2, 3, 1]);
});

test("what a believed token says is not believed of another with the same words", async () => {
  const verify = verifier();
  const token = await endsIn(3_600);
  await verify(token);
  const [header, payload] = token.split(".");
  for (const other of [`${header}.${payload}.`, `${header}.${payload}.${"A".repeat(43)}`, `${token}A`, ` ${token}`]) {
    await expect(verify(other)).rejects.toThrow("not valid");
  }
});

test("a refused token is not remembered, and nobody can change whom a token proved", async () => {
  const verify = verifier();
  await expect(verify("garbage")).rejects.toThrow();
  await expect(verify("garbage")).rejects.toThrow();
  const actor = await verify(await endsIn(3_600));
  expect(() => Object.assign(actor, { tenantId: "other" })).toThrow();
});
