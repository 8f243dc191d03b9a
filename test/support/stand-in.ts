/**
 * What a test file names at its top before a hook has started it: so a file unpacks its world once, and its stories name the
 * parts. Whoever asks it for something while it is not there is told.
 */
export function standIn<T extends object>(part: () => T | undefined): T {
  return new Proxy({} as T, {
    get: (_, name) => {
      const there = part();
      if (!there)
        throw new Error(`${String(name)} is asked for before the hook that starts it, or the start has failed`);
      const value: unknown = Reflect.get(there, name);
      return typeof value === "function" ? value.bind(there) : value;
    },
  });
}
