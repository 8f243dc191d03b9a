import { open, rm } from "node:fs/promises";
import { z } from "zod";
import { recordAudit } from "../auth/policies";
import type { Budget } from "../connections/budget";
import { connectedCopyId } from "../connections/connection";
import { CrmApi } from "../crm/api";
import { ADDRESSES, EPOCH_FROM, type TokenSource } from "../crm/calls";
import { CrmError } from "../crm/errors";
import { type CrmAnswer, CrmHttp, type CrmRequest, routeOf, textOf } from "../crm/http";
import { jsonOf } from "../crm/parsing/values";
import type { Database } from "../database/database";
import { DAY_MS, MINUTE_MS, systemClock } from "../platform/clock";
import { messageOf } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { COMMANDS_OF_A_TERMINAL } from "./checks";
import { NotDoneError } from "./person";

export interface ProbeParts {
  database: Database;
  crmBaseUrl: string;
  logger: Logger;
  budget: Budget;
  tokensOf(tenantId: number, copyId: number): TokenSource;
  /** @throws ServiceError where the operator has stopped all calls */
  requireNoStop(): Promise<void>;
}

/** One call as it was answered: no address with an id in it, and nothing of its body. */
interface ProbedCall {
  route: string;
  status: number;
  /** What the CRM's reference says that it costs. */
  price: number;
  /** How much less the next answer said is left; null: one of the two did not say. */
  balanceFell: number | null;
  /** Names of headers that say something of limits, times or support. */
  headers: string[];
}

/** What nobody had confirmed of the CRM, as this account shows it. */
interface Fact {
  fact: string;
  /** UNKNOWN: this account has nothing that would show it, or its records disagree. */
  says: string;
  /** By what: counts of records and answers, and none of their content. */
  seen: Record<string, number>;
}

export interface ProbeReport {
  form: 1;
  calls: ProbedCall[];
  facts: Fact[];
}

/** Deals whose participants are read: each costs a call. */
const MOST_DEALS = 3;
/** Of a deal with more, several pages would be read. */
const MOST_PARTICIPANTS = 100;
/** All calls together, with a repeat or two. */
const MOST_TOKENS = 200;
/** The CRM forgets a deleted deal after 30 days. */
const DELETED_SINCE_MS = 29 * DAY_MS;
/** Times that are closer are of one change; those that are further apart are of two. */
const SAME_CHANGE_MS = MINUTE_MS;

/**
 * `npm run doctor -- --crm TENANT`: settles with one connected account what is not confirmed of the CRM. It reads, by the
 * service's own calls, and pays as its syncs do.
 * @throws NotDoneError where there is nothing to ask, or where the tokens are needed for others
 */
export async function probeCrm(parts: ProbeParts, tenant: string): Promise<ProbeReport> {
  const { database, budget, logger } = parts;
  await parts.requireNoStop();
  const found = "SELECT id FROM tenant WHERE external_id = $1";
  const [known] = await database.acrossTenants<{ id: number }>(found, [tenant], { id: "number" });
  const copyId = known && (await connectedCopyId(database.tenant(known.id)));
  if (!known || !copyId) throw new NotDoneError(`${tenant} has no connection that works now. Nothing was asked.`);
  const until = await budget.shortUntil(known.id, copyId, "LISTS", MOST_TOKENS, systemClock());
  if (until) {
    const why = `The company's tokens are needed for others until ${until.toISOString()}: this takes up to ${MOST_TOKENS}.`;
    throw new NotDoneError(`${why} Nothing was asked.`);
  }
  // Before anything is read, in the user's name.
  await recordAudit(database.tenant(known.id), logger, { action: "CRM_PROBED", actor: null, at: systemClock() });
  const http = new HearingHttp(undefined, undefined, () => parts.requireNoStop());
  const reservation = budget.reservation(known.id, copyId, "LISTS");
  const tokens = parts.tokensOf(known.id, copyId);
  try {
    await ask(new CrmApi({ http, baseUrl: parts.crmBaseUrl, tokens, reservation }), http);
  } finally {
    await reservation.release();
    await http.close();
  }
  return { form: 1, calls: callsOf(http.heard), facts: factsOf(http.heard) };
}

interface Heard {
  route: string;
  query: URLSearchParams;
  answer: CrmAnswer;
}

/** Keeps the answers of this one probe, for what no parser of the service reads. */
class HearingHttp extends CrmHttp {
  readonly heard: Heard[] = [];

  override async send(asked: CrmRequest): Promise<CrmAnswer> {
    const answer = await super.send(asked);
    this.heard.push({ route: routeOf(asked), query: new URL(asked.url).searchParams, answer });
    return answer;
  }
}

