// What a client's messages may hold, and what is kept of them.

/** Characters of a subscription's id; clients take a UUID. */
const MAX_ID_LENGTH = 100;

/**
 * `next` and `error` are a server's to send: the library takes one from a client for a fault of ours (4500, and a stack
 * on stderr). The payload of a `ping` it would send back, whatever its size. Refused while they are read, they are bad
 * requests (4400). Members that the protocol does not have are dropped.
 */
export function readMessage(key: string, value: unknown): unknown {
  if (key !== "" || typeof value !== "object" || value === null || !("type" in value)) return value;
  const { type } = value;
  if (type === "next" || type === "error") throw new Error("a client sent what only a server sends");
  if ((type === "ping" || type === "pong") && "payload" in value) throw new Error("a ping or pong has no payload here");
  const id = "id" in value ? value.id : undefined;
  if (typeof id === "string" && id.length > MAX_ID_LENGTH) throw new Error("an id of that length would be kept");
  return { type, ...("id" in value && { id }), ...("payload" in value && { payload: value.payload }) };
}

/** Takes everything out: the library keeps what came for as long as the socket or the subscription is open. */
export function take<T extends object>(payload: T): T {
  const taken = { ...payload };
  for (const name of Object.keys(payload)) Reflect.deleteProperty(payload, name);
  return taken;
}

/** `connection_init` carries what an HTTP request has in its header: `{ authorization: "Bearer ..." }`. */
export function takeToken(parameters: Record<string, unknown> = {}): string {
  const { authorization, Authorization } = take(parameters);
  const header = authorization ?? Authorization;
  return typeof header === "string" ? header.replace(/^Bearer /i, "") : "";
}
