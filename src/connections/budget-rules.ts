import type { CrmAnswer } from "../crm/http";
import type { CrmBudgetRow } from "../entities/crm-company";
import { DAY_MS, HOUR_MS, msApart } from "../platform/clock";

/**
 * What calls are made for: the first lists of a connection; lists later, with the looks at what is gone; participants, and
 * those of recorded meetings' deals where these have no tokens left; what is refreshed before a meeting; writes, with what
 * belongs to them (fields, look-ups, whose a token is).
 */
export type Purpose = "FIRST_LISTS" | "LISTS" | "PARTICIPANTS" | "DEALS_OF_MEETINGS" | "MEETINGS" | "WRITES";

export type BudgetState = Omit<CrmBudgetRow, "crmCompanyId" | "revision">;

/** The CRM's smallest plan with one seat: what is assumed where no limit is told. */
export const SMALLEST_LIMIT = 30_000;
/** A share of the limit. Where less than this is left, syncs leave it to the company's other apps. */
export const FLOOR = 0.1;
/** A share of the limit for meetings, beside the syncs' share. */
const MEETINGS_SHARE = 0.1;
/** A share of the limit: once writes, with the lists of fields among them, have cost it, such a list is read once an hour. */
const FIELDS_SHARE = 0.1;
/** Of the meetings' share, what may go to deals of meetings that are not about to begin; the rest is for those that are. */
const AHEAD = 0.5;
/** What a day of lists and looks costs where little changes; participants leave it, pro rata of what remains of the day. */
const LISTS_A_DAY = SMALLEST_LIMIT / 10;
/** As much of the syncs' share, at most, is left to what meetings and writes have spent. */
const MOST_OF_OTHERS = 0.5;
/** While nothing else may be asked, the balance is looked at so often: others' spending ends, a day begins, somebody buys. */
const LOOK_EVERY_MS = HOUR_MS;
/** A look is a call of this price (`users/me`). */
const LOOK_PRICE = 2;
/** Held back of the syncs' share, for the looks of a day. */
const LOOKS_A_DAY = (DAY_MS / LOOK_EVERY_MS) * LOOK_PRICE;
/** Tokens that a reservation sets aside at once: a statement for each ten pages, and what a killed process loses. */
export const BATCH = 100;
/** A share of the limit. A smaller rise of the balance does not mean a new day; it may be a correction of the CRM's. */
const JUMP = 0.05;
/**
 * A day that was seen to begin lasts so long at least, unless a balance tells that nearly nothing is spent: a CRM whose
 * balances jump must not give the share anew each time, nor one jump move the day for good.
 */
const SHORTEST_DAY_MS = DAY_MS / 2;
const NEARLY_FULL = 0.95;

const NOTHING_SPENT = { spentOnSyncs: 0, spentOnMeetings: 0, spentOnWrites: 0 };
const NEW_DAY = { ...NOTHING_SPENT, lookedAt: null, limitedAt: null };
const UNTOLD = { resetSeen: false, dailyLimit: null, remaining: null, toldAt: null };
/** The state of a company of which nothing was ever asked. */
export const newBudget = (now: Date): BudgetState => ({ ...NEW_DAY, ...UNTOLD, dayBeganAt: now });

const SPENT_ON = {
  FIRST_LISTS: "spentOnSyncs",
  LISTS: "spentOnSyncs",
  PARTICIPANTS: "spentOnSyncs",
  DEALS_OF_MEETINGS: "spentOnMeetings",
  MEETINGS: "spentOnMeetings",
  WRITES: "spentOnWrites",
} as const satisfies Record<Purpose, keyof BudgetState>;

function withSpent(state: BudgetState, purpose: Purpose, tokens: number): BudgetState {
  const column = SPENT_ON[purpose];
  return { ...state, [column]: Math.max(0, state[column] + tokens) };
}

export const dayEndsAt = ({ dayBeganAt }: BudgetState): Date => new Date(dayBeganAt.getTime() + DAY_MS);

/**
 * The state in the day that is now. Where no reset was seen in time, a day is assumed to begin 24 hours after the last one,
 * and the first one with our first call: never sooner than the CRM's own (decision 0072).
 */
export function presentDay(known: BudgetState, now: Date): BudgetState {
  // A clock that was far ahead once must neither keep a day from ending, nor a refusal from being over.
  const isAhead = (known.limitedAt?.getTime() ?? 0) > now.getTime() + LOOK_EVERY_MS;
  const state = isAhead ? { ...known, limitedAt: null } : known;
  const passed = now.getTime() - state.dayBeganAt.getTime();
  if (passed < -LOOK_EVERY_MS) return { ...state, dayBeganAt: now };
  const days = Math.floor(passed / DAY_MS);
  if (days < 1) return state;
  // One that was used up may last beyond an assumed beginning, but no longer than 24 hours: until then it is looked at.
  const mayLast = !state.resetSeen && state.limitedAt !== null && now.getTime() - state.limitedAt.getTime() < DAY_MS;
  const dayBeganAt = new Date(state.dayBeganAt.getTime() + days * DAY_MS);
  return { ...state, ...(mayLast ? NOTHING_SPENT : NEW_DAY), dayBeganAt };
}

