import { useState } from "react";
import { useMutation } from "urql";
import {
  ClearFieldMappingDocument,
  type CrmEntity,
  FieldMappingsDocument,
  type MappingFragment,
} from "../api/operations.generated";
import { useRead } from "../api/read";
import { fieldKind } from "../ui/field-types";
import { Badge, Button, Card, Notice, When } from "../ui/parts";
import { Problem } from "../ui/problem";
import { mayDisconnect } from "./disconnect";
import { FieldChoice } from "./field-choice";
import type { Viewer } from "./use-settings";
import { ENTITY, HEALTH, refusalInWords } from "./wording";

const ENTITIES: readonly CrmEntity[] = ["DEAL", "PERSON", "ORGANIZATION"];

/** One existing custom field per kind of record, into which the service may write. */
export function NominatedFields({ viewer, connected }: { viewer: Viewer; connected: boolean }) {
  const { data, error, reread } = useRead(FieldMappingsDocument, {});
  const refusal = viewer.canManageConnection ? null : refusalInWords(viewer.connectRefusal);
  const closed = refusal ?? (connected ? null : "Authorize again first: the CRM's fields cannot be read until then.");
  return (
    <Card title="Fields the service may write">
      <p className="muted">
        Optional: for each kind of record one custom field that already exists in the CRM. The service creates none and
        changes no other.
      </p>
      {closed && <p className="small muted">{closed}</p>}
      {error && <Problem error={error} again={reread} />}
      {!data && !error && <p role="status">Reading which fields are nominated …</p>}
      <ul className="mappings" id="nominated-fields">
        {data &&
          ENTITIES.map((entity) => (
            <li key={entity}>
              <Nominated
                entity={entity}
                mapping={data.connection.fieldMappings.find((mapping) => mapping.entity === entity)}
                closed={closed !== null}
                mayClear={mayDisconnect(viewer)}
                onChange={reread}
              />
            </li>
          ))}
      </ul>
    </Card>
  );
}

interface NominatedProps {
  entity: CrmEntity;
  mapping: MappingFragment | undefined;
  closed: boolean;
  /** In every state, as it asks nothing of the CRM. */
  mayClear: boolean;
  onChange(): void;
}

function Nominated({ entity, mapping, closed, mayClear, onChange }: NominatedProps) {
  const [choosing, choose] = useState(false);
  const [{ fetching, data, error }, clear] = useMutation(ClearFieldMappingDocument);
  const refusal = data && "message" in data.clearFieldMapping ? data.clearFieldMapping.message : null;
  const name = ENTITY[entity];
  return (
    <div className="stack stack-tight">
      <div className="row row-apart">
        <div>
          <h3>{name}</h3>
          {mapping ? <Present mapping={mapping} /> : <span className="muted">No field nominated.</span>}
        </div>
        {!choosing && (
          <div className="row">
            <Button
              disabled={closed}
              aria-label={`${mapping ? "Change the" : "Choose a"} field for ${name}`}
              onClick={() => choose(true)}
            >
              {mapping ? "Change" : "Choose"}
            </Button>
            {mapping && (
              <Button
                disabled={!mayClear}
                busy={fetching}
                aria-label={`Clear the field for ${name}`}
                onClick={() => clear({ entity }).then(onChange)}
              >
                Clear
              </Button>
            )}
          </div>
        )}
      </div>
      {mapping && mapping.health !== "OK" && <p className="small">{HEALTH[mapping.health].advice}</p>}
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
      {choosing && (
        <FieldChoice
          entity={entity}
          present={mapping?.fieldKey}
          onClose={(changed) => {
            choose(false);
            if (changed) onChange();
          }}
        />
      )}
    </div>
  );
}

function Present({ mapping: { fieldName, fieldKey, fieldType, health, checkedAt } }: { mapping: MappingFragment }) {
  const { text, tone } = HEALTH[health];
  return (
    <div className="row">
      <span>
        <bdi>{fieldName ?? fieldKey}</bdi>{" "}
        <span className="muted">({fieldType ? fieldKind(fieldType).text : "type not known"})</span>
      </span>
      <Badge tone={tone}>{text}</Badge>
      <span className="small muted">
        checked <When at={checkedAt} />
      </span>
    </div>
  );
}
