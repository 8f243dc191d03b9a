/** Work that the CRM took in and does later: its sender has long lost the answer. */
export class LateEffects {
  private held: { dueAt: number; work: () => void }[] = [];

  constructor(private readonly now: () => Date) {}

  /** Without a time it is done only when it is released. */
  hold(work: () => void, ms = Number.POSITIVE_INFINITY): void {
    this.held.push({ dueAt: this.now().getTime() + ms, work });
  }

  /** Does what is due by the simulator's clock, in the order of arrival. */
  doDue(): void {
    this.doUntil(this.now().getTime());
  }

  /** Does everything that is held and says how much it was. */
  release(): number {
    return this.doUntil(Number.POSITIVE_INFINITY);
  }

  private doUntil(time: number): number {
    const due = this.held.filter(({ dueAt }) => dueAt <= time);
    if (due.length === 0) return 0;
    this.held = this.held.filter(({ dueAt }) => dueAt > time);
    for (const { work } of due) work();
    return due.length;
  }
}
