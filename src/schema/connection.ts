import { createUnionType, Field, InputType, ObjectType, registerEnumType } from "type-graphql";
import { Node } from "./node";
import { Refusal } from "./refusal";

export enum ConnectionState {
  NOT_CONNECTED = "NOT_CONNECTED",
  CONNECTED = "CONNECTED",
  NEEDS_REAUTHORIZATION = "NEEDS_REAUTHORIZATION",
}
registerEnumType(ConnectionState, { name: "ConnectionState", description: "Where the connection stands." });

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
