import type { MatchStatus, OrganizationRule } from "../../entities/meeting";
import { companyDomainOf } from "../../platform/email-address";
import type { DomainFact, PersonFact } from "./facts";

/** For which organization of the CRM an attendee comes. */
export interface CompanyMatch {
  organizationStatus: MatchStatus;
  organizationId: number | null;
  organizationRule: OrganizationRule | null;
  /** null for those who are not asked: one's own side, and who is ignored. */
  organizationReason: string | null;
}

export const NO_COMPANY: CompanyMatch = {
  organizationStatus: "NONE",
  organizationId: null,
  organizationRule: null,
  organizationReason: null,
};

export const FREE_MAIL = "Free mail stands for no company.";

/** One person may have changed company and kept the old record; two with one domain have it from their company. */
const ENOUGH_PERSONS = 2;

/** Through the person, else by the domain of the address: that tells of a company to look at, and of no deal. */
export function companyOf(address: string, person: PersonFact | null, domains: readonly DomainFact[]): CompanyMatch {
  if (person?.organizationId != null) {
    return found(person.organizationId, "ORGANIZATION_OF_PERSON", "The person belongs to it in the CRM.");
  }
  const domain = companyDomainOf(address);
  if (domain === null) return none(FREE_MAIL);
  const users = domains.filter((fact) => fact.domain === domain);
  const [only, ...others] = users;
  if (!only) return none(`No organization in the CRM uses ${domain}.`);
  if (others.length > 0) {
    const reason = `${users.length} organizations in the CRM use ${domain}, and nothing tells which one it is.`;
    return { ...none(reason), organizationStatus: "AMBIGUOUS" };
  }
  if (only.isWebsite) return found(only.organizationId, "DOMAIN_OF_WEBSITE", `${domain} is its website.`);
  if (only.persons >= ENOUGH_PERSONS) {
    return found(
      only.organizationId,
      "DOMAIN_OF_PERSONS",
      `${only.persons} of its persons have an address at ${domain}.`,
    );
  }
  return none(`Only one person in the CRM has an address at ${domain}; that is too little to tell a company by.`);
}

const found = (
  organizationId: number,
  organizationRule: OrganizationRule,
  organizationReason: string,
): CompanyMatch => ({ organizationStatus: "MATCHED", organizationId, organizationRule, organizationReason });

const none = (organizationReason: string): CompanyMatch => ({ ...NO_COMPANY, organizationReason });
