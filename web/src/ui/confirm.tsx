import { type ReactNode, useId, useLayoutEffect, useRef } from "react";

interface ConfirmProps {
  title: string;
  onClose(): void;
  children: ReactNode;
}

/** A question that holds the page until it is answered. The browser's own dialog keeps the focus inside and gives it back. */
export function Confirm({ title, onClose, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Closed before it leaves the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    return () => opened?.close();
  }, []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby={heading} onCancel={onClose}>
      <div className="stack">
        <h2 id={heading} dir="auto">
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  );
}
