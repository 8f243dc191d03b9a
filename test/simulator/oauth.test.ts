import {
  clientWith,
  connect,
  type Refusal,
  redeem,
  refresh,
  request,
  start,
  stopAll,
  TestClock,
  token,
  tokensOf,
} from "./client";

afterEach(stopAll);

describe("consent", () => {
  test("the page names the app, the user and the company, escaped, and has the two buttons", async () => {
    const simulator = await start({ company: { name: 'Bits & "Bobs" <Ltd>' } });
    const page = await request(consentUrl(simulator, { state: '"><script>' }));
    expect(page.status).toBe(200);
    expect(page.body).toContain(">Allow and Install</button>");
    expect(page.body).toContain(">Cancel</button>");
    expect(page.body).toContain("Bits &amp; &quot;Bobs&quot; &lt;Ltd&gt;");
    expect(page.body).not.toContain("<script>");
    const user = simulator.company.users.get(simulator.company.stories.singleDeal.ownerId);
    expect(page.body).toContain(user?.email);
  });

  test("an unknown app or another redirect address gets a 400 page and is never redirected", async () => {
    const simulator = await start();
    const wrongs: Record<string, string>[] = [{ client_id: "other" }, { redirect_uri: `${simulator.redirectUrl}/` }];
    for (const wrong of wrongs) {
      const url = consentUrl(simulator, wrong);
      for (const reply of [await request(url), await request(url.split("?")[0] ?? "", form(url, "allow"))]) {
        expect(reply.status).toBe(400);
        expect(reply.headers.get("location")).toBeNull();
        expect(reply.headers.get("content-type")).toContain("text/html");
      }
    }
  });

  test("allowing redirects with a code and the state unchanged; a scope parameter changes nothing", async () => {
    const simulator = await start();
    const url = consentUrl(simulator, { state: "a b&c", scope: "base" });
    const reply = await request(`${simulator.url}/oauth/authorize`, form(url, "allow"));
    expect(reply.status).toBe(302);
    const target = new URL(reply.headers.get("location") ?? "");
    expect(target.origin + target.pathname).toBe(simulator.redirectUrl);
    expect(target.searchParams.get("state")).toBe("a b&c");
    const code = target.searchParams.get("code") ?? "";
    expect(code).toMatch(/^\d+\.\d+\.[0-9a-f]+$/);
    const { scope } = tokensOf(await redeem(simulator, code));
    expect(scope).toBe("base,deals:full,contacts:full,activities:read,users:read");
  });

  test("cancelling redirects with user_denied and no code", async () => {
    const simulator = await start();
    const reply = await request(
      `${simulator.url}/oauth/authorize`,
      form(consentUrl(simulator, { state: "s" }), "cancel"),
    );
    const target = new URL(reply.headers.get("location") ?? "");
    expect(Object.fromEntries(target.searchParams)).toEqual({ error: "user_denied", state: "s" });
  });

  test("the code belongs to whoever is signed in", async () => {
    const simulator = await start();
    const [admin] = simulator.company.users.keys();
    const client = await connect(simulator, admin);
    expect((await client.one("/api/v1/users/me")).id).toBe(admin);
  });
});

