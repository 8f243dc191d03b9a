import type { Control } from "../control/control";
import type { Entity } from "../model/records";
import type { Fault, FaultRule } from "../server/faults";
import { BadCommand, type Input } from "./input";

export interface Command {
  /** The members of the body; those with a question mark may be left out. Others are refused. */
  readonly takes: readonly string[];
  readonly does: string;
  run(control: Control, input: Input): unknown;
}

const entities: readonly Entity[] = ["deal", "person", "organization", "activity", "note", "pipeline", "stage", "user"];
const fieldEntities = ["deal", "person", "organization"] as const;
const kinds = [
  ...["reset", "cut", "garbage", "html", "throttle", "delay", "hang", "null"],
  ...["again", "empty", "circle", "part", "headers", "forbidden"],
  ...["lostAfter", "hangAfter", "failAfter", "late", "ignored", "storedAs"],
];

const forUser = (does: string, act: (control: Control, userId: number) => void): Command => ({
  takes: ["userId"],
  does,
  run: (control, input) => act(control, input.id("userId")),
});

const forRecord = (does: string, act: (control: Control, entity: Entity, id: number) => void): Command => ({
  takes: ["entity", "id"],
  does,
  run: (control, input) => act(control, input.oneOf("entity", entities), input.id("id")),
});

const shorthand = (does: string, match: string | RegExp, fault: Fault): Command => ({
  takes: ["method?", "times?"],
  does: `${does}: the next so many times, or until clear-faults`,
  run: (control, input) => {
    const method = input.optional("method", input.text);
    control.fail({ match, method, times: input.optional("times", input.id), with: fault });
  },
});

const api = /^\/(api|v1)\//;

/** What an HTTP client can do to the running simulator. */
export const commands: Readonly<Record<string, Command>> = {
  "sign-in": forUser("chooses the user of the consent page", (control, id) => control.signIn(id)),
  revoke: forUser("ends the user's grant: a refresh answers invalid_grant", (control, id) => control.revoke(id)),
  uninstall: {
    takes: ["userId"],
    does: "revoke, and the app is told at its callback address",
    run: async (control, input) => ({ answered: await control.uninstall(input.id("userId")) }),
  },
  "kill-access-tokens": forUser("calls answer 401, a refresh still works", (control, id) =>
    control.killAccessTokens(id),
  ),
  deactivate: forUser("the user's tokens die for good", (control, id) => control.deactivate(id)),
  reactivate: forUser("the user may consent again", (control, id) => control.reactivate(id)),
  remove: forRecord("puts a record into the bin", (control, entity, id) => control.remove(entity, id)),
  hide: forRecord("takes a record out of everybody's sight", (control, entity, id) => control.hide(entity, id)),
  show: forRecord("puts a hidden record back", (control, entity, id) => control.show(entity, id)),
  archive: {
    takes: ["dealId"],
    does: "archives a deal",
    run: (control, input) => control.archive(input.id("dealId")),
  },
  change: {
    takes: ["entity", "id", "patch"],
    does: "sets members of a record and its update time",
    run: (control, input) => control.change(input.oneOf("entity", entities), input.id("id"), input.object("patch")),
  },
  "set-participants": {
    takes: ["dealId", "personIds", "updateTime?"],
    does: 'who takes part in a deal; with updateTime "moves" the deal has changed, else only its participants',
    run: (control, input) =>
      control.setParticipants(
        input.id("dealId"),
        input.ids("personIds"),
        input.optional("updateTime", (name) => input.oneOf(name, ["moves"])),
      ),
  },
  merge: {
    takes: ["entity", "loserId", "winnerId"],
    does: "the loser goes to the bin, what hung on it hangs on the winner",
    run: (control, input) =>
      control.merge(input.oneOf("entity", fieldEntities), input.id("loserId"), input.id("winnerId")),
  },
  narrow: {
    takes: ["userId", "sight"],
    does: "what the user sees from now on: everything (that the rules let), own or nothing",
    run: (control, input) => control.narrow(input.id("userId"), input.oneOf("sight", ["everything", "own", "nothing"])),
  },
  "end-day": { takes: [], does: "the company's balance is full again", run: (control) => control.endDay() },
  "other-apps-spend": {
    takes: ["tokens"],
    does: "other apps take so many of the company's tokens, or all that are left",
    run: (control, input) => ({ taken: control.otherAppsSpend(input.id("tokens")) }),
  },
  "buy-tokens": {
    takes: ["tokens"],
    does: "the company has so many tokens more from now on, each day",
    run: (control, input) => control.buyTokens(input.id("tokens")),
  },
  "budget-headers": {
    takes: ["shown"],
    does: "whether answers tell the company's balance: on or off",
    run: (control, input) => control.budgetHeaders(input.oneOf("shown", ["on", "off"])),
  },
  advance: {
    takes: ["seconds"],
    does: "moves the simulator's clock on",
    run: (control, input) => control.advance(input.id("seconds")),
  },
  "remove-field": {
    takes: ["entity", "code"],
    does: "deletes a custom field",
    run: (control, input) => control.removeCustomField(input.oneOf("entity", fieldEntities), input.text("code")),
  },
  outage: shorthand("everything answers 503", "/", { status: 503 }),
  throttle: shorthand("the API answers 429", api, { kind: "throttle" }),
  forbid: shorthand("users/me answers 403 in JSON", /^(\/api)?\/v1\/users\/me$/, { kind: "forbidden" }),
  "lose-replies": shorthand("calls of the API take effect and their answers are lost", api, { kind: "lostAfter" }),
  fail: {
    takes: ["match?", "pattern?", "method?", "times?", "after?", "with"],
    does: "adds a fault rule; match is the beginning of a path, pattern an expression",
    run: (control, input) => {
      control.fail(ruleFrom(input));
    },
  },
  "clear-faults": { takes: [], does: "removes every fault rule", run: (control) => control.clearFaults() },
  "release-late-effects": {
    takes: [],
    does: "what late faults hold back happens now",
    run: (control) => ({ released: control.releaseLateEffects() }),
  },
};

function ruleFrom(input: Input): FaultRule {
  const pattern = input.optional("pattern", input.text);
  return {
    match: pattern === undefined ? input.text("match") : new RegExp(pattern),
    method: input.optional("method", input.text),
    times: input.optional("times", input.id),
    after: input.optional("after", input.id),
    with: faultFrom(input.object("with")),
  };
}

function faultFrom(fault: Readonly<Record<string, unknown>>): Fault {
  const { kind, status, ms, share, headers } = fault;
  const isKnown = kind === undefined ? status !== undefined : kinds.includes(String(kind));
  if (!isKnown) throw new BadCommand(`with needs a status, or a kind of ${kinds.join(", ")}`);
  if (status === undefined && kind === "failAfter") throw new BadCommand("failAfter needs a status");
  if (ms === undefined && kind === "delay") throw new BadCommand("delay needs ms");
  if (share === undefined && kind === "part") throw new BadCommand("part needs a share");
  if (typeof headers !== "object" && kind === "headers") throw new BadCommand("headers needs headers");
  if ([status, ms, share].some((value) => value !== undefined && typeof value !== "number")) {
    throw new BadCommand("status, ms and share must be numbers");
  }
  return fault as Fault;
}
