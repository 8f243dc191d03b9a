/** What a text says as JSON; undefined where it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const [QUOTE, BACKSLASH, COMMA, LIST, OBJECT, LETTER_U, LETTER_D, ZERO] = Buffer.from('"\\,[{ud0');
const LOWER_CASE = 0x20;

/**
 * Whether JSON text has more parts than that: values, and escapes of what PostgreSQL does not take, each of which costs
 * work of its own. Looks at characters only, so that it takes ten times less than to parse what has that many.
 */
export function hasMoreParts(text: string, most: number): boolean {
  let parts = 0;
  let isString = false;
  for (let at = 0; at < text.length && parts <= most; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isString = !isString;
    else if (!isString) parts += code === COMMA || code === LIST || code === OBJECT ? 1 : 0;
    else if (code === BACKSLASH) {
      at += 1;
      if (text.charCodeAt(at) === LETTER_U && isUnstorable(text, at + 1)) parts += 1;
    }
  }
  return parts > most;
}

/** NUL, or half a character: the four digits that follow its `\u`. */
function isUnstorable(text: string, at: number): boolean {
  if ((text.charCodeAt(at) | LOWER_CASE) === LETTER_D) return true;
  for (let digit = at; digit < at + 4; digit += 1) if (text.charCodeAt(digit) !== ZERO) return false;
  return true;
}
