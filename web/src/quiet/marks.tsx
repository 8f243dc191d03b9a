import type { QuietVerdict } from "../api/operations.generated";
import { VERDICT } from "../ui/tones";

/** A deal in the picture, told apart by shape as well as by the colour of its verdict. */
export function Mark({ verdict }: { verdict: QuietVerdict }) {
  const look = `mark mark-${VERDICT[verdict].tone}`;
  if (verdict === "GHOSTED") return <path d="M0 -8L8 0L0 8L-8 0Z" className={look} />;
  if (verdict === "COOLING") return <path d="M0 -7L8 7L-8 7Z" className={look} />;
  return <circle r="7" className={look} />;
}
