import { NOT_LOOKED_THROUGH, textsOf } from "../../src/entities/index";
import { mentionsOf, withoutMentions } from "../../src/platform/mentions";
import { useDatabase } from "../support/world";

/** How a person's names and addresses are found in texts, by PostgreSQL and here. */
const database = useDatabase();
const SEVERAL = "Zoë O'Brien van Müller";

// Seen red: one expression of sixty names, for which PostgreSQL found no memory.
test("a person of many and long names is found by expressions that PostgreSQL makes ready, and a long text takes no turn twice", async () => {
  const words = ["Élise", "O'Brien", "van", "der", "Müllershausen-Söhngen"];
  const names = Array.from({ length: 40 }, (_, one) => `Zoë${one} ${words.join(" ")}`);
  const longest = `${"Ž".repeat(147)} ${"é".repeat(147)}`;
  const patterns = mentionsOf(["zoe@mueller.example"], [...names, longest, "N ".repeat(1_000)]);
  expect(patterns.length).toBeGreaterThan(10);
  const hostile = `${"Zoë1 O'Brien, van ".repeat(100)}${"<".repeat(1_000)}${"&#".repeat(1_000)}`;
  for (const said of [`Müllershausen-Söhngen, Zoë39 ${words.slice(0, -1).join("\n")}`, longest]) {
    const found = await database.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM unnest($1::text[]) AS pattern WHERE $2 ~* pattern AND NOT $3 ~* pattern",
      [patterns.map(([inText]) => inText), `Call ${said}.`, hostile],
    );
    expect(found).toEqual([{ n: 1 }]);
    expect(withoutMentions(`Call ${said}.${hostile}`, [], [...names, longest])).toBe(`Call [erased].${hostile}`);
  }
});

// Seen red: the second object had lost its key, and where one stood in a list the text was no JSON any more.
test("what is not closed in one text of a record is not looked for in the next one", async () => {
  const [[, inJson] = []] = mentionsOf(["ada@x.example"], ["Ada Lovelace"]);
  const erased = async (record: object) => {
    const sql = `SELECT regexp_replace($1::jsonb::text, $2, '\\1[erased]', 'gi')::jsonb AS record`;
    return (await database.query<{ record: object }>(sql, [JSON.stringify(record), inJson]))[0]?.record;
  };
  const torn = { one: ["Ada <"], two: "> Lovelace", three: 'Ada <b class="x">' };
  expect(await erased(torn)).toEqual(torn);
  const whole = { one: 'Ada <b class="x">\n</b> Lovelace', two: `ada+${"x".repeat(60)}@x.example` };
  expect(await erased(whole)).toEqual({ one: "[erased]", two: "[erased]" });
});

// Seen red: an expression of nothing, also where the first spelling is too long for one of its own, is found between any two
// letters; that of a tag took the square of the text.
test("who has no address and no name of two words is found nowhere, and a text of tags takes no time", () => {
  const longest = `${"Ž".repeat(147)} ${"é".repeat(147)}`;
  for (const name of ["", " ", "A", ",", "Ada,", "*", longest])
    expect(withoutMentions(SEVERAL, [], [name])).toBe(SEVERAL);
  const tags = ",ada+".repeat(20_000);
  expect(withoutMentions(`${tags} ada+1@x.example`, ["ada@x.example"], [])).toBe(`${tags} [erased]`);
});