/** What the company has left, where the CRM has told in the present day. */
export function balanceOf({ remaining, toldAt, dayBeganAt }: BudgetState): number | null {
  return toldAt !== null && toldAt >= dayBeganAt ? remaining : null;
}

const limitOf = ({ dailyLimit }: BudgetState): number => dailyLimit ?? SMALLEST_LIMIT;
/** What syncs, by their share, may spend a day. */
export const allowanceOf = (state: BudgetState, share: number): number => Math.floor(limitOf(state) * share);
export const spentOf = (state: BudgetState): number => state.spentOnSyncs + state.spentOnMeetings + state.spentOnWrites;

/** Nothing but writes, and what a meeting needs, is asked for now; after a 429 not that either. */
export const isShort = (state: BudgetState): boolean =>
  state.limitedAt !== null || (balanceOf(state) ?? Number.POSITIVE_INFINITY) < limitOf(state) * FLOOR;

/** Whether lists of fields are read anew for whoever chooses fields; else they are an hour old for all. @param state of the present day */
export const mayReadFields = (state: BudgetState): boolean =>
  !isShort(state) && state.spentOnWrites < limitOf(state) * FIELDS_SHARE;

/** Whether tokens that were set aside may still be spent, after what was told meanwhile. */
export function mayGoOn(state: BudgetState, purpose: Purpose): boolean {
  if (purpose === "WRITES") return true;
  if (purpose === "MEETINGS") return state.limitedAt === null && balanceOf(state) !== 0;
  return !isShort(state);
}

/** What may be spent on a purpose now, besides looks. @param state of the present day */
export function leftFor(state: BudgetState, purpose: Purpose, share: number, now: Date): number {
  if (purpose === "WRITES") return Number.POSITIVE_INFINITY;
  if (state.limitedAt !== null) return 0;
  const balance = balanceOf(state) ?? Number.POSITIVE_INFINITY;
  const leftForMeetings = (part: number) =>
    Math.max(0, Math.min(allowanceOf(state, part) - state.spentOnMeetings, balance));
  if (purpose === "MEETINGS") return leftForMeetings(MEETINGS_SHARE);
  if (isShort(state)) return 0;
  if (purpose === "DEALS_OF_MEETINGS") return leftForMeetings(MEETINGS_SHARE * AHEAD);
  return Math.max(0, mostFor(state, purpose, share, now) - LOOKS_A_DAY - state.spentOnSyncs);
}

function mostFor(state: BudgetState, purpose: Purpose, share: number, now: Date): number {
  const allowance = allowanceOf(state, share);
  if (purpose === "LISTS") return allowance;
  if (purpose === "FIRST_LISTS") {
    // Half of what was left when the syncs had spent nothing.
    const left = balanceOf(state) ?? limitOf(state) - spentOf(state);
    return Math.max(allowance, Math.floor((left + state.spentOnSyncs) / 2));
  }
  const rest = (dayEndsAt(state).getTime() - now.getTime()) / DAY_MS;
  // Participants can wait: with them the service stays within its share in all. Writes alone must not keep them away for good.
  const others = Math.min(state.spentOnMeetings + state.spentOnWrites, Math.floor(allowance * MOST_OF_OTHERS));
  return allowance - Math.ceil(LISTS_A_DAY * rest) - others;
}

/** Tokens that are set aside, with what is then known; or that there are none, and when to ask again. */
export type Spending = { state: BudgetState; granted: number } | { retryAt: Date };

/** @param state of the present day @param more what is set aside at once, where that is more than a batch */
export function spend(
  state: BudgetState,
  purpose: Purpose,
  price: number,
  share: number,
  now: Date,
  more = 0,
): Spending {
  const take = (granted: number): Spending => ({ granted, state: withSpent(state, purpose, granted) });
  if (purpose === "WRITES") return take(price);
  const left = leftFor(state, purpose, share, now);
  if (left >= price) return take(Math.min(Math.max(BATCH, price, more), left));
  const lookAt = nextLook(state, now);
  if (lookAt <= now && price <= LOOK_PRICE && SPENT_ON[purpose] === "spentOnSyncs")
    return { granted: price, state: { ...withSpent(state, purpose, price), lookedAt: now } };
  return { retryAt: retryAt(state, purpose, share, lookAt, now) };
}

