import { useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import { useMutation, useQuery } from "urql";
import { Link } from "wouter";
import { useChanges } from "../api/changes";
import { useKept } from "../api/kept";
import { SetSilenceDocument, SilenceDocument, type SilenceQuery } from "../api/operations.generated";
import { announce } from "../ui/announcing";
import { focusOn } from "../ui/focus";
import { Freshness, Staleness } from "../ui/freshness";
import { PageHead } from "../ui/page";
import { Button, Card, Loading, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted, number } from "../ui/words";
import { type Draft, draftOf, inputOf, isSound } from "./draft";
import { Preview } from "./preview";
import { ActivityTypes, Calendar } from "./rules";
import { Thresholds } from "./thresholds";
import { changeTyped, useTyped, warnOfTyped } from "./typed";

/** When a deal counts as quiet, as the organization has it; owners and admins may change it. */
export function SilencePage() {
  const [read, refresh] = useQuery({ query: SilenceDocument, requestPolicy: "cache-and-network" });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  useChanges(reread);
  const { data: shown, error } = useKept(read.data, read.error);
  return (
    <div className="stack">
      <PageHead
        title="When is a deal quiet?"
        above={<Link href="/quiet">Quiet deals</Link>}
        aside={shown && <Freshness connection={shown.connection} />}
      />
      {error && <Problem error={error} again={reread} />}
      {shown && <Staleness connection={shown.connection} />}
      {!shown && !error && <Loading what="The page of settings" />}
      {shown && <Rejudging progress={shown.quietSettings.rejudging} />}
      {shown && <Form shown={shown} onSaved={reread} />}
    </div>
  );
}

function Rejudging({ progress }: { progress: SilenceQuery["quietSettings"]["rejudging"] }) {
  if (!progress) return null;
  return (
    <Notice
      tone="info"
      title={`Judging by the new settings: ${number(progress.done)} of ${counted(progress.total, "deal")}`}
    >
      <p>Until that is done the board counts by the settings before.</p>
    </Notice>
  );
}

/** Days of pipelines and stages have no names before these are read, and a save would forget them. */
function NotRead({ isConnected }: { isConnected: boolean }) {
  return (
    <Notice
      tone="info"
      title={isConnected ? "The CRM has not been read to the end yet" : "No CRM is connected, so no deal is judged"}
    >
      <p>
        Days that hold for a pipeline or a stage are kept and not shown until the CRM is read. Then you can change this.
      </p>
      {!isConnected && <Link href="/settings">Open the CRM connection</Link>}
    </Notice>
  );
}

function Overtaken() {
  return (
    <Notice tone="warn" title="Other settings have been saved meanwhile, and yours have not">
      <p>
        By another admin, or by you in another window. What you have typed stays here until you go on from the present
        settings.
      </p>
    </Notice>
  );
}

const SAVED = "The settings are saved.";

/**
 * What was saved is compared with, so that leaving a form as it was asks for nothing. What the service has answered to a
 * save holds until the settings are read anew. A save says which settings its draft was begun from, so that it undoes nobody else's.
 */
function Form({ shown, onSaved }: { shown: SilenceQuery; onSaved(): void }) {
  const { viewer, connection, quietSettings } = shown;
  const [stored, store] = useState({ after: quietSettings, settings: quietSettings });
  const settings = stored.after === quietSettings ? stored.settings : quietSettings;
  const saved = draftOf(settings);
  const changed = useTyped();
  const [isSaved, setSaved] = useState(false);
  const [{ fetching, data, error }, set] = useMutation(SetSilenceDocument);
  const refusal = data && "message" in data.setQuietSettings ? data.setQuietSettings : null;
  const isAdmin = viewer.role !== "MEMBER";
  const isRead = connection.state !== "NOT_CONNECTED" && connection.sync.lastSuccessAt !== null;
  const mayChange = isAdmin && isRead;
  // What is typed is not what holds, for whoever may not save it any more.
  const draft = (mayChange && changed) || saved;
  const isChanged = JSON.stringify(inputOf(draft)) !== JSON.stringify(inputOf(saved));
  // Two admins, two windows, or a draft that was begun before the first answer came.
  const isOvertaken = isChanged && !fetching && draft.version !== settings.version;
  useEffect(() => warnOfTyped(isChanged));
  const leave = useEffectEvent(() => {
    // What says the same as before a save says something else after it.
    if (mayChange && !isChanged && !fetching) changeTyped(() => null);
  });
  useEffect(() => () => leave(), []);
  const save = async () => {
    const { data: answer } = await set({ input: { ...inputOf(draft), version: draft.version } });
    if (!answer) return;
    const { setQuietSettings: result } = answer;
    if ("settings" in result) {
      announce(SAVED);
      setSaved(true);
      store({ after: quietSettings, settings: result.settings });
      // What was typed since is begun from what is saved now.
      const { version } = result.settings;
      changeTyped((typed) => (typed === draft ? null : typed && { ...typed, version }));
    } else if (result.code === "CHANGED_MEANWHILE") changeTyped((typed) => typed && { ...typed, version: "" });
    else return;
    onSaved();
  };
  const effect = useRef<HTMLElement>(null);
  const drop = () => {
    if (isOvertaken) announce("The present settings are shown.");
    // A button that its own key press disables loses the focus later than the page looks for it.
    if (effect.current) focusOn(effect.current);
    changeTyped(() => null);
  };
  const wish = (part: Partial<Draft>) => {
    setSaved(false);
    // What says the same as what is stored is begun from that, whoever stored it.
    changeTyped(() => ({ ...draft, ...(!isChanged && { version: settings.version }), ...part }));
  };
  return (
    <div className="columns">
      <fieldset className="stack plain-set" disabled={!mayChange}>
        <legend className="visually-hidden">Settings of silence</legend>
        {!isAdmin && (
          <Notice tone="info" title="Only an owner or admin of your organization may change this">
            <p>You see what holds now.</p>
          </Notice>
        )}
        {!isRead && <NotRead isConnected={connection.state !== "NOT_CONNECTED"} />}
        <Thresholds
          lines={draft.lines}
          pipelines={connection.pipelines}
          isWhole={isRead}
          onChange={(lines) => wish({ lines })}
        />
        <Calendar draft={draft} usersZone={settings.timeZoneIsSet ? null : settings.timeZone} onWish={wish} />
        <ActivityTypes draft={draft} seen={connection.activityTypes} onWish={wish} />
      </fieldset>
      <aside ref={effect} className="stack" aria-label="What the change would do">
        {mayChange && (
          <Card title="What the change would do">
            {/* No notice: it was read out as it was announced. */}
            {isSaved && !isChanged && <strong className="notice tone-ok">{SAVED}</strong>}
            {isChanged && isSound(draft) && <Preview draft={draft} />}
            {isChanged && !isSound(draft) && <p className="muted">Mend what is marked first.</p>}
            {!isChanged && !isSaved && <p className="muted">Nothing is changed.</p>}
            {isOvertaken && <Overtaken />}
            {refusal && refusal.code !== "CHANGED_MEANWHILE" && <Notice tone="bad" title={refusal.message} />}
            {error && <Problem error={error} again={save} stays />}
            <div className="row">
              <Button
                look="main"
                busy={fetching}
                disabled={!isChanged || !isSound(draft) || isOvertaken}
                onClick={save}
              >
                Save
              </Button>
              <Button disabled={!isChanged} onClick={drop}>
                {isOvertaken ? "Go on from the present settings" : "Undo changes"}
              </Button>
            </div>
          </Card>
        )}
      </aside>
    </div>
  );
}
