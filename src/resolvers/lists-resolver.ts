import type { GraphQLResolveInfo } from "graphql";
import { Args, Ctx, FieldResolver, Info, Int, Query, Resolver, Root, UseMiddleware } from "type-graphql";
import {
  countMeetings,
  MEETING_ORDERS,
  NEWEST_IN_CRM,
  readMeetings,
  readOrganizations,
  readPersons,
} from "../briefing/lists/contact-and-meeting-lists";
import {
  type DealSummary,
  dealOrder,
  type DealFilter as Filter,
  readDeals,
  summarizeDeals,
} from "../briefing/lists/deal-list";
import type { CopyScope } from "../database/database";
import { MOST_COUNTED, type Page } from "../database/keyset";
import type { DealRow } from "../entities/deal";
import type { MeetingRow } from "../entities/meeting";
import type { OrganizationRow, PersonRow } from "../entities/records";
import { normalizeAddress } from "../platform/email-address";
import { once } from "../platform/work";
import { PageArgs, type RelayPage } from "../schema/base";
import {
  DealConnection,
  type DealFilter,
  DealsArgs,
  MeetingConnection,
  MeetingsArgs,
  OrganizationConnection,
  PersonConnection,
  PersonsArgs,
} from "../schema/lists";
import { Money } from "../schema/records";
import type { OperationContext } from "./context";
import { badInput, crmIdIn, type NodeType, positionIn, refuseInvalidInput, relayPage } from "./inputs";
import { beginWithRead } from "./look-ups";

/** Lists of what is matched to a recorded meeting; empty while no CRM is connected. */
@Resolver()
export class ListsResolver {
  @Query(() => DealConnection, { description: "The deals that are matched to a recorded meeting." })
  @UseMiddleware(refuseInvalidInput)
  async deals(
    @Args(() => DealsArgs, { validate: true }) args: DealsArgs,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<DealPage> {
    const copy = await context.copy();
    const now = context.services.clock();
    const orderName = args.orderBy ?? "UPDATED_AT_DESC";
    const filter = dealFilter(args.filter ?? {}, copy);
    const order = dealOrder(orderName, filter);
    // A cursor of a walk that is judged carries the instant of it, so it is none of a walk that is not.
    const list = { name: "deals", of: copy?.copyId ?? null, orderName: `${orderName} ${order.isJudged}`, order };
    const page = await relayPage(list, args, async (page) =>
      copy
        ? beginWithRead(info, copy, context.loaders, () => readDeals(copy, filter, { ...page, order }, now))
        : NOTHING,
    );
    const after = positionIn(list, args.after);
    return {
      ...page,
      summary: once(async () =>
        copy ? summarizeDeals(copy, filter, { order, after }, now) : { count: 0, totals: [] },
      ),
    };
  }

  @Query(() => PersonConnection, {
    description: "The persons who are matched to a recorded meeting, newest in the CRM first.",
  })
  async persons(
    @Args(() => PersonsArgs) args: PersonsArgs,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<RelayPage<PersonRow>> {
    const copy = await context.copy();
    const address = args.email == null ? null : addressIn(args.email);
    return relayPage({ name: "persons", of: copy?.copyId ?? null, order: NEWEST_IN_CRM }, args, async (page) =>
      copy ? beginWithRead(info, copy, context.loaders, () => readPersons(copy, address, page)) : NOTHING,
    );
  }

  @Query(() => OrganizationConnection, {
    description: "The organizations that are matched to a recorded meeting, newest in the CRM first.",
  })
  async organizations(
    @Args(() => PageArgs) args: PageArgs,
    @Ctx() context: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<RelayPage<OrganizationRow>> {
    const copy = await context.copy();
    return relayPage({ name: "organizations", of: copy?.copyId ?? null, order: NEWEST_IN_CRM }, args, async (page) =>
      copy ? beginWithRead(info, copy, context.loaders, () => readOrganizations(copy, page)) : NOTHING,
    );
  }

  @Query(() => MeetingConnection, {
    description: "The tenant's recorded meetings; cancelled ones where they are asked for.",
  })
  @UseMiddleware(refuseInvalidInput)
  async meetings(
    @Args(() => MeetingsArgs, { validate: true }) { filter, ...args }: MeetingsArgs,
    @Ctx() { actor, copy, loaders, scope }: OperationContext,
    @Info() info: GraphQLResolveInfo,
  ): Promise<MeetingPage> {
    const orderName = args.orderBy ?? "STARTS_AT_DESC";
    const list = { name: "meetings", of: actor.tenantId, orderName, order: MEETING_ORDERS[orderName] };
    const { from = null, to = null, status = null, ownerEmail, includeCancelled, search } = filter ?? {};
    const wanted = {
      from,
      to,
      status,
      ownerEmail: ownerEmail?.trim() ?? null,
      includeCancelled: includeCancelled === true,
      search: search?.trim() ?? null,
    };
    const seen = await copy();
    const page = await relayPage(list, args, (page) =>
      seen
        ? beginWithRead(info, seen, loaders, () => readMeetings(seen, wanted, page))
        : readMeetings(scope, wanted, page),
    );
    return { ...page, count: () => countMeetings(scope, wanted) };
  }
}

/** Counts and sums need more than the page: they are read only where they are asked for. */
interface DealPage extends RelayPage<DealRow> {
  summary(): Promise<DealSummary | null>;
}
interface MeetingPage extends RelayPage<MeetingRow> {
  count(): Promise<number | null>;
}

const COUNTED = `null above ${MOST_COUNTED.toLocaleString("en-US")}`;

@Resolver(() => DealConnection)
export class DealConnectionResolver {
  @FieldResolver(() => Int, { nullable: true, description: `How many fit on all pages; ${COUNTED}.` })
  async totalCount(@Root() page: DealPage): Promise<number | null> {
    return (await page.summary())?.count ?? null;
  }

  @FieldResolver(() => [Money], {
    nullable: true,
    description: `Sums of all that fit, by currency, without deals that have no value or no currency; ${COUNTED} deals.`,
  })
  async totals(@Root() page: DealPage): Promise<Money[] | null> {
    return (await page.summary())?.totals ?? null;
  }
}

@Resolver(() => MeetingConnection)
export class MeetingConnectionResolver {
  @FieldResolver(() => Int, { nullable: true, description: `How many fit on all pages; ${COUNTED}.` })
  totalCount(@Root() page: MeetingPage): Promise<number | null> {
    return page.count();
  }
}

const NOTHING: Page<never> = { rows: [], hasMore: false };

function addressIn(email: string): string {
  const address = normalizeAddress(email);
  if (address === null) throw badInput("email must be an e-mail address, for example anna@example.com.");
  return address;
}

function dealFilter(filter: DealFilter, copy: CopyScope | null): Filter {
  const { status, verdict, pipelineId, stageId, ownerId, minValue, currency, snoozed } = filter;
  // An id that means nothing here fits no deal: it answers alike for unknown, foreign and malformed ones.
  const idOf = (id: string | null | undefined, type: NodeType) =>
    id == null ? undefined : copy && crmIdIn(id, type, copy.copyId);
  return {
    status: status ?? undefined,
    verdict: verdict ?? undefined,
    pipelineId: idOf(pipelineId, "Pipeline"),
    stageId: idOf(stageId, "Stage"),
    ownerId: idOf(ownerId, "CrmUser"),
    minValue: minValue ?? undefined,
    currency: currency ?? undefined,
    snoozed: snoozed ?? undefined,
  };
}
