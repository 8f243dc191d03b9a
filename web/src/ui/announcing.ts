import { useSyncExternalStore } from "react";

/** What is read out next to whoever does not see the page change. */
class Announcements {
  private said = "";
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly latest = (): string => this.said;

  say(text: string): void {
    // The same words again are only read out where they differ for the browser.
    this.said = text === this.said ? `${text}\u00a0` : text;
    for (const listener of this.listeners) listener();
  }
}

const announcements = new Announcements();

/** Says what an action has done, where no notice that reads itself out says it. */
export const announce = (text: string): void => announcements.say(text);

export const useAnnounced = (): string => useSyncExternalStore(announcements.subscribe, announcements.latest);
