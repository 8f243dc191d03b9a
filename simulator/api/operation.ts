import type { Company } from "../model/company";
import type { Settings } from "../model/options";
import type { CustomValue, Entity, User } from "../model/records";
import type { Texts } from "../model/texts";
import type { Views } from "../model/views";
import type { Answer } from "./answer";
import type { PageTwist } from "./page-twists";

/** What every operation may look at. */
export interface World {
  readonly company: Company;
  readonly views: Views;
  readonly texts: Texts;
  readonly now: () => Date;
  readonly rules: Pick<Settings, "fieldsPerPage" | "longTexts" | "deletedByIds" | "notesPerPage">;
  /** To be called after every change of a record: what was kept of it is stale. */
  changed(entity: Entity, id: number): void;
}

/** What a fault makes of a write that the CRM answers as if it had done it, or of the pages of a list. */
export type Twist =
  | PageTwist
  /** Nothing is kept: a field has its old value, a note is not there. */
  | { kind: "ignored" }
  /** Every custom field of the body, or the content of the note, is kept and answered as this. */
  | { kind: "storedAs"; value: CustomValue };

export interface Call {
  readonly user: User;
  /** What `users/me` names. */
  readonly company: Settings["company"];
  readonly query: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, string>>;
  /** As sent; "" without one. */
  readonly body: string;
  readonly contentType: string;
  readonly twist?: Twist;
}

/** A call of the API. Throws a Refusal where the CRM refuses. */
export interface Operation {
  /** Absent: GET. */
  readonly method?: "POST" | "PATCH";
  readonly path: string;
  /** What the call takes from the company's daily budget. */
  readonly cost: number;
  answer(call: Call): Answer;
}
