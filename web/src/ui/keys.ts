/** Of a list whose members have no id, each with its key: among equal ones a running number tells which. */
export function keyed<T>(list: readonly T[], nameOf: (one: T) => string): [key: string, one: T][] {
  const counts = new Map<string, number>();
  return list.map((one) => {
    const name = nameOf(one);
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return [`${name} ${count}`, one];
  });
}
