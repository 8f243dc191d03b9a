/** The consent page's button, pressed without the page: a token of the benchmark's own. */
export async function accessToken(env: NodeJS.ProcessEnv): Promise<string> {
  const { CRM_AUTH_URL = "", CRM_CLIENT_ID = "", CRM_CLIENT_SECRET = "", CRM_REDIRECT_URL = "" } = env;
  const consent = await fetch(`${CRM_AUTH_URL}/oauth/authorize`, {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams({ client_id: CRM_CLIENT_ID, redirect_uri: CRM_REDIRECT_URL, decision: "allow" }),
  });
  const code = new URL(consent.headers.get("location") ?? "").searchParams.get("code") ?? "";
  const basic = Buffer.from(`${CRM_CLIENT_ID}:${CRM_CLIENT_SECRET}`).toString("base64");
  const answer = await fetch(`${CRM_AUTH_URL}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: "authorization_code", code, redirect_uri: CRM_REDIRECT_URL }),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}
