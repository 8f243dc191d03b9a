import * as v1 from "pipedrive/v1";
import * as v2 from "pipedrive/v2";
import type { DataSource, EntityTarget, ObjectLiteral } from "typeorm";
import { createDataSource } from "../src/database/data-source";
import { entities } from "../src/entities";
import { CrmUserRow, PipelineRow, StageRow } from "../src/entities/crm-company";
import { DealParticipantRow, DealRow } from "../src/entities/deal";
import { ActivityRow, NoteRow, OrganizationRow, PersonAddressRow, PersonRow } from "../src/entities/records";
import { Secret } from "../src/platform/keyring";
import { accessToken } from "./grant";
import { type Counts, inLanes, report } from "./reading";

// What an integrator would write first: the official client page by page, TypeORM's `save` of each page, and the
// participants of one deal after the other, each awaited in a loop. More lanes are what they would try next.

const PAGE_SIZE = 500;
/** The whole of its own database is one tenant's copy. */
const OF_COPY = { tenantId: 1, copyId: 1 };

type CrmRecord = Record<string, unknown>;
interface CursorPage {
  data?: object[] | null;
  additional_data?: { next_cursor?: string | null };
}

/** Columns that the CRM calls otherwise. */
const NAMES: Record<string, string> = {
  crm_id: "id",
  organization_id: "org_id",
  author_id: "user_id",
  position: "order_nr",
  done_at: "marked_as_done_time",
};

class UsualClient {
  readonly #counts: Counts = { participantSeconds: 0, requests: 0, listed: 0, participants: 0 };
  readonly #v1: v1.Configuration;
  readonly #v2: v2.Configuration;

  constructor(
    baseUrl: string,
    token: string,
    private readonly database: DataSource,
    private readonly lanes: number,
  ) {
    this.#v1 = new v1.Configuration({ accessToken: token, basePath: `${baseUrl}/api/v1` });
    this.#v2 = new v2.Configuration({ accessToken: token, basePath: `${baseUrl}/api/v2` });
  }

  async readAll(): Promise<Counts> {
    const limit = PAGE_SIZE;
    await this.#users();
    const pipelines = new v2.PipelinesApi(this.#v2);
    await this.#walk(PipelineRow, (cursor) => pipelines.getPipelines({ limit, cursor }));
    const stages = new v2.StagesApi(this.#v2);
    await this.#walk(StageRow, (cursor) => stages.getStages({ limit, cursor }));
    const organizations = new v2.OrganizationsApi(this.#v2);
    await this.#walk(
      OrganizationRow,
      (cursor) => organizations.getOrganizations({ limit, cursor }),
      ({ address }) => ({
        address: (address as { value?: string } | null)?.value ?? null,
      }),
    );
    await this.#persons();
    await this.#participants(await this.#deals());
    const activities = new v2.ActivitiesApi(this.#v2);
    await this.#walk(ActivityRow, (cursor) => activities.getActivities({ limit, cursor }), activityColumns);
    await this.#notes();
    return this.#counts;
  }

  async #users(): Promise<void> {
    this.#counts.requests += 1;
    const { data } = await new v1.UsersApi(this.#v1).getUsers();
    await this.#save(CrmUserRow, data ?? [], ({ email, active_flag }) => ({
      mailbox: String(email).toLowerCase(),
      active: active_flag !== false,
    }));
  }

