import { createUnionType, Field, InputType, Int, registerEnumType } from "type-graphql";
import { Node } from "./node";
import { ObjectType } from "./object-type";
import { Refusal } from "./refusal";

export enum ConnectionState {
  NOT_CONNECTED = "NOT_CONNECTED",
  CONNECTED = "CONNECTED",
  NEEDS_REAUTHORIZATION = "NEEDS_REAUTHORIZATION",
}
registerEnumType(ConnectionState, { name: "ConnectionState", description: "Where the connection stands." });

export enum ReauthorizationReason {
  GRANT_REVOKED = "GRANT_REVOKED",
  RENEWAL_UNCONFIRMED = "RENEWAL_UNCONFIRMED",
  IDENTITY_CHANGED = "IDENTITY_CHANGED",
}
registerEnumType(ReauthorizationReason, {
  name: "ReauthorizationReason",
  description: "Why someone has to authorize again.",
  valuesConfig: {
    GRANT_REVOKED: {
      description:
        "The CRM refused the refresh token: user deactivated or deleted, app uninstalled, or grant invalidated.",
    },
    RENEWAL_UNCONFIRMED: {
      description: "A renewal was cut off after it was sent, and the CRM then refused the last token that we hold.",
    },
    IDENTITY_CHANGED: {
      description: "The token turned out to belong to another user or company than the one that authorized.",
    },
  },
});

export enum TroubleCode {
  CRM_UNAVAILABLE = "CRM_UNAVAILABLE",
  CRM_REFUSED = "CRM_REFUSED",
  CRM_ACCOUNT_CLOSED = "CRM_ACCOUNT_CLOSED",
  CRM_ANSWER_UNREADABLE = "CRM_ANSWER_UNREADABLE",
  RATE_LIMITED = "RATE_LIMITED",
  SERVICE_MISCONFIGURED = "SERVICE_MISCONFIGURED",
  BUDGET_LOW = "BUDGET_LOW",
}
registerEnumType(TroubleCode, {
  name: "TroubleCode",
  description: "What keeps a connected CRM from working.",
  valuesConfig: {
    CRM_UNAVAILABLE: { description: "It could not be reached or had a fault, or the operator has stopped all calls." },
    CRM_REFUSED: { description: "It refused a request: a right of the authorizing user or of the app is missing." },
    CRM_ACCOUNT_CLOSED: { description: "The company's account is not open." },
    CRM_ANSWER_UNREADABLE: { description: "Its answer made no sense." },
    RATE_LIMITED: { description: "Its request limit is used up; other apps share it." },
    SERVICE_MISCONFIGURED: { description: "It does not accept this service's app registration: tell the operator." },
    BUDGET_LOW: { description: "This service's share of its daily tokens is used up, or little is left for others." },
  },
});

@ObjectType({ description: "Something temporary that keeps a connected CRM from working." })
export class Trouble {
  @Field(() => TroubleCode, { description: "Machine-readable." })
  code!: TroubleCode;

  @Field(() => String, { description: "What happened and what to do." })
  message!: string;

  @Field(() => Date)
  since!: Date;

  @Field(() => Date)
  lastSeenAt!: Date;
}

@ObjectType({
  description: "What the CRM's company may spend a day with all its apps, and what this service does with it.",
})
export class CrmBudget {
  @Field(() => Int, {
    nullable: true,
    description: "Tokens a day, as the CRM last said; null where it does not say.",
  })
  limit!: number | null;

  @Field(() => Int, {
    nullable: true,
    description: "What the company has left today, as the CRM last said; null where it has not said today.",
  })
  remaining!: number | null;

  @Field(() => Int, {
    description: "What this service has spent today, of what every tenant of the company asked for.",
  })
  spentToday!: number;

  @Field(() => Int, {
    description: "What it may spend a day on syncs; a connection's first lists may take half of what is left.",
  })
  allowance!: number;

  @Field(() => Date, { nullable: true, description: "When a new day of the CRM begins, as far as that is known." })
  resetsAt!: Date | null;
}

export enum Crm {
  PIPEDRIVE = "PIPEDRIVE",
}
registerEnumType(Crm, { name: "Crm", description: "The CRMs that can be connected." });

@ObjectType({
  implements: Node,
  description:
    "The one CRM connection of the viewer's tenant. It exists in state NOT_CONNECTED before anyone connects.",
})
export class Connection extends Node {
  @Field(() => ConnectionState)
  state!: ConnectionState;

  @Field(() => Date, { nullable: true, description: "null before anyone connected." })
  stateChangedAt!: Date | null;

  @Field(() => Crm, { nullable: true, description: "null while not connected." })
  crm!: Crm | null;

  @Field(() => String, {
    nullable: true,
    description: "The CRM e-mail of the user who authorized the app: whose eyes and hands the service has.",
  })
  boundEmail!: string | null;

  @Field(() => String, { nullable: true })
  boundUserName!: string | null;

  @Field(() => String, { nullable: true, description: "The CRM company's name." })
  companyName!: string | null;

  @Field(() => String, { nullable: true, description: "The CRM company's subdomain, without dots." })
  companyDomain!: string | null;

  @Field(() => Date, { nullable: true })
  connectedAt!: Date | null;

  @Field(() => ReauthorizationReason, {
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

@ObjectType()
export class ConnectSuccess {
  @Field(() => Connection)
  connection!: Connection;
}

@ObjectType({
  description: "Disconnected: syncing has stopped, the copy is out of sight and being deleted, the tokens are gone.",
})
export class DisconnectSuccess {
  @Field(() => Connection)
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

  @Field(() => String)
  state!: string;

  @Field(() => String, { nullable: true, description: "The error parameter of the redirect, where it had one." })
  error?: string | null;
}

export const StartConnectResult = createUnionType({
  name: "StartConnectResult",
  types: () => [ConnectStarted, Refusal] as const,
});
export const ConnectResult = createUnionType({
  name: "ConnectResult",
  types: () => [ConnectSuccess, Refusal] as const,
});
export const DisconnectResult = createUnionType({
  name: "DisconnectResult",
  types: () => [DisconnectSuccess, Refusal] as const,
});
