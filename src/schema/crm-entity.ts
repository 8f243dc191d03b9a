import { registerEnumType } from "type-graphql";

export enum CrmEntity {
  DEAL = "DEAL",
  PERSON = "PERSON",
  ORGANIZATION = "ORGANIZATION",
}
registerEnumType(CrmEntity, { name: "CrmEntity", description: "What can receive a note and a nominated field." });
