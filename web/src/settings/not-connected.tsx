import { Empty } from "../ui/parts";
import { ConsentButton } from "./consent-button";
import type { Viewer } from "./use-settings";

export function NotConnected({ viewer }: { viewer: Viewer }) {
  return (
    <Empty title="Connect your Pipedrive account">
      <p className="muted">
        Meetings are then matched to your deals and people, and every briefing shows stage, value and recent contact.
        The service sees what the user sees who authorizes it, and writes as that user.
      </p>
      <p>
        <strong>Check first who is signed in to Pipedrive in this browser.</strong> The connection binds to that user
        without asking.
      </p>
      <ConsentButton viewer={viewer}>Connect Pipedrive</ConsentButton>
    </Empty>
  );
}
