import { Client } from "../client";
import { MeDocument, StatusDocument } from "../operations.generated";

/** `?service=` and `?host=` name others on this machine. A link could name any, and have the user's token sent there. */
function addressOf(name: string, usual: string): string {
  const address = new URLSearchParams(window.location.search).get(name) ?? usual;
  if (new URL(address).hostname !== "127.0.0.1") throw new Error(`The ${name} is none of this machine.`);
  return address;
}

/** The product's session is in its cookie; the service sees the token alone. */
async function token(): Promise<string> {
  const answer = await fetch(`${addressOf("host", "http://127.0.0.1:4100")}/token`, {
    method: "POST",
    credentials: "include",
  });
  const { token: text, signInUrl } = (await answer.json()) as { token?: string; signInUrl: string };
  if (text === undefined) throw new Error(`Sign in first: ${signInUrl}`);
  return text;
}

const show = (id: string, text: string) => {
  const place = document.getElementById(id);
  if (place) place.textContent = text;
};

async function main(): Promise<void> {
  const client = new Client({ url: addressOf("service", "http://127.0.0.1:4000"), token });
  const { viewer, connection } = await client.ask(MeDocument, {});
  show("me", `${viewer.userId} is ${viewer.role}; ${connection.companyName ?? "no CRM"}`);
  for await (const told of client.hear(StatusDocument, {})) {
    show("state", told?.connectionStatusChanged.state ?? "not known now");
  }
}

main().catch((error: Error) => show("me", error.message));
