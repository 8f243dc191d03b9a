import { type ReactNode, useEffect, useId, useRef } from "react";

interface ConfirmProps {
  title: string;
  onClose(): void;
  children: ReactNode;
}

/** A question that holds the page until it is answered. The browser's own dialog keeps the focus inside and gives it back. */
export function Confirm({ title, onClose, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const opened = dialog.current;
    opened?.showModal();
    return () => opened?.close();
  }, []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby={heading} onCancel={onClose}>
      <div className="stack">
        <h2 id={heading}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
