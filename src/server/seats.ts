import { LRUCache } from "lru-cache";
import type { Actor } from "../auth/actor";
import { Allowance, type BoundedSocket } from "./bounded-socket";
import { MAX_USERS_REMEMBERED, USER_MESSAGES_A_MINUTE } from "./connection-limits";

type Seated = Pick<BoundedSocket, "readyState" | "OPEN" | "once" | "proven" | "turnAway">;

/** How many sockets each user and each tenant has open in this process, so that one token cannot open them without end. */
export class Seats {
  readonly #ofTenants = new Map<number, number>();
  readonly #ofUsers = new Map<string, number>();
  readonly #messages = new LRUCache<string, Allowance>({ max: MAX_USERS_REMEMBERED });

  constructor(private readonly most: { ofTenant: number; ofUser: number }) {}

  /** @returns false where there is none left, or where the socket has closed meanwhile; then it is told why */
  take({ tenantId, userId }: Pick<Actor, "tenantId" | "userId">, socket: Seated): boolean {
    if (socket.readyState !== socket.OPEN) return false;
    const user = JSON.stringify([tenantId, userId]);
    const messages = this.#messages.get(user) ?? new Allowance(USER_MESSAGES_A_MINUTE);
    this.#messages.set(user, messages);
    if ((this.#ofTenants.get(tenantId) ?? 0) >= this.most.ofTenant) {
      socket.turnAway("tenant_sockets", "Your organization has too many sockets open");
    } else if ((this.#ofUsers.get(user) ?? 0) >= this.most.ofUser) {
      socket.turnAway("user_sockets", "You have too many sockets open");
    } else if (!messages.take(1)) {
      socket.turnAway("messages", "Too many messages in a minute");
    } else {
      count(this.#ofTenants, tenantId, 1);
      count(this.#ofUsers, user, 1);
      socket.once("close", () => {
        count(this.#ofTenants, tenantId, -1);
        count(this.#ofUsers, user, -1);
      });
      socket.proven(messages);
      return true;
    }
    return false;
  }
}

function count<Key>(taken: Map<Key, number>, key: Key, change: number): void {
  const now = (taken.get(key) ?? 0) + change;
  if (now > 0) taken.set(key, now);
  else taken.delete(key);
}
