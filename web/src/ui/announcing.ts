import { useSyncExternalStore } from "react";

interface Announcement {
  id: number;
  text: string;
}

/** As many as may come at once: what a screen reader has not begun yet is not taken away by the next. */
const KEPT = 3;

/** What is read out to whoever does not see the page change. */
class Announcements {
  private said: readonly Announcement[] = [];
  private count = 0;
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly latest = (): readonly Announcement[] => this.said;

  say(text: string): void {
    this.count += 1;
    this.said = [...this.said, { id: this.count, text }].slice(-KEPT);
    for (const listener of this.listeners) listener();
  }
}

const announcements = new Announcements();

/** Says what an action has done, where no notice that reads itself out says it. */
export const announce = (text: string): void => announcements.say(text);

export const useAnnounced = (): readonly Announcement[] =>
  useSyncExternalStore(announcements.subscribe, announcements.latest);
