import type { Operation, World } from "./operation";
import { withPageTwists } from "./page-twists";
import { noteCreation } from "./v1-note-creation";
import { noteOperations } from "./v1-notes";
import { participantOperation } from "./v1-participants";
import { userOperations } from "./v1-users";
import { fieldOperations } from "./v2-fields";
import { listOperation, singleOperation } from "./v2-list";
import { activities, archivedDeals, deals, organizations, persons, pipelines, stages } from "./v2-listings";
import { patchOperation } from "./v2-patch";

/** Every call the simulator answers. */
export function operations(world: World): Operation[] {
  const all = [
    ...userOperations(world),
    ...noteOperations(world),
    noteCreation(world),
    participantOperation(world),
    listOperation(organizations, world),
    singleOperation(organizations, "Organization", world),
    patchOperation(organizations, "Organization", world),
    listOperation(persons, world),
    singleOperation(persons, "Person", world),
    patchOperation(persons, "Person", world),
    listOperation(deals, world),
    listOperation(archivedDeals, world),
    singleOperation(deals, "Deal", world),
    patchOperation(deals, "Deal", world),
    listOperation(pipelines, world),
    singleOperation(pipelines, "Pipeline", world),
    listOperation(stages, world),
    singleOperation(stages, "Stage", world),
    listOperation(activities, world),
    singleOperation(activities, "Activity", world),
    ...fieldOperations("deal", world),
    ...fieldOperations("person", world),
    ...fieldOperations("organization", world),
  ];
  return all.map(withPageTwists);
}
