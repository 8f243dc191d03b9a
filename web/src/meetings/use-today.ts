import { useEffect, useState } from "react";

/** The reader's day; another one after midnight, also where the page stays open. */
export function useToday(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
    const timer = setTimeout(() => setNow(new Date()), midnight.getTime() - now.getTime());
    return () => clearTimeout(timer);
  }, [now]);
  return now;
}
