import {
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";

/** Numbers that a generator decides by, one after the other, and 0 when they are used up: shorter and smaller is simpler. */
export class Tape {
  #next = 0;

  constructor(private readonly numbers: readonly number[]) {}

  /** As many numbers as are drawn from a seed, for cases that are too large to be made smaller number by number. */
  static drawn(seed: number, count: number): Tape {
    let state = seed >>> 0;
    const draw = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 8;
    };
    return new Tape(Array.from({ length: count }, draw));
  }

  below(limit: number): number {
    const number = this.numbers[this.#next++] ?? 0;
    return limit > 0 ? number % limit : 0;
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }

  /** Never when the numbers are used up. */
  seldom(oneIn: number): boolean {
    return this.below(oneIn) === oneIn - 1;
  }

  get isUsedUp(): boolean {
    return this.#next >= this.numbers.length;
  }
}

const deep = (depth: number): unknown => JSON.parse(`${'{"a":['.repeat(depth)}1${"]}".repeat(depth)}`);

/** What no client should send: wrong types, extremes, and text that some layer below does not take. */
export const HOSTILE: readonly unknown[] = [
  null,
  "",
  "x",
  0,
  -1,
  1,
  101,
  2 ** 31,
  2 ** 53,
  1e308,
  0.1,
  true,
  false,
  [],
  {},
  [[]],
  [null],
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udc00x",
  "\u202e",
  "é".repeat(300),
  "__proto__",
  "constructor",
  "toString",
  "'; DROP TABLE deal; --",
  "%00",
  "../../etc/passwd",
  "<script>alert(1)</script>",
  "$1",
  "{{7*7}}",
  "\\u0000",
  "9".repeat(400),
  "-0",
  "NaN",
  "1e400",
  "0000-00-00",
  "2026-02-30T25:61:61Z",
  "+275760-09-13T00:00:00.001Z",
  "1969-12-31T23:59:59Z",
  "9999-12-31T23:59:59Z",
  "x".repeat(100_000),
  "a@b",
  `${"a".repeat(400)}@b.example`,
  deep(40),
  deep(400),
  JSON.parse('{"__proto__":{"x":1}}'),
  JSON.parse('{"constructor":{"prototype":1}}'),
  { value: "1e999", currency: "EUR" },
  { value: "\u0000", currency: "\ud800" },
  Array(300).fill("x"),
];

/** A value for an input, right, nearly right or hostile. `own` are values that mean something, by the input's name. */
export function valueFor(
  type: GraphQLInputType,
  name: string,
  tape: Tape,
  own: Readonly<Record<string, unknown>>,
): unknown {
  if (tape.seldom(6)) return tape.one(HOSTILE);
  if (isNonNullType(type)) return valueFor(type.ofType, name, tape, own);
  if (isListType(type)) {
    const item: GraphQLInputType = type.ofType;
    return Array.from({ length: 1 + tape.below(3) }, () => valueFor(item, name, tape, own));
  }
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).filter(() => !tape.seldom(8));
    return Object.fromEntries(fields.map((field) => [field.name, valueFor(field.type, field.name, tape, own)]));
  }
  if (isEnumType(type)) return tape.one(type.getValues()).name;
  return tape.below(2) === 0 && name in own ? own[name] : (PLAUSIBLE[type.name] ?? (() => "x"))(tape);
}

const PLAUSIBLE: Readonly<Record<string, (tape: Tape) => unknown>> = {
  Int: (tape) => tape.below(120),
  Boolean: (tape) => tape.below(2) === 1,
  DateTime: () => "2026-03-01T10:00:00Z",
  JSON: (tape) => tape.one(HOSTILE),
  ID: (tape) => tape.one(["RGVhbDoxOjE", "TWVldGluZzo", "U3luY1J1bjp4", "Tm9kZQ", "x"]),
};

