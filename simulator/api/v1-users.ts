import type { User } from "../model/records";
import { json, Refusal } from "./answer";
import type { Call, Operation, World } from "./operation";
import { shownBy } from "./page-twists";

/** Users take no parameters and come whole, deactivated ones included. */
export function userOperations({ company, views }: World): Operation[] {
  const seenBy = (viewer: User) => (user: User) => ({ ...user, is_you: user.id === viewer.id });
  return [
    {
      path: "/api/v1/users/me",
      cost: 2,
      answer: ({ user, company: own }) =>
        json(200, { success: true, data: { ...seenBy(user)(user), ...companyOf(own) } }),
    },
    {
      path: "/api/v1/users",
      cost: 20,
      answer: ({ user, twist }) => {
        const data = views.list(user, "user").filter(shownBy(twist)).map(seenBy(user));
        return json(200, { success: true, data, additional_data: { company_id: company.id } });
      },
    },
    {
      path: "/api/v1/users/:id",
      cost: 2,
      answer: ({ user, params }) => {
        const found = views.find(user, "user", Number(params.id));
        if (!found) throw new Refusal(json(404, { success: false, error: "User not found or not accessible." }));
        return json(200, { success: true, data: seenBy(user)(found) });
      },
    },
  ];
}

function companyOf(company: Call["company"]) {
  return {
    company_id: company.id,
    company_name: company.name,
    company_domain: company.domain,
    company_country: "EE",
    company_industry: "IT Services",
    language: { language_code: "en", country_code: "US" },
  };
}
