import { useEffect } from "react";
import { handover } from "../api/tokens";

/** The browser asks before the page is left. */
export function useWarning(isDue: boolean): void {
  useEffect(() => {
    if (!isDue) return;
    const warn = (event: BeforeUnloadEvent) => handover.isUnderWay || event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [isDue]);
}