  async #persons(): Promise<void> {
    const api = new v2.PersonsApi(this.#v2);
    const include_fields = "last_incoming_mail_time,last_outgoing_mail_time" as "last_incoming_mail_time";
    const addresses = this.database.getRepository(PersonAddressRow);
    await this.#walk(PersonRow, async (cursor) => {
      const page = await api.getPersons({ limit: PAGE_SIZE, cursor, include_fields });
      const found = (page.data ?? []).flatMap(({ id, emails }) =>
        (emails ?? []).map(({ value }) => {
          const address = String(value).trim().toLowerCase();
          return { ...OF_COPY, personId: id, address, mailbox: address, domain: address.split("@")[1] };
        }),
      );
      await addresses.save(found);
      return page;
    });
  }

  /** @returns the ids of deals that have participants */
  async #deals(): Promise<number[]> {
    const api = new v2.DealsApi(this.#v2);
    const ids: number[] = [];
    await this.#walk(
      DealRow,
      (cursor) => api.getDeals({ limit: PAGE_SIZE, cursor, include_fields: "participants_count" }),
      ({ id, participants_count }) => {
        if (participants_count !== 0) ids.push(Number(id));
        return { participantsDue: false, participantsKnown: true, participantsOnceKnown: true };
      },
    );
    return ids;
  }

  async #participants(dealIds: readonly number[]): Promise<void> {
    const began = performance.now();
    const api = new v1.DealsApi(this.#v1);
    const links = this.database.getRepository(DealParticipantRow);
    await inLanes(dealIds, this.lanes, async (id) => {
      this.#counts.requests += 1;
      const { data } = await api.getDealParticipants({ id, start: 0, limit: PAGE_SIZE });
      const persons = (data ?? []).map((one) => Number((one as { person_id: { value: number } }).person_id.value));
      await links.save([...new Set(persons)].map((personId) => ({ ...OF_COPY, dealId: id, personId })));
      this.#counts.participants += persons.length;
    });
    this.#counts.participantSeconds = (performance.now() - began) / 1000;
  }

  async #notes(): Promise<void> {
    const api = new v1.NotesApi(this.#v1);
    for (let start: number | undefined = 0; start !== undefined; ) {
      this.#counts.requests += 1;
      const page = (await api.getNotes({ start, limit: PAGE_SIZE, sort: "id ASC" })) as {
        data?: object[];
        additional_data?: { pagination?: { next_start?: number } };
      };
      await this.#save(NoteRow, page.data ?? [], () => ({ truncated: false }));
      start = page.additional_data?.pagination?.next_start;
    }
  }

  async #walk(
    entity: EntityTarget<ObjectLiteral>,
    read: (cursor: string | undefined) => Promise<CursorPage>,
    more?: (record: CrmRecord) => CrmRecord,
  ): Promise<void> {
    let cursor: string | undefined;
    do {
      this.#counts.requests += 1;
      const page = await read(cursor);
      await this.#save(entity, page.data ?? [], more);
      cursor = page.additional_data?.next_cursor ?? undefined;
    } while (cursor);
  }

  /** @param more columns that are not a field of the CRM's */
  async #save(
    entity: EntityTarget<ObjectLiteral>,
    records: readonly object[],
    more: (record: CrmRecord) => CrmRecord = () => ({}),
  ): Promise<void> {
    const repository = this.database.getRepository(entity);
    const rows = (records as readonly CrmRecord[]).map((record) => {
      const columns = repository.metadata.columns.map(({ propertyName, databaseName }) => [
        propertyName,
        record[NAMES[databaseName] ?? databaseName] ?? null,
      ]);
      return { ...Object.fromEntries(columns), ...OF_COPY, ...more(record) };
    });
    await repository.save(rows);
    this.#counts.listed += rows.length;
  }
}

function activityColumns({ participants, due_date, due_time, done }: CrmRecord): CrmRecord {
  const dueAt = due_date ? `${due_date}T${due_time || "00:00:00"}Z` : null;
  const persons = (participants ?? []) as { person_id: number }[];
  return {
    participantIds: persons.map(({ person_id }) => person_id),
    dueAt,
    dueHasTime: Boolean(due_date && due_time),
    happenedAt: done ? dueAt : null,
  };
}

async function main(): Promise<never> {
  const { CRM_BASE_URL = "", DATABASE_URL = "", LANES } = process.env;
  const database = createDataSource({ url: new Secret(DATABASE_URL), entities });
  await database.initialize();
  await database.runMigrations({ transaction: "each" });
  const client = new UsualClient(CRM_BASE_URL, await accessToken(process.env), database, Number(LANES));
  return report(() => client.readAll());
}

if (require.main === module) void main();
