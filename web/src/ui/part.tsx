import { Component, type ReactNode } from "react";
import { Button, Notice } from "./parts";

interface PartProps {
  /** Stands above what is said in place of the part. */
  head?: ReactNode;
  children: ReactNode;
}

/**
 * Where a part of the page cannot be drawn, the rest of it stays: without this React takes the whole page away. It happens
 * to a page that stayed open while the service became newer: a script is gone by then, or a value is not known here.
 */
export class Part extends Component<PartProps, { isBroken: boolean }> {
  override state = { isBroken: false };

  static getDerivedStateFromError = () => ({ isBroken: true });

  override render() {
    const { head, children } = this.props;
    if (!this.state.isBroken) return children;
    return (
      <div className="stack">
        {head}
        <Notice tone="bad" title="This part of the page cannot be shown">
          <p>There may be a newer version of the page. What you typed in a note is kept.</p>
          <Button onClick={() => window.location.reload()}>Load the page again</Button>
        </Notice>
      </div>
    );
  }
}
