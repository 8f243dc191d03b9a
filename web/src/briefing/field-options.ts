import { useEffect, useEffectEvent } from "react";
import { type CombinedError, useQuery } from "urql";
import { type CrmEntity, type MappingFragment, NominatedFieldDocument } from "../api/operations.generated";
import { fieldKind } from "../ui/field-types";

/** What can be chosen for a nominated field. */
export interface FieldOptions {
  /** null while that is not known: then nothing is chosen and nothing sent. Empty for a field without options. */
  list: readonly { crmId: string; label: string }[] | null;
  error: CombinedError | undefined;
  reread(): void;
}

/** The options of each nominated field, by the CRM's own list. */
export function useFieldOptions(mappings: readonly MappingFragment[]): Record<CrmEntity, FieldOptions> {
  return {
    DEAL: useOptionsOf("DEAL", mappings),
    PERSON: useOptionsOf("PERSON", mappings),
    ORGANIZATION: useOptionsOf("ORGANIZATION", mappings),
  };
}

/** Asked of the CRM only for a field that has options. */
function useOptionsOf(entity: CrmEntity, mappings: readonly MappingFragment[]): FieldOptions {
  const mapping = mappings.find((one) => one.entity === entity);
  const isNeeded = mapping !== undefined && mayBeWritten(mapping) && hasOptions(mapping.fieldType);
  const [{ data, error }, refresh] = useQuery({
    query: NominatedFieldDocument,
    variables: { entity },
    pause: !isNeeded,
  });
  const reread = () => refresh({ requestPolicy: "network-only" });
  const field = data?.connection.fields.find(({ key }) => key === mapping?.fieldKey);
  // Of a field that was made since the list was read: read anew, once for each.
  const lacking = isNeeded && data && !field ? mapping.fieldKey : null;
  const seek = useEffectEvent(reread);
  useEffect(() => {
    if (lacking !== null) seek();
  }, [lacking]);
  if (!isNeeded) return { list: [], error: undefined, reread };
  return { list: error || !field ? null : (field.options ?? []), error, reread };
}

/** As far as the CRM's list was last seen. */
export const mayBeWritten = ({ health }: MappingFragment): boolean =>
  health !== "MISSING_IN_CRM" && health !== "NOT_WRITABLE";

function hasOptions(type: string | null): boolean {
  const { input } = fieldKind(type);
  return input === "choice" || input === "choices";
}
