import { Field, InputType, Int } from "type-graphql";
import type { ConnectionState, ReauthorizationReason, TroubleCode } from "../entities/connection";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldMappingHealth } from "../entities/writeback";
import { apiEnum, Node, ObjectType } from "./base";
import { NotBlank, Text } from "./checks";
import { resultOf } from "./refusal";

export const ConnectionStateEnum = apiEnum<ConnectionState>("ConnectionState", "Where the connection stands.", {
  NOT_CONNECTED: "No CRM is connected.",
  CONNECTED: "A CRM is connected.",
  NEEDS_REAUTHORIZATION: "The CRM no longer accepts the authorization; what was synced stays readable.",
});

export const ReauthorizationReasonEnum = apiEnum<ReauthorizationReason>(
  "ReauthorizationReason",
  "Why someone has to authorize again.",
  {
    GRANT_REVOKED:
      "The CRM refused the refresh token: user deactivated or deleted, app uninstalled, or grant invalidated.",
    RENEWAL_UNCONFIRMED:
      "A renewal was cut off after it was sent, and the CRM then refused the last token that we hold.",
    IDENTITY_CHANGED: "The token turned out to belong to another user or company than the one that authorized.",
  },
);

export const TroubleCodeEnum = apiEnum<TroubleCode>("TroubleCode", "What keeps a connected CRM from working.", {
  CRM_UNAVAILABLE: "It could not be reached or had a fault, or the operator has stopped all calls.",
  CRM_REFUSED: "It refused a request: a right of the authorizing user or of the app is missing.",
  CRM_ACCOUNT_CLOSED: "The company's account is not open.",
  CRM_ANSWER_UNREADABLE: "Its answer made no sense.",
  RATE_LIMITED: "Its request limit is used up; other apps share it.",
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

export const CrmEnum = apiEnum("Crm", "The CRMs that can be connected.", {
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

@ObjectType({ description: "Connected; the first sync is queued." })
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

export const CrmEntityEnum = apiEnum<MatchedEntity>("CrmEntity", "What can receive a note and a nominated field.", {
  DEAL: "A deal.",
  PERSON: "A person.",
  ORGANIZATION: "An organization.",
});

@ObjectType({ description: "An option of a field of type enum or set." })
export class CrmFieldOption {
  @Field(() => String, { description: "The CRM's id of it." })
  id!: string;

  @Field(() => String, { description: "As people see it; not unique." })
  label!: string;
}

@ObjectType({ description: "A field of an entity in the CRM." })
export class CrmField {
  @Field(() => String, { description: "A custom field's 40 hexadecimal digits, else the standard field's name." })
  key!: string;

  @Field(() => String, { description: "As people named it; not unique." })
  name!: string;

  @Field(() => String, { description: "The CRM's word for it, for example varchar; the list is open." })
  type!: string;

  @Field(() => Boolean, { description: "Whether the customer made it." })
  custom!: boolean;

  @Field(() => Boolean, {
    description: "Whether the service could nominate it: custom, and of a type that it can write.",
  })
  writable!: boolean;

  @Field(() => [CrmFieldOption], { description: "Empty where the type has none." })
  options!: CrmFieldOption[];
}

export const FieldMappingHealthEnum = apiEnum<FieldMappingHealth>(
  "FieldMappingHealth",
  "What the CRM's field list last said of a nominated field.",
  {
    OK: "It is there, with the type that it had when it was nominated.",
    MISSING_IN_CRM: "The CRM no longer lists it.",
    TYPE_CHANGED: "Its type is another than when it was nominated; nominating it again accepts that.",
    UNKNOWN: "The last look failed, or the connection needs re-authorization.",
  },
);

@ObjectType({ description: "The nominated field of an entity." })
export class FieldMapping {
  @Field(() => CrmEntityEnum, { description: "Whose field it is." })
  entity!: MatchedEntity;

  @Field(() => String, { description: "The nominated field's key in the CRM." })
  fieldKey!: string;

  @Field(() => String, { nullable: true, description: "As last seen in the CRM." })
  fieldName!: string | null;

  @Field(() => String, { nullable: true, description: "As last seen in the CRM." })
  fieldType!: string | null;

  @Field(() => FieldMappingHealthEnum, { description: "OK, or what has become of the field since it was nominated." })
  health!: FieldMappingHealth;

  @Field(() => Date, { description: "When the CRM's field list was last read for it." })
  checkedAt!: Date;
}

/** The CRM's own keys have 40. */
const LONGEST_KEY = 100;

@InputType({ description: "Which field to nominate." })
export class FieldMappingInput {
  @Field(() => CrmEntityEnum, { description: "Whose field." })
  entity!: MatchedEntity;

  @NotBlank()
  @Text(LONGEST_KEY)
  @Field(() => String, { description: "The key of a field that connection.fields calls writable." })
  fieldKey!: string;
}

@ObjectType({ description: "The nominated fields as they now stand." })
export class FieldMappingSuccess {
  @Field(() => [FieldMapping], { description: "All mappings that hold now." })
  mappings!: FieldMapping[];
}

export const FieldMappingResult = resultOf("FieldMappingResult", () => FieldMappingSuccess);