const WANG = "王小明";
/** Of whom, and how a text has it. */
const FOUND: [mailboxes: string[], names: string[], text: string][] = [
  [[], ["Sean O'Brien"], "Call Sean O&rsquo;Brien"],
  [[], ["Sean O’Brien"], "Call Sean O&rsquor;Brien"],
  [[], ["Anne-Marie Duval"], "Anne\u2011Marie Duval"],
  [[], ["Anne-Marie Duval"], "Anne&#8209;Marie Duval"],
  [[], ["Anne-Marie Duval"], "Anne&hyphen;Marie Duval"],
  [[], ["Ada Lovelace"], "Hello.Ada Lovelace said"],
  [[], ["Ada Lovelace"], "2026.Ada Lovelace"],
  [["ada@x.example"], [], "https://y.example/?u=ada%40x.example"],
  [["ada@x.example"], [], "https://y.example/?u=%3Cada%2Bcrm%40x.example%3E"],
  [[], [WANG], `与${WANG}续约`],
  [[], ["王 小明"], `与${WANG}续约`],
  [[], ["김민준"], "김민준은"],
  // Seen red, each of these: as its language writes it.
  [[], [WANG], "王 小明"],
  [[], ["민준 김"], "김민준은"],
  [[], ["太郎 田中"], "田中　太郎様"],
  [[], ["アダ ラブレス"], "アダ・ラブレスさん"],
  [[], ["สมชาย ใจดี"], "ประชุมกับคุณสมชาย ใจดีมาแล้ว"],
  [[], ["דוד כהן"], "פגישה לדוד כהן"],
  [[], ["محمد علي"], "ومحمد علي"],
  [[], ["İbrahim Yıldız"], "İBRAHİM YILDIZ"],
  [[], ["İbrahim Yıldız"], "ibrahim yıldız"],
  [[], ["IŞIK YILDIZ"], "Işık Yıldız"],
  [[], ["Νίκος Παπαδόπουλος"], "ΝΙΚΟΣ ΠΑΠΑΔΟΠΟΥΛΟΣ"],
  [[], ["ΝΙΚΟΣ ΠΑΠΑΔΟΠΟΥΛΟΣ"], "Νίκος Παπαδόπουλος"],
  [[], ["Sean O'Brien"], "Sean O´Brien"],
  [[], ["Ada Lovelace"], "与Ada Lovelace会谈"],
  [["ada@x.example"], [], "メールはada@x.exampleです"],
  // Seen red: here a title kept the name.
  [[], ["Ada Lovelace"], "Ada Lovelace²"],
];
const NOT_FOUND: typeof FOUND = [
  [["ada@x.example"], [], "eve.ada@x.example eve+ada@x.example eve-ada@x.example"],
  [[], ["Ada Lovelace"], "Mary-Ada Lovelace, AdaLovelace, Ada Lovelace-Byron"],
  [[], [WANG], "小明"],
  [[], [WANG], "小明王"],
  // Seen red: in titles these lost their ends.
  [[], ["Анна Петрова"], "Марианна Петрова"],
  [[], ["Иван Петров"], "Иван Петровский"],
  [[], ["Ana Mari"], "Ana Marié"],
  [[], ["राम शर्मा"], "जयराम शर्मा"],
  [["ada@x.example"], [], "éada@x.example"],
  [[], ["דוד כהן"], "אדוד כהן"],
  // Seen red, each of these: somebody else's name lost its end.
  [[], ["Lise Martin"], "E\u0301lise Martin"],
  [[], ["רון לוי"], "שרון לוי, ושרון לוי"],
  [[], ["דר לוי"], "הדר לוי"],
  [[], ["ريم علي"], "كريم علي"],
];

test("as links, references and sentences have them, and in letters that set no words apart, they are found, and others are not", async () => {
  for (const [said, isFound] of [
    [FOUND, true],
    [NOT_FOUND, false],
  ] as const)
    for (const [mailboxes, names, text] of said) {
      const [[inText, inJson] = []] = mentionsOf(mailboxes, names);
      const sql = "SELECT $1 ~* $2 AS here, to_jsonb($1::text)::text ~* $3 AS json";
      const [found] = await database.query(sql, [text, inText, inJson]);
      expect({ text, ...found }).toEqual({ text, here: isFound, json: isFound });
      expect({ text, isFound: withoutMentions(text, mailboxes, names) !== text }).toEqual({ text, isFound });
    }
});

test("of one word a name is looked for where somebody says it, as a word of its own", () => {
  expect(withoutMentions("Call Suharto", [], ["Suharto"])).toBe("Call Suharto");
  const [[inText = ""] = []] = mentionsOf([], ["Suharto"]);
  expect(["Call Suharto.", "SUHARTO", "Suhartos"].map((text) => new RegExp(inText, "i").test(text))).toEqual([
    true,
    true,
    false,
  ]);
});

const TEXTS = `SELECT a.attrelid::regclass || '.' || a.attname AS name, a.attname AS column,
    (SELECT array_agg(pg_get_expr(c.conbin, c.conrelid)) FROM pg_constraint c
     WHERE c.conrelid = a.attrelid AND c.contype = 'c' AND c.conkey = ARRAY[a.attnum]) AS checks
  FROM pg_attribute a WHERE a.atttypid IN ('text'::regtype, 'jsonb'::regtype) AND a.attrelid IN (
    SELECT t.attrelid FROM pg_attribute t JOIN pg_class k ON k.oid = t.attrelid
    WHERE t.attname = 'tenant_id' AND k.relkind = 'r' AND k.relnamespace = 'public'::regnamespace)
  AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey))`;

// Seen red: statuses and kinds were looked through too, and with a text column taken for one of them.
test("of a tenant's texts all are looked through for a person but those that PostgreSQL lets hold nothing of anybody's", async () => {
  const texts = await database.query<{ name: string; column: string; checks: string[] | null }>(TEXTS);
  const open: string[] = [];
  for (const { name, column, checks } of texts) {
    const holds = `SELECT (${(checks ?? ["true"]).join(") AND (")}) AS it FROM (SELECT 'Ada Lovelace'::text AS ${column}) t`;
    if ((await database.query<{ it: boolean }>(holds))[0]?.it) open.push(name);
  }
  const looked = textsOf(database.opened()).flatMap(({ table, columns }) =>
    columns.map(({ name }) => `${table}.${name}`),
  );
  expect(open.length).toBeLessThan(texts.length - 15);
  expect(looked.sort()).toEqual(open.filter((name) => !NOT_LOOKED_THROUGH.has(name)).sort());
});
