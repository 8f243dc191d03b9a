import { createHash } from "node:crypto";
import type { Company } from "../model/company";
import type { Field, FieldEntity } from "../model/fields";
import type { CustomFields } from "../model/records";
import { seconds } from "../model/times";
import { seedActivities } from "./activities";
import type { SeedContext } from "./context";
import { customFieldsOf, emptyFields, fillFields } from "./custom-fields";
import { DELETED_PERCENT, seedDeals } from "./deals";
import { seedNotes } from "./notes";
import { seedOrganizations } from "./organizations";
import { seedPersons } from "./persons";
import { seedPipelines } from "./pipelines";
import { Random } from "./random";
import { standardFieldsOf } from "./standard-fields";
import { seedStories } from "./stories";
import { storyCounts } from "./story-counts";
import { seedUsers } from "./users";

export interface SeedPlan {
  deals: number;
  seed: number;
  now: Date;
  company: { id: number; name: string; domain: string };
  openPercent: number;
}

/** The same plan gives the same company, byte for byte. */
export function seedCompany(plan: SeedPlan): Company {
  const company = emptyCompany(plan);
  const unfilled: Omit<SeedContext, "customFields"> = {
    random: new Random(`company/${plan.seed}`),
    now: seconds(plan.now),
    counts: countsFor(plan.deals),
    percent: { open: plan.openPercent, closed: 100 - DELETED_PERCENT - plan.openPercent },
    company,
    pool: {
      sellers: [],
      organizations: [],
      persons: [],
      personsByOrganization: new Map(),
      deals: [],
      silentSince: new Map(),
    },
  };
  const context: SeedContext = {
    ...unfilled,
    customFields: (entity, random) => fillFields(unfilled, entity, random),
  };
  seedUsers(context);
  seedPipelines(context);
  const stories = seedStories(context);
  seedOrganizations(context);
  seedPersons(context);
  seedDeals(context);
  seedActivities(context);
  seedNotes(context);
  return { ...company, stories };
}

function countsFor(deals: number): SeedContext["counts"] {
  return {
    deals: deals - storyCounts.deals,
    organizations: Math.max(2, Math.round(deals * 0.4) - storyCounts.organizations),
    persons: Math.max(4, deals - storyCounts.persons),
    activities: Math.round(deals * 2.5) - storyCounts.activities,
    notes: deals - storyCounts.notes,
  };
}

function emptyCompany(plan: SeedPlan): Omit<Company, "stories"> {
  const seed = createHash("sha1").update(String(plan.seed)).digest("hex");
  const fields = perEntity((entity): readonly Field[] => [
    ...standardFieldsOf(entity),
    ...customFieldsOf(entity, seed),
  ]);
  return {
    ...plan.company,
    users: new Map(),
    groups: new Map(),
    pipelines: new Map(),
    stages: new Map(),
    organizations: new Map(),
    persons: new Map(),
    deals: new Map(),
    activities: new Map(),
    notes: new Map(),
    participants: new Map(),
    fields,
    emptyCustomFields: perEntity((entity): CustomFields => emptyFields(fields[entity])),
  };
}

function perEntity<T>(make: (entity: FieldEntity) => T): Record<FieldEntity, T> {
  return { deal: make("deal"), person: make("person"), organization: make("organization") };
}
