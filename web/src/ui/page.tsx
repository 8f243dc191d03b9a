import { type ReactNode, useEffect } from "react";
import { Link } from "wouter";
import { announce } from "./announcing";
import { Empty } from "./parts";

const PRODUCT = "Meeting Intelligence";

/** What the tab, the history and a screen reader call this page. A later page is read out as it comes. */
function useTitle(title: string): void {
  useEffect(() => {
    const full = `${title} – ${PRODUCT}`;
    if (document.title !== full && document.title !== PRODUCT) announce(title);
    document.title = full;
  }, [title]);
}

interface PageHeadProps {
  title: string;
  above?: ReactNode;
  below?: ReactNode;
  aside?: ReactNode;
}

/** The one heading of a page, and its title. */
export function PageHead({ title, above, below, aside }: PageHeadProps) {
  useTitle(title);
  return (
    <header className="row row-apart page-head">
      <div>
        {above && <div className="small">{above}</div>}
        <h1 dir="auto">{title}</h1>
        {below && <div className="muted">{below}</div>}
      </div>
      {aside}
    </header>
  );
}

export function NoSuchPage() {
  return (
    <div className="stack">
      <PageHead title="There is no such page" />
      <Empty title="The address leads nowhere">
        <p className="muted">It may be mistyped, or the page may have moved.</p>
        <Link href="/meetings" className="button button-main">
          Open the meetings
        </Link>
      </Empty>
    </div>
  );
}
