import { Field } from "type-graphql";
import type { ActorRole } from "../auth/actor";
import { apiEnum, ObjectType } from "./base";
import { RefusalCode, RefusalCodeEnum } from "./refusal";

export const RoleEnum = apiEnum<ActorRole>("Role", "What the viewer is in the tenant.", {
  owner: "May do everything.",
  admin: "May do everything that an owner may do here.",
  member: "Reads, records meetings and writes notes and fields.",
});

@ObjectType({ description: "Who is asking, as the bearer token proves it." })
export class Viewer {
  @Field(() => String, { description: "The user's id in the host product." })
  userId!: string;

  @Field(() => String, {
    description: "The organization of the service that owns the connection (the specification's 'owner organization').",
  })
  tenantId!: string;

  @Field(() => RoleEnum, { description: "What the user may do." })
  role!: ActorRole;

  @Field(() => String, { description: "The tenant's plan, as the token names it." })
  plan!: string;

  @Field(() => Boolean, { description: "Whether this viewer may connect, re-authorize, map fields and disconnect." })
  canManageConnection!: boolean;

  @Field(() => RefusalCodeEnum, {
    nullable: true,
    description: "Why connecting is refused to this viewer now; null when it would be allowed.",
  })
  connectRefusal!: RefusalCode | null;
}
