import { HOUR_MS, Lately, MINUTE_MS } from "../../src/platform/clock";

// Planted and seen red: what others have read since is not looked at; a failure holds as long as a list; a time ahead holds for ever;
// who asks meanwhile asks anew.

const START = Date.UTC(2026, 0, 5, 9);
const after = (ms: number) => new Date(START + ms);

function counted(answers: (string | Error)[]) {
  let asked = 0;
  const lately = new Lately<string>((answer) => (answer === "none" ? MINUTE_MS : HOUR_MS));
  const ask = async () => {
    const answer = answers[asked++] ?? "last";
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return {
    read: (ms: number, newestMs?: number, what = "a") =>
      lately.read(what, after(ms), newestMs === undefined ? null : after(newestMs), ask),
    ask: () => asked,
  };
}

test("holds as long as its answer does, each for itself", async () => {
  const { read, ask } = counted(["one", "other", "two"]);
  expect(await read(0)).toBe("one");
  expect(await read(HOUR_MS - 1)).toBe("one");
  expect(await read(1, undefined, "b")).toBe("other");
  expect(await read(HOUR_MS)).toBe("two");
  expect(ask()).toBe(3);
});

test("a failure holds for its own time, and one that is thrown for none", async () => {
  const { read } = counted(["none", "two", new Error("broken"), "four"]);
  expect(await read(0)).toBe("none");
  expect(await read(MINUTE_MS - 1)).toBe("none");
  expect(await read(MINUTE_MS)).toBe("two");
  await expect(read(2 * HOUR_MS)).rejects.toThrow("broken");
  expect(await read(2 * HOUR_MS)).toBe("four");
});

test("what others have read since is read anew, and what it was read with holds", async () => {
  const { read, ask } = counted(["one", "two"]);
  await read(10);
  expect(await read(20, 10)).toBe("one");
  expect(await read(30, 25)).toBe("two");
  expect(await read(40, 30)).toBe("two");
  expect(ask()).toBe(2);
});

test("who asks meanwhile waits for the same answer", async () => {
  const { read, ask } = counted(["one"]);
  expect(await Promise.all([read(0), read(1), read(2)])).toEqual(["one", "one", "one"]);
  expect(ask()).toBe(1);
});

test("what a clock far ahead has read is read anew", async () => {
  const { read } = counted(["one", "two"]);
  await read(5 * HOUR_MS);
  expect(await read(0)).toBe("two");
});
