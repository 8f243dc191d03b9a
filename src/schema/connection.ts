import { Field, InputType, Int } from "type-graphql";
import type { ConnectionState, ReauthorizationReason, TroubleCode } from "../entities/connection";
import { apiEnum, Node, ObjectType } from "./base";
import { resultOf } from "./refusal";

const ConnectionStateEnum = apiEnum<ConnectionState>("ConnectionState", "Where the connection stands.", {
  NOT_CONNECTED: "No CRM is connected.",
  CONNECTED: "A CRM is connected.",
  NEEDS_REAUTHORIZATION: "The CRM no longer accepts the authorization; what was synced stays readable.",
});

const ReauthorizationReasonEnum = apiEnum<ReauthorizationReason>(
  "ReauthorizationReason",
  "Why someone has to authorize again.",
  {
    GRANT_REVOKED:
      "The CRM refused the refresh token: user deactivated or deleted, app uninstalled, or grant invalidated.",
    RENEWAL_UNCONFIRMED: "A renewal was cut off after it was sent, and the CRM then refused the last token held here.",
    IDENTITY_CHANGED: "The token turned out to belong to another user or company than the one that authorized.",
  },
);

const TroubleCodeEnum = apiEnum<TroubleCode>("TroubleCode", "What keeps a connected CRM from working.", {
  CRM_UNAVAILABLE: "It could not be reached or had a fault, or the operator has stopped all calls.",
  CRM_REFUSED: "It refused a request: a right of the authorizing user or of the app is missing.",
  CRM_ACCOUNT_CLOSED: "The CRM company's account is not open.",
  CRM_ANSWER_UNREADABLE: "Its answer made no sense.",
  RATE_LIMITED: "Its request limit is used up; others share it.",
  SERVICE_MISCONFIGURED: "It does not accept this service's app registration: tell the operator.",
  BUDGET_LOW: "This service's share of its daily tokens is used up, or little is left for others.",
});

@ObjectType({ description: "Something temporary that keeps a connected CRM from working." })
export class Trouble {
  @Field(() => TroubleCodeEnum, { description: "Machine-readable." })
  code!: TroubleCode;

  @Field(() => String, { description: "What happened and what to do." })
  message!: string;

  @Field(() => Date, { description: "When it was first seen." })
  since!: Date;

  @Field(() => Date, { description: "When it was last seen." })
  lastSeenAt!: Date;
}

@ObjectType({
  description: "What the CRM company may spend a day with all its apps, and what this service does with it.",
})
export class CrmBudget {
  @Field(() => Int, {
    nullable: true,
    description: "Tokens a day, as the CRM last said; null where it does not say.",
  })
  limit!: number | null;

  @Field(() => Int, {
    nullable: true,
    description: "What the CRM company has left today, as the CRM last said; null where it has not said today.",
  })
  remaining!: number | null;

  @Field(() => Int, {
    description: "What this service has spent today, of what every tenant of the CRM company asked for.",
  })
  spentToday!: number;

  @Field(() => Int, {
    description: "What it may spend a day on syncs; a connection's first lists may take half of what is left.",
  })
  allowance!: number;

  @Field(() => Date, { nullable: true, description: "When a new day of the CRM begins, as far as that is known." })
  resetsAt!: Date | null;
}

@ObjectType({ description: "Deals of one owner that are seen." })
export class OwnerVisibility {
  @Field(() => Int, { description: "How many." })
  deals!: number;

  @Field(() => Int, { description: "Of these, how many are open." })
  openDeals!: number;
}

@ObjectType({ description: "Deals of one pipeline that are seen." })
export class PipelineVisibility {
  @Field(() => Int, { description: "How many." })
  deals!: number;

  @Field(() => Int, { description: "Of these, how many are open." })
  openDeals!: number;
}

@ObjectType({
  description:
    "What the authorizing user's permissions show, so that an admin sees what briefings will lack. Archived deals are never shown.",
})
export class VisibilityReport {
  @Field(() => Date, {
    nullable: true,
    description:
      "The oldest watermark of the lists that are counted; null before each of them, the pipelines aside, was read to its end.",
  })
  asOf!: Date | null;

