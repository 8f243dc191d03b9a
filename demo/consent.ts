import type { Api } from "./api";

const START = `mutation { startConnect {
  ... on ConnectStarted { authorizationUrl } ... on Refusal { message } } }`;
const CONNECT = `mutation ($input: ConnectInput!) { connect(input: $input) {
  ... on ConnectSuccess { connection { boundUserName boundEmail companyName } } ... on Refusal { message } } }`;

export interface Bound {
  boundUserName: string;
  boundEmail: string;
  companyName: string;
}

/** Goes the way of an admin's browser: the consent page, its "Allow and Install" button, and back with the code. */
export async function connect(api: Api): Promise<Bound> {
  const { startConnect } = await api.ask<{ startConnect: { authorizationUrl?: string; message?: string } }>(START);
  if (!startConnect.authorizationUrl) throw new Error(`connecting was refused: ${startConnect.message}`);
  const callback = await allowAndInstall(startConnect.authorizationUrl);
  const input = { code: callback.get("code"), state: callback.get("state"), error: callback.get("error") };
  const { connect: answer } = await api.ask<{ connect: { connection?: Bound; message?: string } }>(CONNECT, { input });
  if (!answer.connection) throw new Error(`the connection was refused: ${answer.message}`);
  return answer.connection;
}

/** Opens the consent page and presses its button. @returns the parameters that reach the redirect address */
async function allowAndInstall(authorizationUrl: string): Promise<URLSearchParams> {
  const page = await (await fetch(authorizationUrl)).text();
  const button = /<button[^>]*name="([^"]+)"[^>]*value="([^"]+)"[^>]*>\s*Allow and Install\s*<\/button>/.exec(page);
  if (!button) throw new Error('the consent page has no "Allow and Install" button');
  const form = new URLSearchParams([[button[1] ?? "", button[2] ?? ""]]);
  for (const [, name = "", value = ""] of page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)) {
    form.set(name, value.replaceAll("&amp;", "&"));
  }
  const action = new URL(
    /<form[^>]*action="([^"]*)"/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "",
    authorizationUrl,
  );
  const answer = await fetch(action, { method: "POST", body: form, redirect: "manual" });
  const location = answer.headers.get("location");
  if (!location) throw new Error(`the consent page answered ${answer.status} and sent the browser nowhere`);
  return new URL(location).searchParams;
}
