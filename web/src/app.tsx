import { lazy, Suspense, useCallback, useState } from "react";
import { Redirect as GoTo, Route, Switch, useLocation } from "wouter";
import { BriefingPage } from "./briefing/briefing-page";
import { Layout } from "./layout";
import { MeetingsPage } from "./meetings/meetings-page";
import { QuietPage } from "./quiet/quiet-page";
import { RETURNED_TO, type Redirect } from "./settings/redirect";
import { ReturningPage } from "./settings/returning-page";
import { SettingsPage } from "./settings/settings-page";
import { NoSuchPage, PageHead } from "./ui/page";
import { Part } from "./ui/part";
import { Loading } from "./ui/parts";

/** Few open it, and seldom: it comes when it is asked for. */
const SilencePage = lazy(() => import("./silence/silence-page").then(({ SilencePage: page }) => ({ default: page })));

/** @param redirect what the CRM sent the browser back with, where it did */
export function App({ redirect }: { redirect: Redirect | null }) {
  const [pending, setPending] = useState(redirect);
  const [welcome, setWelcome] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const [location] = useLocation();
  const leave = useCallback(() => setPending(null), []);
  const connected = useCallback(() => {
    setWelcome(true);
    leave();
  }, [leave]);
  // Whoever has read why, and goes elsewhere, is done with it.
  if (pending && isRefused && location !== RETURNED_TO) leave();
  if (pending && location === RETURNED_TO) {
    return (
      <Layout>
        <ReturningPage redirect={pending} onConnected={connected} onRefused={() => setRefused(true)} onGiveUp={leave} />
      </Layout>
    );
  }
  return (
    <Layout>
      <Part key={location} head={<PageHead title="That did not work" />}>
        <Switch>
          <Route path="/settings">
            <SettingsPage welcome={welcome} />
          </Route>
          <Route path="/meetings">
            <MeetingsPage />
          </Route>
          <Route path="/quiet">
            <QuietPage />
          </Route>
          <Route path="/quiet/settings">
            <Suspense fallback={<Loading what="The page of settings" />}>
              <SilencePage />
            </Suspense>
          </Route>
          <Route path="/meetings/:id">{({ id }) => <BriefingPage key={id} id={id} />}</Route>
          <Route path="/">
            <GoTo to="/settings" replace />
          </Route>
          <Route>
            <NoSuchPage />
          </Route>
        </Switch>
      </Part>
    </Layout>
  );
}
