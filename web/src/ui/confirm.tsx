import { type ReactNode, useId, useLayoutEffect, useRef } from "react";

interface ConfirmProps {
  title: string;
  /** What was asked for is under way: it is not closed any more. */
  busy?: boolean;
  onClose(): void;
  children: ReactNode;
}

/** By itself the browser gives the focus to the first button, and an Enter that is still held down presses that at once. */
function open(dialog: HTMLDialogElement | null): void {
  dialog?.showModal();
  dialog?.focus();
}

/** A question that holds the page until it is answered. The browser's own dialog keeps the focus inside and gives it back. */
export function Confirm({ title, busy = false, onClose, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Closed before it leaves the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const opened = dialog.current;
    open(opened);
    return () => opened?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="dialog"
      tabIndex={-1}
      aria-labelledby={heading}
      onCancel={(event) => (busy ? event.preventDefault() : onClose())}
      // At a second Escape the browser closes it without asking.
      onClose={() => busy && open(dialog.current)}
    >
      <div className="stack">
        <h2 id={heading} dir="auto">
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  );
}
