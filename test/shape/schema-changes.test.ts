import { readFileSync } from "node:fs";
import {
  buildSchema,
  DangerousChangeType,
  findBreakingChanges,
  findDangerousChanges,
  type GraphQLSchema,
} from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";

/** What a client has to stand, as docs/api.md says: a value or a type that it does not know, and what it may leave out. */
const GROWTH: ReadonlySet<string> = new Set([
  DangerousChangeType.VALUE_ADDED_TO_ENUM,
  DangerousChangeType.TYPE_ADDED_TO_UNION,
  DangerousChangeType.IMPLEMENTED_INTERFACE_ADDED,
  DangerousChangeType.OPTIONAL_INPUT_FIELD_ADDED,
  DangerousChangeType.OPTIONAL_ARG_ADDED,
]);

/** A value of an enum, as the API names them. */
const VALUE = /^[A-Z][A-Z_]+$/;

const released = readFileSync("schema.released.graphql", "utf8");

/** @returns what would break a client and is in no line of the changelog that says so with the names of the change */
function unsaid(before: GraphQLSchema, after: GraphQLSchema, changelog: string): string[] {
  const [, unreleased = ""] = changelog.split(/^## /m);
  const breaking = unreleased.split(/^- /m).filter((line) => line.startsWith("*breaking*"));
  const changes = [
    ...findBreakingChanges(before, after),
    ...findDangerousChanges(before, after).filter(({ type }) => !GROWTH.has(type)),
  ];
  return changes.flatMap(({ description }) => {
    const words = description.match(/[A-Z]\w*(\.\w+)?/g) ?? [];
    const names = words.filter((word) => VALUE.test(word) || isOf(before, after, word));
    const isSaid = breaking.some((line) => names.every((name) => line.includes(name)));
    return isSaid ? [] : [description];
  });
}

/** A word of the description that names a type of ours, or a member of one. */
const isOf = (before: GraphQLSchema, after: GraphQLSchema, word: string) => {
  const [type = ""] = word.split(".");
  return (before.getType(type) ?? after.getType(type)) !== undefined;
};

test("what has changed since the release and would break a client stands in the changelog as breaking", () => {
  expect(unsaid(buildSchema(released), buildGraphQLSchema(), readFileSync("CHANGELOG.md", "utf8"))).toEqual([]);
});

const CHANGES: [what: string, from: string, to: string, told: RegExp][] = [
  ["a field that is gone", "  quietDays: Int", "  quietDaysNow: Int", /^QuietSignal.quietDays was removed/],
  ["a field that may be null now", "  userId: String!\n\n", "  userId: String\n\n", /^Viewer.userId changed type/],
  ["a value that is gone", "  GHOSTED\n", "  SPOOKED\n", /^GHOSTED was removed from enum type QuietVerdict/],
  ["another default", "first: Int = 20\n", "first: Int = 10\n", /defaultValue/],
];

test.each(CHANGES)("%s is a change that has to be said", (_what, from, to, told) => {
  const changed = released.replace(from, to);
  expect(changed).not.toBe(released);
  const [before, after] = [buildSchema(released), buildSchema(changed)];
  const silent = unsaid(before, after, "## Unreleased\n\n- Something else.\n");
  expect(silent).toEqual(expect.arrayContaining([expect.stringMatching(told)]));
  const words = silent.map((description) => `- *breaking* ${description}`).join("\n");
  expect(unsaid(before, after, `## Unreleased\n\n${words}\n\n## 0.1.0\n`)).toEqual([]);
  expect(unsaid(before, after, `## Unreleased\n\n## 0.1.0\n\n${words}\n`)).toEqual(silent);
});

test("what a client has to stand needs no line", () => {
  const grown = released
    .replace("  GHOSTED\n", "  GHOSTED\n  ANOTHER\n")
    .replace("union StartConnectResult = ", "union StartConnectResult = Deal | ");
  expect(grown.length).toBeGreaterThan(released.length + 10);
  expect(unsaid(buildSchema(released), buildSchema(grown), "## Unreleased\n")).toEqual([]);
});

/** As docs/api.md (Versions) promises: the day, and what takes its place. */
const FAREWELL = /^Until \d{4}-\d{2}-\d{2}: \S/;

/** @returns reasons of deprecations that do not say both */
const unsaidReasons = (printed: string) =>
  [...printed.matchAll(/@deprecated(?:\(reason: "([^"]*)"\))?/g)].flatMap(([, reason = "none"]) =>
    FAREWELL.test(reason) ? [] : [reason],
  );

test("what is deprecated says until which day it stays, and what takes its place", () => {
  expect(unsaidReasons(readFileSync("schema.graphql", "utf8"))).toEqual([]);
  const planted = (reason: string) => released.replace("  quietDays: Int", `  quietDays: Int @deprecated${reason}`);
  expect(unsaidReasons(planted(""))).toEqual(["none"]);
  expect(unsaidReasons(planted('(reason: "Use judgedAt.")'))).toEqual(["Use judgedAt."]);
  expect(unsaidReasons(planted('(reason: "Until 2027-06-01: use judgedAt.")'))).toEqual([]);
});
