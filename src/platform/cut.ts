/** At most so many UTF-16 units of a text, without half a character at the end. */
export function cutText(text: string, limit: number): string {
  return text.length > limit ? text.slice(0, limit).replace(/[\ud800-\udbff]$/, "") : text;
}

/** What a cut leaves of a tag, or of an entity, which without its end names another character. */
const TORN_END = /(?:<[^<>]*|&#?\w{0,64})$/;

/** The same for HTML: no torn tag or entity at the end. Elements may stay open, as they may in anybody's HTML. */
export function cutHtml(html: string, limit: number): string {
  return html.length > limit ? cutText(html, limit).replace(TORN_END, "") : html;
}
