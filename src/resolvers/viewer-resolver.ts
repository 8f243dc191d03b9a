import { Ctx, Query, Resolver } from "type-graphql";
import { mayManageConnection } from "../auth/policies";
import { Viewer } from "../schema/viewer";
import type { OperationContext } from "./context";

@Resolver(() => Viewer)
export class ViewerResolver {
  @Query(() => Viewer, { description: "Who is asking." })
  async viewer(@Ctx() { actor, services }: OperationContext): Promise<Viewer> {
    return {
      userId: actor.userId,
      tenantId: actor.tenant,
      role: actor.role,
      plan: actor.plan,
      email: actor.email,
      canManageConnection: mayManageConnection(actor),
      connectRefusal: await services.connecting.refusal(actor),
    };
  }
}
