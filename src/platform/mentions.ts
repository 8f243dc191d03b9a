import { domainToUnicode } from "node:url";
import { decodeHTML, encodeHTML } from "entities";
import { domainOf, ERASED, GMAIL, localPartOf } from "./email-address";

// How a person is found in texts.

/** For texts, and for JSON as text. What stands before a mention is the first group: it stays. */
export type Patterns = readonly [text: string, json: string];

/** A name of more words is looked for as it stands alone: each of its orders makes the expressions longer. */
const MOST_TURNED_WORDS = 6;
/** RFC 5321 4.5.3.1.1: what stands before the @ has 64 octets. Looked for without an end, tags take time by the square of a text of them. */
const LONGEST_TAG = 64;
/** UTF-16 units of a name between whose letters blanks are looked for. */
const LONGEST_SPLIT = 30;
/** A longer text is no name. */
const LONGEST_NAME = 300;
/** UTF-16 units of one expression: PostgreSQL makes one of 15,000 ready in 30 ms, of 50,000 in 220, and finds no memory for 150,000. */
const LONGEST_PATTERN = 15_000;

/**
 * SQL: whether the database, of a cluster the node of tenant `$1`, takes more than A to Z for letters. Where its LC_CTYPE is C it
 * does not, and these expressions would miss names in capitals, and find short ones within longer words.
 */
export const KNOWS_LETTERS = "SELECT 'Ж' ~* 'ж' AS known FROM connection WHERE tenant_id = $1 HAVING true";

/**
 * How a person is found in texts, as regular expressions of PostgreSQL and of JavaScript: each mailbox in all its spellings,
 * and each name in all its orders, neither as a part of a longer word. Nothing in them matches one place in two ways, so
 * that they take time by the length of the text.
 */
