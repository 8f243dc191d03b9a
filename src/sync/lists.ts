import type { CrmApi, CrmPage, PageRequest } from "../crm/api";
import type { RejectedRecord } from "../crm/parsing/page";
import type { CopyScope } from "../database/database";
import type { SyncResource } from "../entities/sync-run";
import * as write from "./writers";

/** A page that was read and waits to be committed. */
export interface ReadPage {
  fetched: number;
  /** The ids of the records that could be read. */
  ids: number[];
  rejected: RejectedRecord[];
  next: string | null;
  date: Date | null;
  correlationId: string | undefined;
  write(copy: CopyScope): Promise<write.Written>;
}

export type ListResource = Exclude<SyncResource, "DEAL_PARTICIPANTS">;
type ReadList = (api: CrmApi, page: PageRequest) => Promise<ReadPage>;

function list<T extends { id: number }>(
  fetch: (api: CrmApi, page: PageRequest) => Promise<CrmPage<T>>,
  writer: write.Writer<T>,
): ReadList {
  return async (api, request) => {
    const { records, rejected, next, date, correlationId } = await fetch(api, request);
    return {
      fetched: records.length + rejected.length,
      ids: records.map(({ id }) => id),
      rejected,
      next,
      date,
      correlationId,
      write: (copy) => writer(copy, records, rejected.length),
    };
  };
}

/** How each list of the CRM is read and where its records go. */
export const LISTS: Record<ListResource, ReadList> = {
  USERS: list((api) => api.users(), write.writeUsers),
  PIPELINES: list((api, page) => api.pipelines(page), write.writePipelines),
  STAGES: list((api, page) => api.stages(page), write.writeStages),
  ORGANIZATIONS: list((api, page) => api.organizations(page), write.writeOrganizations),
  PERSONS: list((api, page) => api.persons(page), write.writePersons),
  DEALS: list((api, page) => api.deals(page), write.writeDeals),
  ACTIVITIES: list((api, page) => api.activities(page), write.writeActivities),
  NOTES: list((api, page) => api.notes(page), write.writeNotes),
};
