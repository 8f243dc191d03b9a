import { type ComponentPropsWithRef, type ReactNode, useEffect, useState } from "react";
import type { Tone } from "./tones";
import { dateAndTime, day, relative } from "./words";

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`badge tone-${tone}`}>{children}</span>;
}

export function Card({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="card stack" aria-label={title}>
      <div className="row row-apart">
        <h2 dir="auto">{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** Something to know or to do; `bad` and `warn` are read out at once. */
export function Notice({ tone, title, children }: { tone: Tone; title: string; children?: ReactNode }) {
  return (
    <div className={`notice tone-${tone}`} role={tone === "bad" || tone === "warn" ? "alert" : "status"}>
      <strong>{title}</strong>
      {children}
    </div>
  );
}

type ButtonLook = "main" | "plain" | "danger" | "danger-main";
type ButtonProps = ComponentPropsWithRef<"button"> & { look?: ButtonLook; busy?: boolean };

/** A busy button keeps its place and its focus, and does nothing. */
export function Button({ look = "plain", busy = false, onClick, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={`button button-${look}`}
      aria-busy={busy}
      onClick={(event) => {
        if (!busy) onClick?.(event);
      }}
      {...rest}
    >
      {children}
    </button>
  );
}

/** A record's name, and the way to it in the CRM where there is one. */
export function Named({ name, crmUrl }: { name: string; crmUrl: string | null }) {
  if (!crmUrl) return <bdi>{name}</bdi>;
  return (
    <a href={crmUrl} target="_blank" rel="noreferrer" dir="auto">
      {name}
    </a>
  );
}

/** What ends a line about a record. */
export function ToTheCrm({ crmUrl }: { crmUrl: string | null }) {
  if (!crmUrl) return null;
  return (
    <>
      {", "}
      <a href={crmUrl} target="_blank" rel="noreferrer">
        open in the CRM
      </a>
    </>
  );
}

export function Facts({ children }: { children: ReactNode }) {
  return <dl className="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const TICK_MS = 10_000;

/**
 * An instant as people say it, the exact one on hover. That time passes is not read out, also where the words around it are.
 * @param on the day, of what has no time: that is no instant, and not "9 hours ago" in the middle of it
 */
export function When({ at, on = null }: { at: string; on?: string | null }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (on) return <time dateTime={on}>on {day(on)}</time>;
  return (
    <time dateTime={at} title={dateAndTime(at)} aria-live="off">
      {relative(at)}
    </time>
  );
}

export function Empty({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="card empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What stands where something is still to come. */
export function Loading({ what }: { what: string }) {
  return (
    <div className="card stack" role="status">
      <span className="visually-hidden">{what} is loading.</span>
      {["40%", "90%", "75%"].map((width) => (
        <div key={width} className="skeleton" style={{ width }} />
      ))}
    </div>
  );
}
