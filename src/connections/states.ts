import type { ConnectionState } from "../entities/connection";

/**
 * Where a connection may go from each state (specification 3). A connected CRM is never replaced in place, and only
 * an authorization by a person leads out of NEEDS_REAUTHORIZATION other than disconnecting.
 */
export const MOVES = {
  NOT_CONNECTED: ["CONNECTED"],
  CONNECTED: ["NEEDS_REAUTHORIZATION", "NOT_CONNECTED"],
  NEEDS_REAUTHORIZATION: ["CONNECTED", "NOT_CONNECTED"],
} as const satisfies Record<ConnectionState, readonly ConnectionState[]>;

export function mayMove(from: ConnectionState, to: ConnectionState): boolean {
  return (MOVES[from] as readonly ConnectionState[]).includes(to);
}

/** The states from which a connection may go to `to`. */
export function statesBefore(to: ConnectionState): ConnectionState[] {
  return (Object.keys(MOVES) as ConnectionState[]).filter((from) => mayMove(from, to));
}
