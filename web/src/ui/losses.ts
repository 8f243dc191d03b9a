import { handover } from "../api/tokens";

/** What would be gone with the page, wherever in it somebody is by then. */
const losses = new Set<string>();

const warn = (event: BeforeUnloadEvent) => handover.isUnderWay || event.preventDefault();

/** While there is any such thing the browser asks before the page is left. */
export function setLoss(what: string, isLoss: boolean): void {
  losses[isLoss ? "add" : "delete"](what);
  // A page that listens is not kept for who goes back to it.
  if (losses.size > 0) window.addEventListener("beforeunload", warn);
  else window.removeEventListener("beforeunload", warn);
}

export const isLoss = (what: string): boolean => losses.has(what);
