import { type Answer, html } from "../api/answer";
import type { Company } from "../model/company";
import type { Settings } from "../model/options";
import type { User } from "../model/records";
import type { Grants } from "./grants";

const APP_NAME = "Meeting Intelligence";

/** Who is signed in to the CRM in the browser: consent binds to that user without asking. */
export interface SignedIn {
  user: User;
}

/** The consent page. What does not name the registered app is answered here and never sent to the address it names. */
export function consentPage(settings: Settings, company: Company, { user }: SignedIn, query: URLSearchParams): Answer {
  const problem = clientProblem(settings, query) ?? accountProblem(user);
  if (problem) return html(400, page("Something is wrong", `<p>${escaped(problem)}</p>`));
  const hidden = ["client_id", "redirect_uri", "state"]
    .filter((name) => query.has(name))
    .map((name) => `<input type="hidden" name="${name}" value="${escaped(query.get(name) ?? "")}">`)
    .join("");
  const body = `<p>Signed in as <b>${escaped(user.name)}</b> (${escaped(user.email)}) of <b>${escaped(company.name)}</b>.</p>
<p>${escaped(APP_NAME)} asks for access to your deals, contacts and activities.</p>
<form method="post" action="/oauth/authorize">${hidden}
<button type="submit" name="decision" value="allow">Allow and Install</button>
<button type="submit" name="decision" value="cancel">Cancel</button>
</form>`;
  return html(200, page(APP_NAME, body));
}

export function consentAnswer(settings: Settings, grants: Grants, { user }: SignedIn, form: URLSearchParams): Answer {
  const problem = clientProblem(settings, form) ?? accountProblem(user);
  if (problem) return html(400, page("Something is wrong", `<p>${escaped(problem)}</p>`));
  const target = new URL(settings.redirectUrl);
  if (form.get("decision") === "allow") {
    target.searchParams.set("code", grants.issueCode(user.id, settings.redirectUrl));
  } else {
    target.searchParams.set("error", "user_denied");
  }
  const state = form.get("state");
  if (state !== null) target.searchParams.set("state", state);
  return { ...html(302, ""), headers: { location: target.href } };
}

function clientProblem(settings: Settings, query: URLSearchParams): string | null {
  if (query.get("client_id") !== settings.clientId) return "App cannot be installed for requested company";
  return query.get("redirect_uri") === settings.redirectUrl ? null : "Invalid redirect_uri";
}

function accountProblem(user: User): string | null {
  return user.active_flag ? null : "This account has been deactivated";
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title></head>
<body><h1>${escaped(title)}</h1>
${body}
</body></html>`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
