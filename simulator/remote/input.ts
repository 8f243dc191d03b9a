/** A command that cannot be carried out as it was sent; the message says what to do. */
export class BadCommand extends Error {}

/** The members of a command's body, checked as they are read. */
export class Input {
  /** @throws BadCommand on a member the command does not take: a misspelt one must not pass for one left out */
  constructor(
    private readonly body: Readonly<Record<string, unknown>>,
    takes: readonly string[],
  ) {
    const stray = Object.keys(body).find((name) => !takes.includes(name) && !takes.includes(`${name}?`));
    if (stray !== undefined) throw new BadCommand(`this command takes ${takes.join(", ") || "nothing"}, no ${stray}`);
  }

  id(name: string): number {
    const value = this.body[name];
    if (typeof value !== "number" || !Number.isSafeInteger(value))
      throw new BadCommand(`${name} must be a whole number`);
    return value;
  }

  ids(name: string): number[] {
    const value = this.body[name];
    if (!Array.isArray(value) || !value.every((id) => Number.isSafeInteger(id))) {
      throw new BadCommand(`${name} must be a list of whole numbers`);
    }
    return value;
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T {
    const value = this.body[name];
    const found = values.find((one) => one === value);
    if (found === undefined) throw new BadCommand(`${name} must be one of ${values.join(", ")}`);
    return found;
  }

  text(name: string): string {
    const value = this.body[name];
    if (typeof value !== "string" || value === "") throw new BadCommand(`${name} must be a text`);
    return value;
  }

  object(name: string): Readonly<Record<string, unknown>> {
    const value = this.body[name];
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new BadCommand(`${name} must be an object`);
    }
    return value as Readonly<Record<string, unknown>>;
  }

  optional<T>(name: string, read: (name: string) => T): T | undefined {
    return this.body[name] === undefined ? undefined : read.call(this, name);
  }
}