/** A document that the schema's own names make: valid, nearly valid, wide, deep, with fragments and directives. */
export function documentFrom(schema: GraphQLSchema, tape: Tape): string {
  const root = tape.one([schema.getQueryType(), schema.getQueryType(), schema.getMutationType()]);
  const fragments: string[] = [];
  const body = selection(schema, root as GraphQLNamedType, tape, 0, fragments);
  const kind = tape.seldom(12) ? "subscription" : root?.name.toLowerCase();
  const variables = tape.one(["", "", " ($v: ID)", " ($v: [DealFilter!]! = [])", " ($v: NoSuchType)"]);
  const document = `${kind} Asked${variables} ${body} ${fragments.join(" ")}`;
  if (!tape.seldom(10)) return document;
  // Cut, doubled, or with something in its middle that is no token.
  const at = tape.below(document.length);
  return tape.one([
    document.slice(0, at),
    `${document} ${document}`,
    `${document.slice(0, at)}${tape.one(["}", "{", "\u0000", '"""', "@@", "...", "\ud800", "#"])}${document.slice(at)}`,
  ]);
}

const DIRECTIVES = ["@include(if: true)", "@skip(if: false)", "@include(if: $v)", "@skip(if: 1)", "@no", "@deprecated"];

function selection(
  schema: GraphQLSchema,
  type: GraphQLNamedType,
  tape: Tape,
  depth: number,
  fragments: string[],
): string {
  if (isAbstractType(type)) {
    const member = tape.one(schema.getPossibleTypes(type));
    return `{ __typename ... on ${member.name} ${selection(schema, member, tape, depth, fragments)} }`;
  }
  if (!isObjectType(type) || depth > 14) return "{ __typename }";
  const fields = Object.values(type.getFields());
  const width = tape.isUsedUp ? 1 : 1 + tape.below(tape.seldom(20) ? 60 : 4);
  const chosen = Array.from({ length: width }, () => {
    const field = tape.one(fields);
    const of = getNamedType(field.type);
    if (tape.isUsedUp && !isLeafType(of)) return "__typename";
    const alias = tape.seldom(5) ? `a${tape.below(9)}: ` : "";
    const name = tape.seldom(25) ? "noSuchField" : field.name;
    const given = field.args.filter((argument) => isNonNullType(argument.type) || tape.seldom(3));
    const args = given.map(
      (argument) =>
        `${argument.name}: ${tape.seldom(9) ? "$v" : literal(valueFor(argument.type, argument.name, tape, {}))}`,
    );
    const directive = tape.seldom(7) ? ` ${tape.one(DIRECTIVES)}` : "";
    const inner = isLeafType(of) ? "" : ` ${selection(schema, of, tape, depth + 1, fragments)}`;
    return `${alias}${name}${args.length > 0 ? `(${args.join(", ")})` : ""}${directive}${inner}`;
  });
  if (!tape.seldom(9)) return `{ ${chosen.join(" ")} }`;
  const name = `F${fragments.length}`;
  // Some name themselves, which no document may.
  fragments.push(`fragment ${name} on ${type.name} { ${chosen.join(" ")} ${tape.seldom(4) ? `...${name}` : ""} }`);
  return `{ ...${name} ${tape.seldom(2) ? `...${name} ...F${tape.below(9)}` : ""} }`;
}

/** A value as GraphQL writes it; JSON objects with names that it cannot write become text. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.slice(0, 20).map(literal).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value)?.slice(0, 2_000) ?? "null";
  const entries = Object.entries(value).filter(([name]) => /^[A-Za-z_]\w*$/.test(name));
  return `{${entries.map(([name, inner]) => `${name}: ${literal(inner)}`).join(", ")}}`;
}

/** A record of the CRM with some of its members replaced, removed or put elsewhere. */
export function spoil(record: unknown, tape: Tape): unknown {
  if (tape.seldom(12)) return tape.one(HOSTILE);
  if (record === null || typeof record !== "object" || Array.isArray(record)) return record;
  const entries = Object.entries(record).map(([name, value]): [string, unknown] => {
    if (!tape.seldom(5)) return [name, value];
    return [name, tape.one([undefined, ...HOSTILE, { [name]: value }, [value]])];
  });
  return Object.fromEntries(entries);
}
