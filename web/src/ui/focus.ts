import { type RefObject, useEffect, useRef } from "react";

const PLACES = "dialog, form, li, tr, section, aside, main";

/**
 * Keeps the focus near where it was when what had it goes or is disabled: the nearest part of the page around it that is
 * still there takes it. Without this the browser drops it on the body, and a keyboard begins at the top again.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    let places: Element[] = [];
    const remember = ({ target }: FocusEvent) => {
      places = target instanceof Element ? placesAround(target) : [];
    };
    const recover = () => {
      if (document.activeElement && document.activeElement !== document.body) return;
      const nearest = places.find((place) => place.isConnected);
      if (nearest instanceof HTMLElement) focusOn(nearest);
    };
    // The browser takes the focus away when it draws: only after that is it known to be lost.
    const observer = new MutationObserver(() => requestAnimationFrame(() => requestAnimationFrame(recover)));
    // A click on nothing lets go of the focus, and means to.
    const letGo = ({ target }: MouseEvent) => {
      places = target instanceof Element ? placesAround(target) : [];
    };
    document.addEventListener("focusin", remember);
    document.addEventListener("mousedown", letGo);
    observer.observe(document.body, { subtree: true, childList: true, attributeFilter: ["disabled"] });
    return () => {
      observer.disconnect();
      document.removeEventListener("focusin", remember);
      document.removeEventListener("mousedown", letGo);
    };
  }, []);
}

function placesAround(element: Element): Element[] {
  const around = element.parentElement?.closest(PLACES);
  return around ? [around, ...placesAround(around)] : [];
}

/** Parts of a page are no stops for Tab, and may hold the focus. */
export function focusOn(element: HTMLElement): void {
  if (!element.matches("a[href], button, input, select, textarea, [tabindex]")) element.tabIndex = -1;
  element.focus();
}

/** The element gets the focus when it comes: what an action has opened, or its result. */
export function useFocusAtFirst<E extends HTMLElement>(): RefObject<E | null> {
  const element = useRef<E>(null);
  useEffect(() => {
    if (element.current) focusOn(element.current);
  }, []);
  return element;
}
