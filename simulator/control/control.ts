import type { World } from "../api/operation";
import type { FieldEntity, FieldType } from "../model/fields";
import type { Settings } from "../model/options";
import type { CustomFields, Note } from "../model/records";
import type { Clock } from "../model/times";
import type { SignedIn } from "../oauth/consent-page";
import type { Grants, Identity } from "../oauth/grants";
import type { Budget, Ledger } from "../server/budget";
import type { FaultRule, Faults } from "../server/faults";
import type { LateEffects } from "../server/late-effects";
import { CustomFieldControl, type FieldWords, type NewCustomField } from "./custom-field-control";
import { RecordControl, type Records } from "./record-control";
import { type Snapshot, snapshotFor } from "./snapshot";

export interface Control extends Records {
  /** Who is signed in in the browser on the consent page; at first a user without admin rights who sees every story. */
  signIn(userId: number): void;
  /** A code as the consent page would give it, to the user who is signed in. */
  approve(params?: { state?: string }): string;
  expireCodes(): void;
  /** Returns a function that removes the rule. */
  fail(rule: FaultRule): () => void;
  clearFaults(): void;
  /** The user's tokens die for good: after `reactivate` a new consent is needed. */
  deactivate(userId: number): void;
  reactivate(userId: number): void;
  /** All tokens of the user die: a refresh answers invalid_grant. */
  revoke(userId: number): void;
  /** As `revoke`, and the app is told at its callback address, or at another; says with which status it answers. */
  uninstall(userId: number, callback?: string): Promise<number>;
  /** Calls answer 401; a refresh still works. */
  killAccessTokens(userId: number): void;
  /** Access tokens that the user's grants give from now on are another's; with `living` those that live as well. */
  mistake(userId: number, identity: Identity, tokens?: "living"): void;
  visibleTo(userId: number): Snapshot;
  /** The notes that show on a record, the oldest first. */
  notesOf(entity: FieldEntity, id: number): Note[];
  /** The record's custom fields by code. */
  fieldsOf(entity: FieldEntity, id: number): CustomFields;
  /** Returns the new field's code. */
  addCustomField(entity: FieldEntity, field: NewCustomField): string;
  removeCustomField(entity: FieldEntity, code: string): void;
  /** The field is called otherwise, has other options, or is filled by the CRM alone from now on, or no longer; every value stays. */
  describeField(entity: FieldEntity, code: string, words: FieldWords): void;
  /** The field keeps its code and loses every value. */
  changeFieldType(entity: FieldEntity, code: string, type: FieldType, options?: readonly string[]): void;
  /** What `late` faults hold back happens now. Says how much it was. */
  releaseLateEffects(): number;
  /** The company's day ends: its balance is full again. */
  endDay(): void;
  /** Other apps of the company spend so many tokens, or all that are left. Says how many. */
  otherAppsSpend(tokens: number): number;
  /** The company has so many tokens more from now on, each day. */
  buyTokens(tokens: number): void;
  /** Whether answers tell the company's budget and balance: the CRM's pages do not promise it. */
  budgetHeaders(shown: "on" | "off"): void;
  /** What was asked and paid since the start, or since an earlier ledger. */
  ledger(since?: Ledger): Ledger;
  /** Of the company's day that has ended by the clock, and of no moment of the next. */
  ledgerOfDayBefore(): Ledger;
  /** What the company has left of its day. */
  balance(): number;
  /** Moves the simulator's clock on, beyond whatever clock it was given. */
  advance(seconds: number): void;
}

export interface ControlParts {
  settings: Settings;
  world: World;
  grants: Grants;
  faults: Faults;
  late: LateEffects;
  signedIn: SignedIn;
  budget: Budget;
  clock: Clock;
}

export class SimulatorControl extends RecordControl implements Control {
  private readonly customFields: CustomFieldControl;

  constructor(private readonly parts: ControlParts) {
    super(parts.world, parts.grants);
    this.customFields = new CustomFieldControl(parts.world);
  }

  signIn(userId: number): void {
    this.parts.signedIn.user = this.record("user", userId);
  }

  approve(_params: { state?: string } = {}): string {
    return this.parts.grants.issueCode(this.parts.signedIn.user.id, this.parts.settings.redirectUrl);
  }

  expireCodes(): void {
    this.parts.grants.expireCodes();
  }

  fail(rule: FaultRule): () => void {
    return this.parts.faults.add(rule);
  }

  clearFaults(): void {
    this.parts.faults.clear();
  }

  deactivate(userId: number): void {
    this.change("user", userId, { active_flag: false });
    this.revoke(userId);
  }

  reactivate(userId: number): void {
    this.change("user", userId, { active_flag: true });
  }

  revoke(userId: number): void {
    this.parts.grants.revokeUser(userId);
  }

  async uninstall(userId: number, callback = this.parts.settings.redirectUrl): Promise<number> {
    this.revoke(userId);
    const { clientId: client_id, clientSecret, company } = this.parts.settings;
    const answer = await fetch(callback, {
      method: "DELETE",
      headers: {
        authorization: `Basic ${Buffer.from(`${client_id}:${clientSecret}`).toString("base64")}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        client_id,
        company_id: company.id,
        user_id: userId,
        timestamp: this.parts.world.now().toISOString(),
      }),
    });
    await answer.text();
    return answer.status;
  }

  killAccessTokens(userId: number): void {
    this.parts.grants.killAccessTokens(userId);
  }

  mistake(userId: number, identity: Identity, tokens?: "living"): void {
    this.parts.grants.mistake(userId, identity, tokens === "living");
  }

  visibleTo(userId: number): Snapshot {
    return snapshotFor(this.parts.world, this.record("user", userId));
  }

  notesOf(entity: FieldEntity, id: number): Note[] {
    this.parts.late.doDue();
    this.record(entity, id);
    const link = ({ deal: "deal_id", person: "person_id", organization: "org_id" } as const)[entity];
    const notes = [...this.parts.world.company.notes.values()];
    return notes.filter((note) => note.active_flag && note[link] === id);
  }

  fieldsOf(entity: FieldEntity, id: number): CustomFields {
    this.parts.late.doDue();
    return { ...this.record(entity, id).custom_fields };
  }

  addCustomField(entity: FieldEntity, field: NewCustomField): string {
    return this.customFields.add(entity, field);
  }

  removeCustomField(entity: FieldEntity, code: string): void {
    this.customFields.remove(entity, code);
  }

  describeField(entity: FieldEntity, code: string, words: FieldWords): void {
    this.customFields.describe(entity, code, words);
  }

  changeFieldType(entity: FieldEntity, code: string, type: FieldType, options?: readonly string[]): void {
    this.customFields.changeType(entity, code, type, options);
  }

  releaseLateEffects(): number {
    return this.parts.late.release();
  }

  endDay(): void {
    this.parts.budget.endDay();
  }

  buyTokens(tokens: number): void {
    this.parts.budget.buy(tokens);
  }

  otherAppsSpend(tokens: number): number {
    return this.parts.budget.takeForOthers(tokens);
  }

  budgetHeaders(shown: "on" | "off"): void {
    this.parts.budget.showHeaders(shown === "on");
  }

  ledger(since?: Ledger): Ledger {
    return this.parts.budget.ledger(since);
  }

  ledgerOfDayBefore(): Ledger {
    return this.parts.budget.ledgerOfDayBefore();
  }

  balance(): number {
    return this.parts.budget.balance(0).left;
  }

  advance(seconds: number): void {
    this.parts.clock.advance(seconds);
  }
}