  @Field(() => Int, { description: "Deals of the synced copy, in whatever status." })
  deals!: number;

  @Field(() => Int, { description: "Persons of the synced copy." })
  persons!: number;

  @Field(() => Int, { description: "Organizations of the synced copy." })
  organizations!: number;
}

const CrmEnum = apiEnum("Crm", "The CRMs that can be connected.", {
  PIPEDRIVE: "Pipedrive.",
});

@ObjectType({
  implements: Node,
  description:
    "The one CRM connection of the viewer's tenant. It exists in state NOT_CONNECTED before anyone connects.",
})
export class Connection extends Node {
  @Field(() => ConnectionStateEnum, { description: "Where it stands." })
  state!: ConnectionState;

  @Field(() => Date, { nullable: true, description: "null before anyone connected." })
  stateChangedAt!: Date | null;

  @Field(() => CrmEnum, { nullable: true, description: "null while not connected." })
  crm!: "PIPEDRIVE" | null;

  @Field(() => String, {
    nullable: true,
    description: "The CRM e-mail of the user who authorized the app: whose eyes and hands the service has.",
  })
  boundEmail!: string | null;

  @Field(() => String, { nullable: true, description: "The name in the CRM of the user who authorized." })
  boundUserName!: string | null;

  @Field(() => String, { nullable: true, description: "The CRM company's name." })
  companyName!: string | null;

  @Field(() => String, { nullable: true, description: "The CRM company's subdomain, without dots." })
  companyDomain!: string | null;

  @Field(() => Date, { nullable: true, description: "When someone last authorized; null while not connected." })
  connectedAt!: Date | null;

  @Field(() => ReauthorizationReasonEnum, {
    nullable: true,
    description: "null unless the state is NEEDS_REAUTHORIZATION.",
  })
  reauthorizationReason!: ReauthorizationReason | null;

  @Field(() => Trouble, {
    nullable: true,
    description:
      "The last temporary trouble (an outage, a rate limit) while the state stayed CONNECTED; null once it is over.",
  })
  trouble!: Trouble | null;

  /** The copy that readers of this connection see. */
  copyId!: number | null;
}

@ObjectType({ description: "Send the user's browser to `authorizationUrl`." })
export class ConnectStarted {
  @Field(() => String, { description: "The CRM's consent page. No scope is ever sent." })
  authorizationUrl!: string;

  @Field(() => Date, { description: "After this the consent has to be started again." })
  expiresAt!: Date;
}

@ObjectType({ description: "Connected; a sync is queued, a first one or one that finds what is gone." })
export class ConnectSuccess {
  @Field(() => Connection, { description: "As it now stands." })
  connection!: Connection;
}

@ObjectType({
  description: "Disconnected: syncing has stopped, the copy is out of sight and being deleted, the tokens are gone.",
})
export class DisconnectSuccess {
  @Field(() => Connection, { description: "As it now stands." })
  connection!: Connection;

  @Field(() => String, {
    description: "What stays in the CRM and how the customer ends the app's grant there, for people.",
  })
  remainsInCrm!: string;
}

/** Nothing is checked here: whatever comes back is a consent that holds or none, and is answered and noted as one. */
@InputType({ description: "What the redirect address received." })
export class ConnectInput {
  @Field(() => String, {
    nullable: true,
    description: "As the CRM sent it to the redirect address; absent where the user refused.",
  })
  code?: string | null;

  @Field(() => String, { description: "As the CRM sent it back; it works once, for ten minutes." })
  state!: string;

  @Field(() => String, { nullable: true, description: "The error parameter of the redirect, where it had one." })
  error?: string | null;
}

export const StartConnectResult = resultOf("StartConnectResult", () => ConnectStarted);
export const ConnectResult = resultOf("ConnectResult", () => ConnectSuccess);
export const DisconnectResult = resultOf("DisconnectResult", () => DisconnectSuccess);