/** One call after the other, so that neighbouring balances differ by the price of the first. */
async function ask(api: CrmApi, { heard }: HearingHttp): Promise<void> {
  const whole = { cursor: null };
  await api.currentUser();
  await unlessRefused(api.users());
  await unlessRefused(api.persons(whole));
  await unlessRefused(api.deals(whole));
  for (const { id } of dealsToCompare(heard)) await unlessRefused(api.participantIds(id, MOST_PARTICIPANTS));
  await unlessRefused(api.deals({ ...whole, updatedSince: new Date(Date.now() - DELETED_SINCE_MS) }));
  const deleted = deletedDeal(heard);
  if (deleted) {
    await unlessRefused(api.deals({ ...whole, ids: [deleted.id] }));
    await unlessRefused(api.customFieldsOf("DEAL", deleted.id));
  }
  await unlessRefused(api.notes(whole));
  await unlessRefused(api.currentUser());
}

/** What the CRM refuses is an answer too; no answer, a spent budget and a lost authorization end the probe. */
async function unlessRefused(call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    if (!(error instanceof CrmError) || error.detail.status === undefined) throw error;
  });
}

const PRICES = [
  ...Object.values(ADDRESSES).flatMap((address) => (typeof address === "function" ? [] : [address])),
  { path: "/api/v1/deals/{id}/participants", price: ADDRESSES.participants(0).price },
  { path: `${ADDRESSES.deals.path}/{id}`, price: ADDRESSES.record("DEAL", 0).price },
];
/** Creating a note has its own price, at the address of the list: the first of the two is the list's. */
const priceOf = (route: string) => PRICES.find(({ path }) => `GET ${path}` === route)?.price ?? 0;

const TELLING = /^(x-[a-z-]{1,60}|retry-after|date)$/;

function callsOf(heard: readonly Heard[]): ProbedCall[] {
  return heard.map(({ route, answer }, index) => {
    const next = heard[index + 1]?.answer.day.remaining ?? null;
    const { remaining } = answer.day;
    return {
      route,
      status: answer.status,
      price: priceOf(route),
      balanceFell: remaining === null || next === null ? null : remaining - next,
      headers: answer.headerNames.filter((name) => TELLING.test(name)).sort(),
    };
  });
}

/** v1 has times without a zone, in UTC. */
const time = z
  .string()
  .transform((text) => Date.parse(/[zZ+]/.test(text) ? text : `${text.replace(" ", "T")}Z`))
  .nullish()
  .catch(null);
const flag = z.boolean().nullish().catch(null);
const dealForm = z.object({
  id: z.int(),
  person_id: z.int().nullish(),
  participants_count: z.int().nullish(),
  add_time: time,
  update_time: time,
  is_deleted: flag,
  status: z.string().nullish(),
});
const personForm = z.object({ update_time: time, last_incoming_mail_time: time, last_outgoing_mail_time: time });
const linkForm = z.object({
  person_id: z.object({ value: z.int() }),
  related_item_id: z.int().nullish(),
  add_time: time,
});
const userForm = z.object({ active_flag: flag });

/** The records of all answers to such calls, as far as they have that form. */
function recordsOf<T>(heard: readonly Heard[], form: z.ZodType<T>, is: (call: Heard) => boolean): T[] {
  const list = z.object({ data: z.array(z.unknown()).nullable() });
  return heard.filter(is).flatMap(({ answer }) => {
    const data = list.safeParse(jsonOf(textOf(answer))).data?.data ?? [];
    return data.flatMap((record) => form.safeParse(record).data ?? []);
  });
}

const asks =
  (path: string, has: string | null = null) =>
  (call: Heard) =>
    call.route === `GET ${path}` &&
    (has === null ? !call.query.has("status") && !call.query.has("ids") : call.query.has(has));

const isDeleted = ({ is_deleted, status }: z.output<typeof dealForm>) => is_deleted === true || status === "deleted";
const wholeDeals = (heard: readonly Heard[]) => recordsOf(heard, dealForm, asks(ADDRESSES.deals.path));
const deletedDeal = (heard: readonly Heard[]) =>
  recordsOf(heard, dealForm, asks(ADDRESSES.deals.path, "status")).find(isDeleted);

/** Those that somebody joined after they were made show most. */
function dealsToCompare(heard: readonly Heard[]) {
  const few = ({ participants_count: count }: z.output<typeof dealForm>) => count != null && count < MOST_PARTICIPANTS;
  return wholeDeals(heard)
    .filter((deal) => deal.person_id != null && few(deal))
    .sort((one, other) => (other.participants_count ?? 0) - (one.participants_count ?? 0))
    .slice(0, MOST_DEALS);
}

