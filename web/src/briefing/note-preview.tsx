import MarkdownIt, { type Token } from "markdown-it";
import { createElement, Fragment, type ReactNode } from "react";

/** As the service renders it: HTML in the text is text, a link stands where it is written and leads out, an image is a link. */
const markdown = new MarkdownIt({ html: false }).disable(["reference", "image"]);
markdown.validateLink = (href) => /^\s*(?:https?:\/\/|mailto:|tel:)/i.test(href);

/** The note as the CRM will show it. Elements are made one by one, so no text of it is ever read as markup. */
export default function NotePreview({ content }: { content: string }) {
  return <>{childrenOf(markdown.parse(content, {}))}</>;
}

/** The page has headings of its own above a note: those within it come right below them, as in a note that was written. */
const BELOW = /^h[1-6]$/;
const ATTRIBUTES = new Set(["href", "title", "start"]);

/** markdown-it gives a flat list: opening, content and closing tokens. */
function childrenOf(tokens: readonly Token[]): ReactNode[] {
  const open: { tag: string; token: Token; children: ReactNode[] }[] = [];
  const top: ReactNode[] = [];
  const add = (node: ReactNode) => (open.at(-1)?.children ?? top).push(node);
  for (const [index, token] of tokens.entries()) {
    if (token.nesting === 1) {
      open.push({ tag: token.hidden ? "" : token.tag, token, children: [] });
    } else if (token.nesting === -1) {
      const closed = open.pop();
      if (closed) add(element(closed.tag, closed.token, closed.children, index));
    } else {
      add(single(token, index));
    }
  }
  return top;
}

function single(token: Token, key: number): ReactNode {
  if (token.type === "inline") return createElement(Fragment, { key }, ...childrenOf(token.children ?? []));
  if (token.type === "text") return token.content;
  if (token.type === "softbreak") return "\n";
  if (token.type === "fence" || token.type === "code_block") {
    return createElement("pre", { key }, createElement("code", null, token.content));
  }
  return token.tag === "" ? token.content : element(token.tag, token, token.content ? [token.content] : [], key);
}

function element(tag: string, token: Token, children: ReactNode[], key: number): ReactNode {
  if (tag === "") return createElement(Fragment, { key }, ...children);
  const attributes = Object.fromEntries((token.attrs ?? []).filter(([name]) => ATTRIBUTES.has(name)));
  const link = tag === "a" ? { target: "_blank", rel: "noreferrer" } : {};
  return createElement(BELOW.test(tag) ? "h3" : tag, { key, ...attributes, ...link }, ...children);
}
