import { ENTITIES, type Entity, type FieldsAnswer, fieldOf, heldIn, setMapping } from "./fields";
import { recordMeeting } from "./stories";
import { useService } from "./world";

/** A connected tenant with a meeting that is matched to one deal, one person and one organization, a field of each nominated. */
export function useFieldStory() {
  const parts = useService({ deals: 40, connected: ["acme"] });
  const { simulator, service } = parts;
  const ids: Record<Entity, number> = { DEAL: 0, PERSON: 0, ORGANIZATION: 0 };
  let meetingId = "";
  const keyOf = (entity: Entity, type = "varchar") => fieldOf(simulator, entity, type).field_code;
  /** Nominates the field of one type on every entity. */
  const nominate = async (type: string) => {
    for (const entity of ENTITIES) {
      const answer = await setMapping(service, entity, keyOf(entity, type));
      if (!answer.mappings) throw new Error(`the field was refused: ${answer.message}`);
    }
    simulator.log.clear();
  };
  /** What the CRM holds in the field of one type of the meeting's record. */
  const held = (entity: Entity, type?: string): unknown => heldIn(simulator, entity, ids[entity], keyOf(entity, type));
  beforeAll(async () => {
    const { email, dealId, personId, orgId } = simulator.company.stories.singleDeal;
    Object.assign(ids, { DEAL: dealId, PERSON: personId, ORGANIZATION: orgId });
    meetingId = (await recordMeeting(service, [email])).id;
    await nominate("varchar");
  });
  beforeEach(() => parts.world.beginAnew());
  return {
    ...parts,
    ids,
    keyOf,
    nominate,
    held,
    get meetingId() {
      return meetingId;
    },
  };
}

export const all = (value: unknown) => ENTITIES.map((entity) => ({ entity, value }));
export const statesOf = ({ writes }: FieldsAnswer) => writes?.map(({ state, error }) => error?.code ?? state);
