import type { CrmFieldOption } from "../../crm/parsing/fields";
import type { ValueKind } from "./value-kind";

/** So many are named in a message. */
const NAMED = 10;

type Found = { option: CrmFieldOption } | { fault: string };

/** By id, or by its exact label where that means one option only. */
function optionOf(value: unknown, options: readonly CrmFieldOption[]): Found {
  if (typeof value !== "number" && typeof value !== "string")
    return { fault: "is neither an option's id nor its label" };
  const found = options.filter(
    ({ id, label }) => String(id) === String(value) || (typeof value === "string" && label === value),
  );
  const [option, ...others] = found;
  if (!option) return { fault: `is none of the options ${namesOf(options)}` };
  return others.length > 0 ? { fault: `means several options: ${namesOf(found)}. Use the id` } : { option };
}

function namesOf(options: readonly CrmFieldOption[]): string {
  const names = options.slice(0, NAMED).map(({ id, label }) => `"${label}" (${id})`);
  return `${names.join(", ")}${options.length > NAMED ? ", ..." : ""}` || "(there are none)";
}

export const choice: ValueKind = {
  shape: 'one option, by id or by its exact label, for example 101 or "Enterprise"',
  read: (value, options) => {
    const found = optionOf(value, options);
    return "option" in found ? { wire: found.option.id } : found;
  },
  isSame: (sent, echoed) => echoed !== null && echoed !== undefined && String(sent) === String(echoed),
};

const idsOf = (value: unknown) => (Array.isArray(value) ? [...new Set(value.map(String))].sort().join() : null);

export const choices: ValueKind = {
  shape: 'a list of options, by id or by exact label, for example [101, "Automation"]',
  read: (value, options) => {
    if (!Array.isArray(value)) return { fault: "is not a list" };
    if (value.length > options.length * 2) return { fault: "is longer than the list of options" };
    const ids = new Set<number | string>();
    for (const one of value) {
      const found = optionOf(one, options);
      if ("fault" in found) return { fault: `has a member that ${found.fault}` };
      ids.add(found.option.id);
    }
    // The CRM refuses an empty list and takes null for it.
    return { wire: ids.size > 0 ? [...ids] : null };
  },
  isSame: (sent, echoed) => idsOf(echoed) !== null && idsOf(sent) === idsOf(echoed),
};
