/** The uses of a session, in the order in which they are served. */
export const SESSION_USES = ["read", "work", "background"] as const;
/** Reads of operations, what else an operation does, and whatever nobody waits for: jobs, sweeps. */
export type SessionUse = (typeof SESSION_USES)[number];

export interface SessionShares {
  sessions: number;
  /** Of all sessions, for each use: what is left over is there for the others, whoever holds the rest. */
  most: Record<SessionUse, number>;
  /** In the background while operations hold sessions too. */
  backgroundBeside: number;
  /** Of one tenant, whatever for, and of those for anything but reads. */
  ofTenant: number;
  unreadOfTenant: number;
}

interface Tenant {
  held: number;
  /** Held for anything but reads. */
  unread: number;
  waiting: Record<SessionUse, (() => void)[]>;
}

/**
 * Whose turn it is to have a database session: within a use the tenants take turns, and none holds more than its share,
 * so that one tenant's burst waits behind itself and not before the others (decision 0057).
 */
export class SessionTurns {
  /** In the order of their turns: who comes anew, and who was served, goes to the end. */
  readonly #tenants = new Map<string, Tenant>();
  readonly #held: Record<SessionUse, number> = { read: 0, work: 0, background: 0 };

  constructor(private readonly shares: SessionShares) {}

  /**
   * @param givesUp ends the wait, whose reason is then thrown
   * @returns gives the session's place back; called again, it does nothing
   */
  async take(tenantId: string, use: SessionUse, givesUp?: AbortSignal): Promise<() => void> {
    const tenant = this.#tenants.get(tenantId) ?? noneHeld();
    this.#tenants.set(tenantId, tenant);
    await new Promise<void>((begin, giveUp) => {
      const leave = () => {
        tenant.waiting[use] = tenant.waiting[use].filter((other) => other !== serve);
        this.#forgetIdle(tenantId, tenant);
        giveUp(givesUp?.reason);
      };
      const serve = () => {
        givesUp?.removeEventListener("abort", leave);
        begin();
      };
      tenant.waiting[use].push(serve);
      if (givesUp?.aborted) return leave();
      givesUp?.addEventListener("abort", leave, { once: true });
      this.#serve();
    });
    let isGivenBack = false;
    return () => {
      if (isGivenBack) return;
      isGivenBack = true;
      this.#count(tenant, use, -1);
      this.#forgetIdle(tenantId, tenant);
      this.#serve();
    };
  }

  #serve(): void {
    for (const use of SESSION_USES) {
      for (let next = this.#next(use); next; next = this.#next(use)) {
        const [tenantId, tenant] = next;
        this.#tenants.delete(tenantId);
        this.#tenants.set(tenantId, tenant);
        this.#count(tenant, use, 1);
        tenant.waiting[use].shift()?.();
      }
    }
  }

  /** The tenant that waits for this use and may have a session now, and whose last turn is longest ago. */
  #next(use: SessionUse): [string, Tenant] | null {
    if (!this.#isFree(use)) return null;
    for (const entry of this.#tenants) {
      const [, tenant] = entry;
      if (tenant.waiting[use].length > 0 && this.#isWithinShare(tenant, use)) return entry;
    }
    return null;
  }

  #isFree(use: SessionUse): boolean {
    const { sessions, most, backgroundBeside } = this.shares;
    const { read, work, background } = this.#held;
    if (read + work + background >= sessions) return false;
    const isBeside = use === "background" && read + work > 0;
    return this.#held[use] < (isBeside ? backgroundBeside : most[use]);
  }

  #isWithinShare({ held, unread }: Tenant, use: SessionUse): boolean {
    return held < this.shares.ofTenant && (use === "read" || unread < this.shares.unreadOfTenant);
  }

  #forgetIdle(tenantId: string, tenant: Tenant): void {
    if (isIdle(tenant) && this.#tenants.get(tenantId) === tenant) this.#tenants.delete(tenantId);
  }

  #count(tenant: Tenant, use: SessionUse, by: 1 | -1): void {
    this.#held[use] += by;
    tenant.held += by;
    if (use !== "read") tenant.unread += by;
  }
}

const noneHeld = (): Tenant => ({ held: 0, unread: 0, waiting: { read: [], work: [], background: [] } });
const isIdle = ({ held, waiting }: Tenant) => held === 0 && SESSION_USES.every((use) => waiting[use].length === 0);
