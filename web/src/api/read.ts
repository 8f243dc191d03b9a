import type { TypedDocumentNode } from "@urql/core";
import { useCallback, useEffect, useRef } from "react";
import { type AnyVariables, type CombinedError, useQuery } from "urql";
import { useKept } from "./kept";

interface Reading<Data> {
  /** The latest there was: it stays on the screen while newer data cannot be read. */
  data: Data | undefined;
  error: CombinedError | undefined;
  reread(): void;
}

/**
 * Reads what is shown. A read that is asked for while another is under way follows that one, and several are one: what is
 * under way may have been answered before the change, and changes that come in a row would otherwise cut off each other's.
 */
export function useRead<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Reading<Data> {
  const [{ data, error, fetching, stale }, refresh] = useQuery<Data, AnyVariables>({
    query,
    variables,
    requestPolicy: "cache-and-network",
  });
  const isReading = fetching || stale;
  const state = useRef({ isReading, isDue: false });
  const reread = useCallback(() => {
    if (state.current.isReading) {
      state.current.isDue = true;
      return;
    }
    state.current = { isReading: true, isDue: false };
    refresh({ requestPolicy: "network-only" });
  }, [refresh]);
  // With each answer, also where it is the same one again.
  useEffect(() => {
    state.current.isReading = isReading;
    if (!isReading && state.current.isDue) reread();
  });
  return { ...useKept(data, error), reread };
}

/** Between two looks at something that nobody tells of as it goes. */
const LOOK_EVERY_MS = 2_000;

/** Reads again and again while something is under way that no event tells of. */
export function useRereads(isUnderWay: boolean, reread: () => void, everyMs: number = LOOK_EVERY_MS): void {
  useEffect(() => {
    if (!isUnderWay) return;
    const timer = setInterval(reread, everyMs);
    return () => clearInterval(timer);
  }, [isUnderWay, reread, everyMs]);
}
