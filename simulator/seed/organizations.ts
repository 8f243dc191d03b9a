import { blankOrganization } from "../model/blank";
import type { Organization } from "../model/records";
import { visibility } from "../model/records";
import { DAY, v2Time } from "../model/times";
import { firstId, nextId, type SeedContext } from "./context";
import { asciiWord } from "./people";
import type { Random } from "./random";
import { cities, companyForms, companyStems, companyTrades } from "./words";

export function seedOrganizations(context: SeedContext): void {
  const random = context.random.stream("organizations");
  for (let index = 0; index < context.counts.organizations; index++) {
    const stem = random.pick(companyStems);
    const trade = random.pick(companyTrades);
    const organization = addOrganization(context, {
      name: `${stem} ${trade} ${random.pick(companyForms)}`,
      domain: `${asciiWord(stem)}-${asciiWord(trade)}-${index + 1}.example`,
      ownerId: random.pick(context.pool.sellers),
      added: context.now - random.int(30, 720) * DAY - random.int(0, DAY),
      random,
    });
    organization.visible_to = seededVisibility(random);
    if (index > 0 && random.chance(0.02)) {
      organization.is_deleted = true;
      organization.update_time = v2Time(context.now - random.int(1, 40) * DAY);
    } else {
      context.pool.organizations.push(organization.id);
    }
  }
}

export function addOrganization(
  context: SeedContext,
  plan: { name: string; domain: string; ownerId: number; added: number; random: Random },
): Organization {
  const { random } = plan;
  const organization = blankOrganization({
    id: nextId(context.company.organizations, firstId.organization),
    name: plan.name,
    owner_id: plan.ownerId,
    add_time: v2Time(plan.added),
    custom_fields: context.customFields("organization", random),
  });
  organization.update_time = v2Time(plan.added + Math.floor(random.next() * (context.now - plan.added)));
  organization.website = random.chance(0.8) ? `https://www.${plan.domain}` : null;
  organization.linkedin = random.chance(0.3) ? `https://linkedin.com/company/${plan.domain.split(".")[0]}` : null;
  organization.employee_count = random.chance(0.5) ? random.int(3, 9_000) : null;
  organization.annual_revenue = random.chance(0.3) ? random.int(1, 900) * 100_000 : null;
  organization.industry = random.chance(0.4) ? random.int(1, 20) : null;
  organization.address = random.chance(0.6) ? addressOf(random) : null;
  context.company.organizations.set(organization.id, organization);
  return organization;
}

/** Most records are for everyone; the rest make the users' views differ. */
export function seededVisibility(random: Random): number {
  return random.weighted([
    [visibility.everyone, 82],
    [visibility.group, 11],
    [visibility.owner, 7],
  ]);
}

function addressOf(random: Random): Organization["address"] {
  const city = random.pick(cities);
  const number = String(random.int(1, 180));
  return {
    value: `${city.route} ${number}, ${city.postal_code} ${city.locality}`,
    country: city.country,
    admin_area_level_1: city.admin,
    admin_area_level_2: null,
    locality: city.locality,
    sublocality: null,
    route: city.route,
    street_number: number,
    subpremise: null,
    postal_code: city.postal_code,
  };
}
