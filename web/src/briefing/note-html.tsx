import { createElement, Fragment, type ReactNode } from "react";
import { schemeOf } from "../api/tokens";

/** The service's own list of what a note may hold: what it sends is safe, and nothing else than this is made of it. */
const TAGS = new Set(
  "p br div span h1 h2 h3 h4 blockquote pre code hr b strong i em u s ul ol li a table thead tbody tr th td".split(" "),
);
/** The page has headings of its own above a note: those within it come right below them. */
const BELOW: Readonly<Record<string, string>> = { h1: "h3", h2: "h3", h4: "h3" };
const VOID = new Set(["br", "hr"]);
const SCHEMES = ["http:", "https:", "mailto:", "tel:"];

interface Policy {
  createHTML(html: string): string;
}
type Factory = { createPolicy(name: string, rules: Policy): Policy };

/** The page's policy takes HTML from a named maker only. This one's goes to a parser whose document runs and loads nothing. */
const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
const policy = factory?.createPolicy("note-to-read", { createHTML: (html) => html });

/** A note as its author formatted it. Elements are made one by one, so no text of it is ever read as markup. */
export function NoteHtml({ html }: { html: string }) {
  const { body } = new DOMParser().parseFromString(policy?.createHTML(html) ?? html, "text/html");
  return <div className="note-html">{childrenOf(body)}</div>;
}

const childrenOf = (parent: Node): ReactNode[] => [...parent.childNodes].map(nodeOf);

function nodeOf(node: Node, key: number): ReactNode {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!(node instanceof Element)) return null;
  const tag = node.localName;
  if (!TAGS.has(tag)) return createElement(Fragment, { key }, ...childrenOf(node));
  if (VOID.has(tag)) return createElement(tag, { key });
  const attributes = tag === "a" ? linkOf(node) : tag === "ol" ? numbersOf(node) : {};
  return createElement(BELOW[tag] ?? tag, { key, ...attributes }, ...childrenOf(node));
}

function numbersOf(list: Element): object {
  const start = Number(list.getAttribute("start") ?? 1);
  return Number.isSafeInteger(start) ? { start } : {};
}

function linkOf(node: Element): object {
  const href = node.getAttribute("href") ?? "";
  return SCHEMES.includes(schemeOf(href)) ? { href, target: "_blank", rel: "noopener noreferrer" } : {};
}
