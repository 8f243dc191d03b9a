import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Provider } from "urql";
import { createApi } from "./api/client";
import { Liveness, LivenessContext } from "./api/liveness";
import { handover, Tokens } from "./api/tokens";
import { App } from "./app";
import { forgetOld, OF_BROWSER } from "./briefing/stores";
import "./ui/theme.css";
import "./ui/base.css";
import "./ui/parts.css";
import "./layout.css";
import "./settings/settings.css";
import "./briefing/briefing.css";
import "./quiet/quiet.css";
import { takeRedirect } from "./settings/redirect";

// First of all, before anything could read or send the address.
const redirect = takeRedirect(window.location, window.history);
const tokenUrl = document.querySelector<HTMLMetaElement>('meta[name="token-url"]')?.content ?? "";
const liveness = new Liveness();
const reload = () => {
  handover.isUnderWay = true;
  window.location.reload();
};
const api = createApi(new Tokens(tokenUrl, reload), liveness);

forgetOld(OF_BROWSER);
const root = document.getElementById("root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <LivenessContext value={liveness}>
      <Provider value={api}>
        <App redirect={redirect} />
      </Provider>
    </LivenessContext>
  </StrictMode>,
);
