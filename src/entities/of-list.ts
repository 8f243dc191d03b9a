import { PrimaryColumn } from "typeorm";
import type { SyncResource } from "./sync-run";

/** What is known of one of the CRM's lists, in one copy. */
export abstract class OfList {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  resource!: SyncResource;
}

/** Of one record of it; 0 where the whole list is meant. */
export abstract class OfListedRecord extends OfList {
  @PrimaryColumn("bigint")
  crmId!: number;
}
