import { useEffect, useState } from "react";

const LOOK_EVERY_MS = 60_000;

/**
 * The reader's day; another one after midnight, also where the page stays open. One timer until midnight would come hours
 * late: while a computer sleeps, timers stand still.
 */
export function useToday(): Date {
  const [today, setToday] = useState(() => new Date());
  useEffect(() => {
    const look = () => {
      const now = new Date();
      setToday((before) => (before.toDateString() === now.toDateString() ? before : now));
    };
    const timer = setInterval(look, LOOK_EVERY_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return today;
}
