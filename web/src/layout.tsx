import { type ReactNode, useEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useAnnounced } from "./ui/announcing";
import { useKeptFocus } from "./ui/focus";

/** Every page of the product; the server answers these addresses with the page. */
const PAGES = [
  { path: "/meetings", name: "Meetings" },
  { path: "/quiet", name: "Quiet deals" },
  { path: "/settings", name: "CRM connection" },
] as const;

export function Layout({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  const main = useArrival(location);
  useKeptFocus();
  return (
    <>
      <Link
        className="skip"
        href="#main"
        onClick={(event) => {
          // Followed, it would be another address, and going back from that.
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </Link>
      <header className="top">
        <div className="top-inside">
          <span className="brand">
            <Mark />
            Meeting Intelligence
          </span>
          <nav aria-label="Pages">
            <ul className="row">
              {PAGES.map(({ path, name }) => (
                <li key={path}>
                  <Link href={path} className="tab" aria-current={location.startsWith(path) ? "page" : undefined}>
                    {name}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
        </div>
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {children}
      </main>
      <Announcer />
    </>
  );
}

/** Another page begins at its content; the first one where the browser begins. */
function useArrival(location: string) {
  const main = useRef<HTMLElement>(null);
  const arrivedAt = useRef(location);
  useEffect(() => {
    const isFirst = arrivedAt.current === location || arrivedAt.current === "/";
    arrivedAt.current = location;
    if (isFirst) return;
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [location]);
  return main;
}

function Announcer() {
  const said = useAnnounced();
  return (
    <div className="visually-hidden" aria-live="polite">
      {said.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path
        d="M12.5 9.5a6.5 6.5 0 1 0 0 13M19.5 22.5a6.5 6.5 0 1 0 0-13M11 16h10"
        fill="none"
        stroke="var(--on-accent)"
        strokeWidth="2.6"
        strokeLinecap="round"
      />
    </svg>
  );
}
