import type { MeetingFilter, MeetingOrder } from "../api/operations.generated";

/** What somebody wants to see of the meetings. It stands in the address. */
export interface Wishes {
  tab: Tab;
  search: string;
  mine: boolean;
  cancelled: boolean;
}

export type Tab = "all" | "choice" | "none";
/** Characters: the service looks for no more. */
export const LONGEST_SEARCH = 100;
const TABS: readonly Tab[] = ["all", "choice", "none"];

/** Of any address: what makes no sense is as if it were not there. */
export function readWishes(search: string): Wishes {
  const given = new URLSearchParams(search);
  return {
    tab: TABS.find((tab) => tab === given.get("show")) ?? "all",
    search: (given.get("q") ?? "").replaceAll("\0", "").slice(0, LONGEST_SEARCH),
    mine: given.get("mine") === "1",
    cancelled: given.get("cancelled") === "1",
  };
}

export function writeWishes({ tab, search, mine, cancelled }: Wishes): string {
  const said = new URLSearchParams();
  if (tab !== "all") said.set("show", tab);
  if (search) said.set("q", search);
  if (mine) said.set("mine", "1");
  if (cancelled) said.set("cancelled", "1");
  return `${said}` && `?${said}`;
}

const STATUS = { all: undefined, choice: "NEEDS_CHOICE", none: "NONE" } as const;

/** @param email the viewer's; null where the token has none, and then nobody's meetings are theirs */
export function filterOf({ tab, search, mine, cancelled }: Wishes, email: string | null): MeetingFilter {
  const status = STATUS[tab];
  return {
    ...(status && { status: [status] }),
    ...(search.trim() && { search: search.trim() }),
    ...(mine && email && { ownerEmail: email }),
    // A cancelled meeting has no deal, and nobody has to choose one for it.
    includeCancelled: cancelled && tab === "all",
  };
}

/** Whether there may be meetings that are not asked for; a cancelled one does not take place. */
export const isNarrowed = ({ tab, search, mine }: Wishes): boolean => tab !== "all" || search.trim() !== "" || mine;

export interface Section {
  name: "Today" | "Upcoming" | "Past";
  within: Pick<MeetingFilter, "from" | "to">;
  orderBy: MeetingOrder;
}

/** What comes is read forwards, what has been backwards; the reader's own midnight lies between. */
export function sectionsAt(now: Date): Section[] {
  const midnight = (days: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).toISOString();
  const [from, to] = [midnight(0), midnight(1)];
  return [
    { name: "Today", within: { from, to }, orderBy: "STARTS_AT_ASC" },
    { name: "Upcoming", within: { from: to }, orderBy: "STARTS_AT_ASC" },
    { name: "Past", within: { to: from }, orderBy: "STARTS_AT_DESC" },
  ];
}