describe("tokens", () => {
  test("the answer has exactly the wire's members", async () => {
    const simulator = await start({ company: { id: 55, domain: "acme" } });
    const { status, body } = await redeem(simulator, simulator.control.approve());
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^v1u:.{200,}$/),
      token_type: "Bearer",
      refresh_token: expect.stringMatching(/^55:\d+:[0-9a-f]{40}$/),
      scope: expect.stringContaining("base,"),
      expires_in: 3599,
      api_domain: "https://acme.pipedrive.com",
    });
  });

  test("a code works once, for five minutes, with its redirect address only", async () => {
    const clock = new TestClock();
    const simulator = await start({ now: clock.now });
    const code = simulator.control.approve();
    expect(await redeem(simulator, code, "http://elsewhere/")).toMatchObject({ body: { error: "invalid_request" } });
    expect((await redeem(simulator, code)).status).toBe(200);
    expect(await redeem(simulator, code)).toMatchObject({ status: 400, body: { error: "invalid_grant" } });
    const late = simulator.control.approve();
    clock.advance(299);
    const inTime = simulator.control.approve();
    clock.advance(2);
    expect((await redeem(simulator, late)).body).toEqual({
      success: false,
      message: "Invalid grant: authorization code has expired",
      error: "invalid_grant",
    });
    expect((await redeem(simulator, inTime)).status).toBe(200);
    const ended = simulator.control.approve();
    simulator.control.expireCodes();
    expect(await redeem(simulator, ended)).toMatchObject({ body: { error: "invalid_grant" } });
  });

  test("faults of the request have the documented bodies", async () => {
    const simulator = await start();
    const refuses = async (error: string, form: Record<string, string>, secret?: string) => {
      const { status, body } = await token(simulator, form, secret);
      expect(status).toBe(400);
      expect(Object.keys(body).sort()).toEqual(["error", "message", "success"]);
      expect(body).toMatchObject({ error });
    };
    await refuses("invalid_client", { grant_type: "refresh_token", refresh_token: "x" }, "wrong");
    await refuses("invalid_request", {});
    await refuses("unsupported_grant_type", { grant_type: "password" });
    await refuses("invalid_request", { grant_type: "authorization_code" });
    await refuses("invalid_grant", { grant_type: "refresh_token", refresh_token: "1:2:3" });
    const json = await request<Refusal>(`${simulator.url}/oauth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(json).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    expect(json.body.message).toContain("x-www-form-urlencoded");
  });

  test("credentials in the body work too, missing ones do not", async () => {
    const simulator = await start();
    const ask = (extra: Record<string, string>) =>
      request(`${simulator.url}/oauth/token`, {
        method: "POST",
        body: new URLSearchParams({
          grant_type: "authorization_code",
          code: simulator.control.approve(),
          redirect_uri: simulator.redirectUrl,
          ...extra,
        }),
      });
    const { clientId, clientSecret } = simulator;
    expect((await ask({ client_id: clientId, client_secret: clientSecret })).status).toBe(200);
    expect(await ask({})).toMatchObject({ body: { message: "Invalid client: cannot retrieve client credentials" } });
  });

  test("an access token lives sixty minutes by the simulator's clock", async () => {
    const clock = new TestClock();
    const simulator = await start({ now: clock.now });
    const client = await connect(simulator);
    clock.advance(3_599);
    expect((await client.get("/api/v1/users/me")).status).toBe(200);
    clock.advance(1);
    const expired = await client.get("/api/v1/users/me");
    expect(expired.status).toBe(401);
    expect(expired.body).toMatchObject({
      success: false,
      error: "Invalid token: access_token is invalid",
      errorCode: 401,
    });
    expect((await refresh(simulator, client.refreshToken)).status).toBe(200);
  });

  test("without a token 401, with a malformed header 400", async () => {
    const simulator = await start();
    const bare = await request(`${simulator.url}/api/v2/deals`);
    expect(bare).toMatchObject({ status: 401, body: { success: false, error: "unauthorized access", errorCode: 401 } });
    const odd = await request(`${simulator.url}/api/v2/deals`, { headers: { authorization: "Token x" } });
    expect(odd).toMatchObject({ status: 400, body: { error: "Invalid request: malformed authorization header" } });
  });
});

describe("refresh tokens", () => {
  test("strict: the old one is dead at once", async () => {
    const simulator = await start();
    const { refreshToken } = await connect(simulator);
    const next = tokensOf(await refresh(simulator, refreshToken));
    expect(next.refresh_token).not.toBe(refreshToken);
    expect(await refresh(simulator, refreshToken)).toMatchObject({ status: 400, body: { error: "invalid_grant" } });
    expect((await refresh(simulator, next.refresh_token)).status).toBe(200);
  });

  test("grace: the old one works until the new one is used", async () => {
    const simulator = await start({ refreshTokens: "grace" });
    const { refreshToken: first } = await connect(simulator);
    const lost = tokensOf(await refresh(simulator, first)).refresh_token;
    const second = tokensOf(await refresh(simulator, first)).refresh_token;
    expect((await refresh(simulator, lost)).status).toBe(400);
    expect((await refresh(simulator, second)).status).toBe(200);
    expect((await refresh(simulator, first)).status).toBe(400);
  });

  test("same: it never changes", async () => {
    const simulator = await start({ refreshTokens: "same" });
    const { refreshToken } = await connect(simulator);
    for (let turn = 0; turn < 2; turn++) {
      expect(tokensOf(await refresh(simulator, refreshToken)).refresh_token).toBe(refreshToken);
    }
  });

  test("revocation ends the grant, and the log shows that it was called", async () => {
    const simulator = await start();
    const client = await connect(simulator);
    const { clientId: client_id, clientSecret: client_secret } = simulator;
    const body = new URLSearchParams({ token: client.refreshToken, client_id, client_secret });
    expect((await request(`${simulator.url}/oauth/revoke`, { method: "POST", body })).status).toBe(200);
    expect((await client.get("/api/v1/users/me")).status).toBe(401);
    expect(await refresh(simulator, client.refreshToken)).toMatchObject({ body: { error: "invalid_grant" } });
    expect(simulator.log.of("POST", "/oauth/revoke")).toHaveLength(1);
  });
});

test("the log holds neither tokens nor codes nor secrets", async () => {
  const simulator = await start();
  const code = simulator.control.approve();
  const { access_token, refresh_token } = tokensOf(await redeem(simulator, code));
  await clientWith(simulator, access_token).get(`/api/v2/deals?api_token=${access_token}`);
  await request(consentUrl(simulator, { state: "secret-state", code }));
  const text = JSON.stringify(simulator.log.all());
  for (const secret of [code, access_token, refresh_token, simulator.clientSecret, "secret-state"]) {
    expect(text).not.toContain(secret);
  }
  expect(simulator.log.all()[0]).toMatchObject({ path: "/oauth/token", grantType: "authorization_code", status: 200 });
});

function consentUrl(simulator: { url: string; clientId: string; redirectUrl: string }, extra: Record<string, string>) {
  const query = { client_id: simulator.clientId, redirect_uri: simulator.redirectUrl, ...extra };
  return `${simulator.url}/oauth/authorize?${new URLSearchParams(query)}`;
}

function form(url: string, decision: string): RequestInit {
  const body = new URLSearchParams(new URL(url).search);
  body.set("decision", decision);
  return { method: "POST", body };
}
