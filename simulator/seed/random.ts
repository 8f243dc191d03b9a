import { createHash } from "node:crypto";

/** A small seeded generator (mulberry32): the same seed gives the same company on every machine. */
export class Random {
  private state: number;

  constructor(private readonly seed: string) {
    this.state = createHash("sha256").update(seed).digest().readUInt32LE(0);
  }

  /** An independent stream, so that drawing more in one place never shifts the numbers of another. */
  stream(name: string): Random {
    return new Random(`${this.seed}/${name}`);
  }

  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error("cannot pick from an empty list");
    return item;
  }

  weighted<T>(choices: readonly (readonly [T, number])[]): T {
    let left = this.next() * choices.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [value, weight] of choices) {
      left -= weight;
      if (left < 0) return value;
    }
    throw new Error("weighted choice without a choice");
  }
}