export function mentionsOf(mailboxes: Iterable<string>, names: readonly string[]): Patterns[] {
  const short = names.filter(({ length }) => length <= LONGEST_NAME);
  const orders = [...new Map(short.flatMap(ordersOf).map((words) => [words.join(" "), words])).values()];
  const spellings = (between: string, spell: Spell) => [
    ...[...mailboxes].map((mailbox) => spellingsOf(mailbox, spell)),
    ...orders.map((words) => inRow(words, between, spell)),
  ];
  const inText = spellings(blank("[^<>]"), spelling(literal));
  const inJson = spellings(
    // A tag that goes on behind its text would take the next one, and leave what is no JSON.
    `${blank(String.raw`[^<>"\\]|\\.`)}|${ESCAPED}`,
    spelling((text) => literal(JSON.stringify(text).slice(1, -1))),
  );
  const [touching, touched] = orders.some((words) => words.every(isRunningOn)) ? [TOUCHING, TOUCHED] : ["", ""];
  const prefixed = orders.some(([first = ""]) => SEMITIC.test(first)) ? PREFIXED : "";
  const mentioned = (before: string, spelled: readonly string[]) =>
    `(${APART}${touching}${prefixed}${before})(?:${spelled.join("|")})(?:${touched}(?=${RUNNING_ON})|(?![\\w\\u0300-\\u036f-]))`;
  return inPieces(inJson).map(([from, to]) => [
    mentioned("", inText.slice(from, to)),
    // What ends a line is an escape whose last character is a letter or a digit.
    mentioned(`|${ESCAPED}`, inJson.slice(from, to)),
  ]);
}

/** A text without what they find in it, of the names by those that are one person's. */
export function withoutMentions(text: string, mailboxes: Iterable<string>, names: readonly string[]): string {
  const patterns = mentionsOf(mailboxes, names.filter(isOnes));
  return patterns.reduce(
    (left, [inText]) => left.replace(new RegExp(asInPostgres(inText), "giu"), `$1${ERASED}`),
    text,
  );
}

/** PostgreSQL knows the letters of all languages; without this "Анна" is found in "Марианна". */
const asInPostgres = (pattern: string) => pattern.replaceAll(String.raw`\w`, String.raw`\p{Alphabetic}\p{M}0-9_`);

/** A comma ends its word with or without a blank behind it, and so do some letters. */
const inRow = ([first = "", ...more]: string[], between: string, spell: Spell) =>
  more.reduce((row, word) => {
    const mayTouch = row.endsWith(spell(",")) || isUnspaced(word);
    return `${row}(?:${between})${mayTouch ? "*" : "+"}${spell(word)}`;
  }, spell(first));

/** From which spelling to which makes one expression: of nothing there is none, as it would be found everywhere. */
function inPieces(spellings: readonly string[]): [from: number, to: number][] {
  let units = 0;
  const starts = spellings.flatMap(({ length }, at) => {
    units = at > 0 && units + length <= LONGEST_PATTERN ? units + length : length;
    return units === length ? [at] : [];
  });
  return starts.map((from, piece) => [from, starts[piece + 1] ?? spellings.length]);
}

/** Between words, in HTML and links too, and as kana has foreign names. @param inTag what may stand in a tag */
const blank = (inTag: string) =>
  `[\\s\\u00a0\\u30fb]|%20|${REFERENCE}(?:nbsp|#(?:0*(?:32|160)|x0*(?:20|a0)));|<(?:${inTag})*>`;
/** A control character in JSON. */
const ESCAPED = String.raw`\\(?:[bfnrt]|u00[01].)`;

/** Kana, Han and Hangul: who reads them sees words where nothing sets them apart. So do Thai, Lao, Burmese and Khmer but within a name. */
const UNSPACED = "\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7af";
const RUNNING_ON = `[${UNSPACED}\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff]`;
/**
 * Behind the dot of a sentence without a blank, but not within an address, and behind letters that set no words apart. An
 * accent of its own, which is no letter to PostgreSQL, goes on with its word.
 */
const APART = `^|[^\\w\\u0300-\\u036f.+-]|[.+](?![\\w.+-]{0,${LONGEST_TAG}}@)|%[0-9a-f]{2}|(?<=${RUNNING_ON})`;
const [TOUCHING, TOUCHED] = [`|(?=${RUNNING_ON})`, `(?<=${RUNNING_ON})|`];
const isUnspaced = (word: string) => new RegExp(`^[${UNSPACED}]+,?$`).test(word);
const isRunningOn = (word: string) => new RegExp(`^${RUNNING_ON}+,?$`).test(word);
/** Hebrew and Arabic write "and", "to" and "by" as a letter before the name. */
const SEMITIC = /^[\u0590-\u06ff]/;
const PREFIX = "[\\u05d1\\u05d5\\u05db\\u05dc\\u05de\\u05e9\\u0628\\u0641\\u0643\\u0644\\u0648]";
/** Names that are also such a letter before another name: Sharon is no "that Ron". */
const LIKE_PREFIXED = "שרון|שגיא|שלי|שירן|לירון|לירן|מאור|מירון|מרינה|משי|מעוז|كريم|بسام|وسام";
const PREFIXED = `|(?:^|[^\\w])(?!${PREFIX}?(?:${LIKE_PREFIXED})[^\\w])${PREFIX}{1,2}(?=[\\u0590-\\u06ff])`;
/** Of one word a name is everybody's, but in such letters it is both names. */
export const isOnes = (name: string): boolean => ordersOf(name).some(({ length }) => length > 1);

/**
 * The words of a name as it stands, as it is said, and as lists have it: "Ada van Berg", "van Berg, Ada", "Berg, Ada van". In letters
 * that set no words apart, the surname first without a comma, and with a blank or none anywhere.
 */
function ordersOf(name: string): string[][] {
  const wordsOf = (text: string) => text.normalize("NFC").split(/\s+/).filter(Boolean);
  const parts = name.split(",").map(wordsOf);
  const said = parts.length === 2 ? parts.toReversed().flat() : wordsOf(name);
  const isTurned = parts.length <= 2 && said.length <= MOST_TURNED_WORDS;
  const commas = said.every(isUnspaced) ? [",", ""] : [","];
  const turns = said.slice(1).flatMap((_, at) => commas.map((comma) => ({ by: at + 1, comma })));
  const turned = turns.map(({ by, comma }) => [...said.slice(by, -1), `${said.at(-1)}${comma}`, ...said.slice(0, by)]);
  const orders = [wordsOf(name), said, ...(isTurned ? turned : [])].map((words) =>
    words.every(isUnspaced) && name.length <= LONGEST_SPLIT
      ? words.flatMap((word) => word.match(/.,?/gu) ?? [])
      : words,
  );
  const fewest = orders.some(({ length }) => length > 1) ? 2 : 1;
  return orders.filter(({ length }) => length >= fewest);
}

/** A mailbox as people write it: tagged, with its domain as it is read, and Gmail's with dots and by either name. */
function spellingsOf(mailbox: string, spell: Spell): string {
  const [local, domain] = [localPartOf(mailbox), domainOf(mailbox)];
  const isGmail = GMAIL.has(domain);
  const domains = isGmail ? [...GMAIL] : [domain, domainToUnicode(domain)];
  const spelled = isGmail ? [...local].map(spell).join(`${spell(".")}?`) : spell(local);
  const tag = `(?:${spell("+")}|%2b)[^@\\s"]{0,${LONGEST_TAG}}`;
  return `${spelled}(?:${tag})?(?:${spell("@")}|%40)${anyOf(domains.map(spell))}`;
}

/** A text as a part of a regular expression. */
const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

type Spell = (text: string) => string;

/** How a reference of HTML begins, which may have been escaped again. */
const REFERENCE = "&(?:amp;)*";

/** Of characters that have several names, of which the library gives one. */
const MORE_NAMES = "rsquo rsquor hyphen UnderBar inodot epsilon upsilon sigmav varsigma"
  .split(" ")
  .map((name) => ({ name, of: decodeHTML(`&${name};`) }));

/**
 * A text with each of its characters as any text may have it: in either case, which a reference and some databases' locales
 * tell apart, in either Unicode form, and as HTML refers to it. @param write how the text itself has it
 */
const spelling = (write: Spell): Spell => {
  const point = (points: readonly string[]) => {
    const codes = points.map((one) => one.codePointAt(0) ?? 0);
    const [decimal, hex] = [10, 16].map((radix) => anyOf(codes.map((code) => code.toString(radix))));
    const more = MORE_NAMES.filter(({ of }) => points.includes(of)).map(({ name }) => name);
    const names = [...points.flatMap((one) => /^&(\w+);$/.exec(encodeHTML(one))?.slice(1) ?? []), ...more];
    // The flag that both engines are given makes one of a letter's two cases.
    const plain = points.map((one) => write(/[A-Z]/.test(one) ? one.toLowerCase() : one));
    return anyOf([...plain, `${REFERENCE}${anyOf([`#(?:0*${decimal}|x0*${hex})`, ...names])};`]);
  };
  return (text) =>
    [...text.normalize("NFC")]
      .map((one) => {
        const forms = casesOf(one).flatMap((like) => [like.normalize("NFC"), like.normalize("NFD")]);
        const alone = forms.filter((form) => [...form].length === 1);
        const apart = new Map<string, string[]>();
        for (const [first = "", ...marks] of forms)
          if (marks.length > 0) apart.set(marks.join(""), [...(apart.get(marks.join("")) ?? []), first]);
        const behind = (marks: string) => [...marks].map((mark) => point([mark])).join("");
        return anyOf([point(alone), ...[...apart].map(([marks, firsts]) => point(firsts) + behind(marks))]);
      })
      .join("");
};

/** Characters that are written for each other: Turkish has two i, and Greek capitals have no accents. */
const ALIKE = "'’‘ʼ`´ -\u2010\u2011\u05be iIıİ σςΣ αάΑΆ εέΕΈ ηήΗΉ ιίΙΊ ϊΐΪ οόΟΌ υύΥΎ ϋΰΫ ωώΩΏ".split(" ");
const casesOf = (one: string) =>
  ALIKE.find((alike) => alike.includes(one))?.split("") ?? [one, one.toLowerCase(), one.toUpperCase()];
const anyOf = (spellings: readonly string[]) => {
  const [first = "", ...more] = new Set(spellings);
  return more.length === 0 ? first : `(?:${[first, ...more].join("|")})`;
};