/** In the order in which the report has them. */
function factsOf(heard: readonly Heard[]): Fact[] {
  return [
    ...participantFacts(heard),
    mailFact(heard),
    ...deletionFacts(heard),
    ...headerFacts(heard),
    priceFact(heard),
    pageFact(heard),
    usersFact(heard),
  ];
}

/** One thing and its opposite: what all that was seen agrees on. */
function agreed(fact: string, seen: Record<string, number>): Fact {
  const said = Object.keys(seen).filter((name) => (seen[name] ?? 0) > 0);
  return { fact, says: said.length === 1 ? String(said[0]) : "UNKNOWN", seen };
}

const count = <T>(all: readonly T[], is: (one: T) => boolean) => all.filter(is).length;

function participantFacts(heard: readonly Heard[]): Fact[] {
  const links = recordsOf(heard, linkForm, ({ route }) => route === "GET /api/v1/deals/{id}/participants");
  const deals = dealsToCompare(heard).map((deal) => {
    const its = links.filter(({ related_item_id: id }) => id === deal.id);
    const others = count(its, ({ person_id: { value } }) => value !== deal.person_id);
    return { deal, its, hasPerson: others < its.length, counted: (deal.participants_count ?? 0) - others };
  });
  const read = deals.filter(({ its }) => its.length > 0);
  const times = read.flatMap(({ deal, its }) => its.map((link) => ({ deal, link })));
  const apart = (one: number | null | undefined, other: number | null | undefined) => (one ?? 0) - (other ?? 0);
  const joined = times.filter(({ deal, link }) => apart(link.add_time, deal.add_time) > SAME_CHANGE_MS);
  // A participant whom this user does not see is counted all the same: that looks like YES, and never like NO.
  const seen = { YES: count(read, ({ counted }) => counted === 1), NO: count(read, ({ counted }) => counted === 0) };
  return [
    {
      fact: "participants_count counts the deal's person",
      says: seen.NO > 0 ? "NO" : seen.YES > 0 ? "YES" : "UNKNOWN",
      seen,
    },
    agreed("participants lists the deal's person", {
      YES: count(read, ({ hasPerson }) => hasPerson),
      NO: count(read, ({ hasPerson }) => !hasPerson),
    }),
    movedFact("a participant who joins moves the deal's update time", joined, ({ deal, link }) =>
      apart(link.add_time, deal.update_time),
    ),
  ];
}

/** Where anything came after the last change, it did not move it; one that came with it is no more than a sign. */
function movedFact<T>(fact: string, all: readonly T[], laterBy: (one: T) => number): Fact {
  const seen = {
    later: count(all, (one) => laterBy(one) > SAME_CHANGE_MS),
    together: count(all, (one) => Math.abs(laterBy(one)) <= SAME_CHANGE_MS),
  };
  return { fact, says: seen.later > 0 ? "NO" : seen.together > 0 ? "YES" : "UNKNOWN", seen };
}

function mailFact(heard: readonly Heard[]): Fact {
  const persons = recordsOf(heard, personForm, asks(ADDRESSES.persons.path));
  const mailed = persons.map((person) => ({
    last: Math.max(person.last_incoming_mail_time ?? 0, person.last_outgoing_mail_time ?? 0),
    updated: person.update_time ?? 0,
  }));
  const known = mailed.filter(({ last, updated }) => last > 0 && updated > 0);
  return movedFact("a mail moves the person's update time", known, ({ last, updated }) => last - updated);
}

function deletionFacts(heard: readonly Heard[]): Fact[] {
  const asked = heard.filter(asks(ADDRESSES.deals.path, "ids"));
  const shown = recordsOf(heard, dealForm, asks(ADDRESSES.deals.path, "ids")).length;
  const single = heard.filter(({ route }) => route === `GET ${ADDRESSES.deals.path}/{id}`);
  return [
    agreed("ids= of a deleted deal", { SHOWN: shown, LEFT_OUT: asked.length - Math.min(shown, asked.length) }),
    agreed("the single read of a deleted deal", {
      SHOWN: count(single, ({ answer }) => answer.status === 200),
      NOT_FOUND: count(single, ({ answer }) => answer.status === 404),
    }),
  ];
}

