import { Field, registerEnumType } from "type-graphql";
import { ObjectType } from "./object-type";
import { RefusalCode } from "./refusal";

export enum Role {
  OWNER = "OWNER",
  ADMIN = "ADMIN",
  MEMBER = "MEMBER",
}
registerEnumType(Role, { name: "Role", description: "What the viewer is in the tenant." });

@ObjectType({ description: "Who is asking, as the bearer token proves it." })
export class Viewer {
  @Field(() => String)
  userId!: string;

  @Field(() => String, {
    description: "The organization of the service that owns the connection (the specification's 'owner organization').",
  })
  tenantId!: string;

  @Field(() => Role)
  role!: Role;

  @Field(() => String)
  plan!: string;

  @Field(() => Boolean, { description: "Whether this viewer may connect, re-authorize, map fields and disconnect." })
  canManageConnection!: boolean;

  @Field(() => RefusalCode, {
    nullable: true,
    description: "Why connecting is refused to this viewer now; null when it would be allowed.",
  })
  connectRefusal!: RefusalCode | null;
}
