import { type Simulator, startSimulator } from "../../simulator";
import { createTestDatabase, type TestDatabase } from "./database";
import { ENTITIES, type Entity, type FieldsAnswer, fieldOf, heldIn, setMapping } from "./fields";
import { type Service, startService } from "./service";
import { connect, recordMeeting, syncEnds } from "./stories";

/** A connected tenant with a meeting that is matched to one deal, one person and one organization. */
export interface FieldStory {
  simulator: Simulator;
  database: TestDatabase;
  service: Service;
  meetingId: string;
  ids: Record<Entity, number>;
  /** Nominates the field of one type on every entity. */
  nominate(type: string): Promise<void>;
  keyOf(entity: Entity, type?: string): string;
  /** What the CRM holds in the field of one type of the meeting's record. */
  held(entity: Entity, type?: string): unknown;
  stop(): Promise<void>;
}

export async function startFieldStory(): Promise<FieldStory> {
  const [simulator, database] = await Promise.all([startSimulator({ deals: 40 }), createTestDatabase()]);
  const service = await startService(simulator, database);
  await connect(service, simulator);
  await syncEnds(service);
  const { email, dealId, personId, orgId } = simulator.company.stories.singleDeal;
  const ids = { DEAL: dealId, PERSON: personId, ORGANIZATION: orgId };
  const keyOf = (entity: Entity, type = "varchar") => fieldOf(simulator, entity, type).field_code;
  const nominate = async (type: string) => {
    for (const entity of ENTITIES) {
      const answer = await setMapping(service, entity, keyOf(entity, type));
      if (!answer.mappings) throw new Error(`the field was refused: ${answer.message}`);
    }
    simulator.log.clear();
  };
  const { id: meetingId } = await recordMeeting(service, [email]);
  await nominate("varchar");
  return {
    ...{ simulator, database, service, meetingId, ids, nominate, keyOf },
    held: (entity, type) => heldIn(simulator, entity, ids[entity], keyOf(entity, type)),
    stop: async () => {
      await service.stop();
      await Promise.all([simulator.stop(), database.drop()]);
    },
  };
}

export const all = (value: unknown) => ENTITIES.map((entity) => ({ entity, value }));
export const statesOf = ({ writes }: FieldsAnswer) => writes?.map(({ state, error }) => error?.code ?? state);
