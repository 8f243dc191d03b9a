import type { Company } from "../model/company";
import type { User } from "../model/records";
import type { Texts } from "../model/texts";
import type { Views } from "../model/views";
import type { Answer } from "./answer";

/** What every operation may look at. */
export interface World {
  readonly company: Company;
  readonly views: Views;
  readonly texts: Texts;
  readonly now: () => Date;
}

export interface Call {
  readonly user: User;
  readonly query: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, string>>;
}

/** A read of the API. Throws a Refusal where the CRM refuses. */
export interface Operation {
  readonly path: string;
  /** What the call takes from the company's daily budget. */
  readonly cost: number;
  answer(call: Call): Answer;
}