/**
 * A day whose balance does not pay for a look is over at the reset, where that is known: a look before it would only be
 * refused. A 429 alone does not say so: it may be of whoever stands before the CRM. Used up as soon as it began, it may be the
 * day before, as where clocks are set back. A look that a clock ahead of its time has noted holds nobody up.
 */
function nextLook(state: BudgetState, now: Date): Date {
  const { lookedAt, limitedAt, resetSeen, dayBeganAt } = state;
  const isOfThisDay = limitedAt !== null && limitedAt.getTime() - dayBeganAt.getTime() > 2 * LOOK_EVERY_MS;
  const isUsedUp = (balanceOf(state) ?? LOOK_PRICE) < LOOK_PRICE;
  if (isOfThisDay && isUsedUp && resetSeen) return dayEndsAt(state);
  const last = lookedAt ?? limitedAt;
  if (last === null || msApart(last, now) >= LOOK_EVERY_MS) return now;
  return new Date(last.getTime() + LOOK_EVERY_MS);
}

function retryAt(state: BudgetState, purpose: Purpose, share: number, lookAt: Date, now: Date): Date {
  const end = dayEndsAt(state);
  const sooner = (at: Date) => (at < end ? at : end);
  const looked = sooner(lookAt > now ? lookAt : new Date(now.getTime() + LOOK_EVERY_MS));
  if (isShort(state)) return looked;
  if (purpose === "PARTICIPANTS") {
    // What is kept for lists comes free bit by bit.
    const lacking = BATCH + LOOKS_A_DAY + state.spentOnSyncs - mostFor(state, purpose, share, now);
    return sooner(new Date(now.getTime() + (lacking / LISTS_A_DAY) * DAY_MS));
  }
  return SPENT_ON[purpose] === "spentOnMeetings" || state.resetSeen ? end : looked;
}

/** Tokens that were set aside and not spent. @param day that they were set aside in: those of an earlier one are gone */
export const givenBack = (state: BudgetState, purpose: Purpose, tokens: number, day: Date): BudgetState =>
  day.getTime() === state.dayBeganAt.getTime() ? withSpent(state, purpose, -tokens) : state;

/** One answer, with what was known when its request was sent. */
export interface Told {
  answer: Pick<CrmAnswer, "status" | "limit" | "day">;
  purpose: Purpose;
  price: number;
  sentAt: Date;
  /** The day and the balance as they were known then; the balance may be of the day before. */
  day: Date;
  before: number | null;
  at: Date;
}

/**
 * What an answer changes. A balance cannot rise but by a new day or a purchase: one that is higher than what was known
 * when its request was sent tells of either, in whatever order answers arrive.
 * @param state of the present day
 */
export function told(state: BudgetState, answered: Told): BudgetState {
  const { answer, price, sentAt, day, before, at } = answered;
  if (sentAt < state.dayBeganAt) return state;
  const limit = answer.day.limit || state.dailyLimit;
  const known = { ...state, dailyLimit: limit, limitedAt: limitedAt(state, answered) };
  if (answer.day.remaining === null) return known;
  // The header says what was left before the call's own price was taken; a refused one costs nothing.
  const remaining = Math.max(0, answer.day.remaining - (answer.status === 429 ? 0 : price));
  const isOfSameDay = day.getTime() === state.dayBeganAt.getTime();
  const rise = isOfSameDay && before !== null ? answer.day.remaining - before : 0;
  const bought = Math.max(0, (limit ?? 0) - (state.dailyLimit ?? limit ?? 0));
  // Where a day was assumed since the balance was last told, it is that one.
  const isFirstOfDay = balanceOf(state) === null;
  const isJustSeen =
    state.resetSeen &&
    at.getTime() - state.dayBeganAt.getTime() < SHORTEST_DAY_MS &&
    answer.day.remaining < limitOf(known) * NEARLY_FULL;
  if (rise - bought > limitOf(known) * JUMP && !isFirstOfDay && !isJustSeen) {
    const newDay = { ...known, ...NEW_DAY, dayBeganAt: at, resetSeen: true, remaining, toldAt: at };
    return withSpent(newDay, answered.purpose, price);
  }
  const lowest = rise > 0 ? remaining : Math.min(balanceOf(state) ?? remaining, remaining);
  return { ...known, remaining: lowest, toldAt: at };
}

/** Since when the day's tokens are known to be used up; a limit of seconds is no reason to stop for the day. */
function limitedAt(state: BudgetState, { answer, price, sentAt, at }: Told): Date | null {
  const { status, limit, day } = answer;
  const isDaily = day.remaining === null ? limit.remaining !== 0 : day.remaining < price;
  if (status === 429) return isDaily ? at : state.limitedAt;
  const isOver = state.limitedAt !== null && status < 300 && sentAt > state.limitedAt;
  return isOver ? null : state.limitedAt;
}
