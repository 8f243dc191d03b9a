import type { World } from "../api/operation";
import type { FieldEntity } from "../model/fields";
import type { Activity, Entity } from "../model/records";

interface Hanging {
  id: number;
  deal_id?: number | null;
  person_id?: number | null;
  org_id?: number | null;
}

/** What hung on the loser of a merge hangs on the winner. Calls back for each record that was moved. */
export function rehang(
  { company }: World,
  entity: FieldEntity,
  { loserId, winnerId }: { loserId: number; winnerId: number },
  moved: (entity: Entity, record: Hanging) => void,
): void {
  const link = ({ deal: "deal_id", person: "person_id", organization: "org_id" } as const)[entity];
  const tables: [Entity, Iterable<Hanging>][] = [
    ["person", company.persons.values()],
    ["deal", company.deals.values()],
    ["activity", company.activities.values()],
    ["note", company.notes.values()],
  ];
  for (const [hanging, records] of tables) {
    for (const record of records) {
      if (record[link] !== loserId) continue;
      record[link] = winnerId;
      moved(hanging, record);
    }
  }
  if (entity !== "person") return;
  for (const activity of company.activities.values()) {
    if (replaceParticipant(activity, loserId, winnerId)) moved("activity", activity);
  }
}

function replaceParticipant({ participants }: Activity, loserId: number, winnerId: number): boolean {
  const its = participants.filter((participant) => participant.person_id === loserId);
  for (const participant of its) participant.person_id = winnerId;
  return its.length > 0;
}

/** Who takes part in the deals once the two are one. */
export function participantsAfter(
  { company }: World,
  entity: FieldEntity,
  { loserId, winnerId }: { loserId: number; winnerId: number },
): Map<number, number[]> {
  const on = (dealId: number) => (company.participants.get(dealId) ?? []).map((link) => link.personId);
  const once = (ids: number[]) => [...new Set(ids)];
  if (entity === "deal") return new Map([[winnerId, once([...on(winnerId), ...on(loserId)])]]);
  if (entity === "organization") return new Map();
  const deals = [...company.participants.keys()].filter((dealId) => on(dealId).includes(loserId));
  return new Map(deals.map((id) => [id, once(on(id).map((personId) => (personId === loserId ? winnerId : personId)))]));
}
