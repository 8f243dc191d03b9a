import { layoutOf, referredFirst, type Table } from "../../src/database/cluster";

const copied = { name: "tenant", ofTenant: false, method: "n", column: null, colocation: 1 };
const spread = (name: string): Table => ({ name, ofTenant: true, method: "h", column: "tenant_id", colocation: 2 });
const own = (name: string, ofTenant = true): Table => ({
  name,
  ofTenant,
  method: null,
  column: null,
  colocation: null,
});
const nodes = ["a:5432", "b:5432"];

test("tables that are all the coordinator's own are as good as one server", () => {
  expect(layoutOf([own("deal"), own("tenant", false)], nodes)).toEqual({ kind: "NOT_DISTRIBUTED" });
});

test("a tenant's table that is not spread yet is named, and nobody's tables may stay where they are", () => {
  const tables = [spread("deal"), own("later"), own("crm_stop", false), copied];
  expect(layoutOf(tables, nodes)).toEqual({ kind: "DISTRIBUTED", nodes, local: ["later"] });
});

test.each<[string, Table[], string]>([
  ["by another column", [spread("deal"), { ...spread("note"), column: "copy_id" }, copied], "note not by tenant_id"],
  [
    "as a reference table",
    [spread("deal"), { ...copied, name: "note", ofTenant: true }, copied],
    "note not by tenant_id",
  ],
  [
    "away from each other",
    [spread("deal"), { ...spread("note"), colocation: 3 }, copied],
    "not all of them co-located",
  ],
  ["without the tenants", [spread("deal"), own("tenant", false)], "tenant not as a reference table"],
  [
    "with the tenants spread",
    [spread("deal"), { ...copied, method: "h", column: "id" }],
    "tenant not as a reference table",
  ],
])("tables that were distributed %s are not ours to work on", (_, tables, why) => {
  expect(layoutOf(tables, nodes)).toMatchObject({ kind: "UNUSABLE", what: expect.stringContaining(why) });
});

test("a table comes after those that its rows refer to, also in a circle, and each once", () => {
  const references = [
    { from: "attendee", to: "meeting" },
    { from: "meeting", to: "tenant" },
    { from: "answer", to: "attendee" },
    { from: "left", to: "right" },
    { from: "right", to: "left" },
  ];
  expect(referredFirst(["answer", "attendee", "meeting"], references)).toEqual(["meeting", "attendee", "answer"]);
  expect(referredFirst(["left", "right"], references).sort()).toEqual(["left", "right"]);
});
