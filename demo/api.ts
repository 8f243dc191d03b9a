import { SignJWT } from "jose";

/** The demo's view of the service: a client of the public API and nothing else. */
export class Api {
  private constructor(
    readonly address: string,
    readonly token: string,
  ) {}

  /** A client that is signed in as the admin of the demo's tenant, for half a day. */
  static async signIn(serviceUrl: string, jwtSecret: string): Promise<Api> {
    const token = await new SignJWT({ tenant: "demo", role: "admin", plan: "sales", name: "Demo Admin" })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject("demo-admin")
      .setExpirationTime("12h")
      .sign(new TextEncoder().encode(jwtSecret));
    return new Api(`${serviceUrl}/graphql`, token);
  }

  /** @throws where the service answers with an error */
  async ask<T>(query: string, variables: object = {}): Promise<T> {
    const answer = await fetch(this.address, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.token}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await answer.json()) as { data: T; errors?: { message: string }[] };
    if (errors?.[0]) throw new Error(errors[0].message);
    return data;
  }
}
