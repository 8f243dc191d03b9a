import { randomBytes } from "node:crypto";
import { Keyring, UnsealError } from "../../src/platform/keyring";

const newKey = (id: string) => ({ id, key: randomBytes(32) });
const first = newKey("k1");
const keyring = new Keyring([first]);
const place = ["acme", "7", "refresh_token"];

test("what was sealed opens in its place, and two seals of one text differ", () => {
  const sealed = keyring.seal("a token", place);
  expect(keyring.open(sealed, place)).toBe("a token");
  expect(keyring.seal("a token", place).equals(sealed)).toBe(false);
});

test.each([
  ["another tenant", ["other", "7", "refresh_token"]],
  ["another copy", ["acme", "8", "refresh_token"]],
  ["another column", ["acme", "7", "access_token"]],
  ["parts cut elsewhere", ["acme7", "", "refresh_token"]],
])("it does not open in %s", (_case, elsewhere) => {
  expect(() => keyring.open(keyring.seal("a token", place), elsewhere)).toThrow(UnsealError);
});

test("a flip of any single byte is refused", () => {
  const sealed = keyring.seal("a token", place);
  for (let index = 0; index < sealed.length; index += 1) {
    const altered = Buffer.from(sealed);
    altered[index] = (altered[index] ?? 0) ^ 1;
    expect(() => keyring.open(altered, place)).toThrow(UnsealError);
  }
});

test("a cut at any length is refused", () => {
  const sealed = keyring.seal("a token", place);
  for (let length = 0; length < sealed.length; length += 1) {
    expect(() => keyring.open(sealed.subarray(0, length), place)).toThrow(UnsealError);
  }
});

test("the first key seals and every key opens", () => {
  const sealed = keyring.seal("a token", place);
  const rotated = new Keyring([newKey("k2"), first]);
  expect(rotated.open(sealed, place)).toBe("a token");
  expect(rotated.seal("a token", place).subarray(2, 4).toString()).toBe("k2");
  expect(() => new Keyring([newKey("k2")]).open(sealed, place)).toThrow("not in ENCRYPTION_KEYS");
});
