/** So long another page may take to come. */
const LEAVING_MS = 10_000;

/**
 * Firefox and Safari end what is under way as soon as another page is asked for, seconds before it is there: no failure
 * that is told before it is known that the person stays. (Firefox keeps no page that listens so for who comes back to it,
 * and none with an open socket either.)
 */
export function toldToWhoStays(ask: typeof fetch): typeof fetch {
  let leftAt = Number.NEGATIVE_INFINITY;
  window.addEventListener("beforeunload", () => {
    leftAt = performance.now();
  });
  return (input, init) =>
    ask(input, init).catch(async (failure: unknown) => {
      const leaving = leftAt + LEAVING_MS - performance.now();
      if (leaving > 0) await new Promise((resolve) => setTimeout(resolve, leaving));
      throw failure;
    });
}