function headerFacts(heard: readonly Heard[]): Fact[] {
  const answers = heard.map(({ answer }) => answer);
  const told = count(answers, ({ day }) => day.remaining !== null);
  const resets = answers.flatMap(({ limit }) => limit.reset ?? []);
  const epochs = count(resets, (reset) => reset > EPOCH_FROM);
  return [
    {
      fact: "answers tell the company's balance",
      says: told === answers.length ? "ALL" : told === 0 ? "NONE" : "SOME",
      seen: { told, answers: answers.length },
    },
    agreed("x-ratelimit-reset is", { SECONDS: resets.length - epochs, AN_INSTANT: epochs }),
  ];
}

/** Other apps spend as well: one neighbour that fits shows a price, and all that do not fit show another. */
function priceFact(heard: readonly Heard[]): Fact {
  const told = callsOf(heard).filter(({ balanceFell }) => balanceFell !== null);
  const routes = [...new Set(told.map(({ route }) => route))];
  const fits = (route: string) => told.some((call) => call.route === route && call.balanceFell === call.price);
  const seen = { fitting: count(routes, fits), others: count(routes, (route) => !fits(route)) };
  const says = routes.length === 0 ? "UNKNOWN" : seen.others === 0 ? "AS_DOCUMENTED" : "OTHERWISE";
  return { fact: "prices by neighbouring balances", says, seen };
}

const notesForm = z.object({
  data: z.array(z.unknown()).nullable(),
  additional_data: z.object({ pagination: z.object({ more_items_in_collection: z.boolean() }) }),
});

function pageFact(heard: readonly Heard[]): Fact {
  const pages = heard.filter(({ route }) => route === `GET ${ADDRESSES.notes.path}`);
  const read = pages.flatMap(({ query, answer }) => {
    const page = notesForm.safeParse(jsonOf(textOf(answer))).data;
    const isCut = page?.additional_data.pagination.more_items_in_collection === true;
    return page && isCut ? [{ asked: Number(query.get("limit")), came: page.data?.length ?? 0 }] : [];
  });
  return agreed("a page of notes is as long as was asked for", {
    YES: count(read, ({ asked, came }) => came === asked),
    NO: count(read, ({ asked, came }) => came < asked),
  });
}

function usersFact(heard: readonly Heard[]): Fact {
  const users = recordsOf(heard, userForm, asks(ADDRESSES.users.path));
  const inactive = count(users, ({ active_flag: active }) => active === false);
  const says = inactive > 0 ? "YES" : "UNKNOWN";
  return { fact: "users that were deactivated are listed", says, seen: { inactive, users: users.length } };
}

/** The report for people. */
export function reportInWords({ calls, facts }: ProbeReport): string {
  const spent = calls.reduce((sum, { price }) => sum + price, 0);
  const inWords = (seen: Fact["seen"]) =>
    Object.entries(seen)
      .map(([what, number]) => `${what} ${number}`)
      .join(", ");
  const headers = [...new Set(calls.flatMap((call) => call.headers))].sort();
  return [
    `${calls.length} calls, ${spent} tokens by the CRM's reference; nothing was changed. Numbers and names of headers alone are in it.`,
    ...facts.map(({ fact, says, seen }) => `${says.padEnd(14)} ${fact} (${inWords(seen)})`),
    `headers: ${headers.join(", ")}`,
    ...calls.map(({ route, status, price, balanceFell }) => {
      return `${String(status).padEnd(4)} ${route}: price ${price}, the balance fell by ${balanceFell ?? "an unknown number"}`;
    }),
  ].join("\n");
}

/** In place of a file: what is to be written goes to stdout, and what is said of it to stderr. */
const STDOUT = "-";

/**
 * Writes a report where the operator wants it: into a file for its owner alone, never over one that is there. The file is
 * made before anything is asked, so that no report is without its place.
 * @returns what is for stdout
 * @throws NotDoneError where the file cannot be made
 */
export async function reportInto(file: string, make: () => Promise<[report: object, words: string]>): Promise<string> {
  const made = file === STDOUT ? null : await open(file, "wx", 0o600).catch((cause: unknown) => noFile(file, cause));
  try {
    const [report, words] = await make();
    const text = JSON.stringify(report, null, 2).replace(COMMANDS_OF_A_TERMINAL, inJson);
    await made?.writeFile(`${text}\n`);
    if (made) return words;
    process.stderr.write(`${words}\n`);
    return text;
  } catch (error) {
    if (made) await rm(file, { force: true });
    throw error;
  } finally {
    await made?.close();
  }
}

/** JSON leaves those beyond ASCII as they are; what ends its own lines stays. */
const inJson = (one: string) => (one === "\n" ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

function noFile(file: string, cause: unknown): never {
  const todo = `Name a new one in a folder that may be written, or ${STDOUT} for stdout`;
  throw new NotDoneError(`The file ${file} cannot be made: ${messageOf(cause)}. ${todo}.`);
}
