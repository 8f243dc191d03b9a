import { createContext, useContext, useSyncExternalStore } from "react";

/** Whether changes reach the page by themselves now. */
export class Liveness {
  private live = true;
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly isLive = (): boolean => this.live;

  set(live: boolean): void {
    this.live = live;
    for (const listener of this.listeners) listener();
  }
}

export const LivenessContext = createContext(new Liveness());

export function useIsLive(): boolean {
  const { subscribe, isLive } = useContext(LivenessContext);
  return useSyncExternalStore(subscribe, isLive);
}
