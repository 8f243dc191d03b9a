import { type KeyboardEvent, useRef, useState } from "react";
import { VERDICT } from "../ui/tones";
import type { Dot } from "./chart-layout";
import { Mark } from "./marks";
import { type QuietDeal, silenceOf } from "./silence";

/** Wide and high in pixels: as much as a finger needs. */
export const DOT = 24;

/** One stop for Tab; from there the arrows go from dot to dot, from the longest silence on. */
export function useDots(dots: readonly Dot[]) {
  const [current, setCurrent] = useState<string | null>(null);
  const elements = useRef(new Map<string, HTMLButtonElement>());
  const order = dots.map(({ deal }) => deal.id);
  const stop = current !== null && order.includes(current) ? current : order[0];
  const step = (from: string, by: number) => {
    const next = order[(order.indexOf(from) + by + order.length) % order.length];
    if (next !== undefined) elements.current.get(next)?.focus();
  };
  return ({ deal: { id } }: Dot) => ({
    isStop: id === stop,
    onFocus: () => setCurrent(id),
    onStep: (by: number) => step(id, by),
    hold: (element: HTMLButtonElement | null) => {
      if (element) elements.current.set(id, element);
      else elements.current.delete(id);
    },
  });
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

interface DealDotProps {
  dot: Dot;
  isStop: boolean;
  onFocus(): void;
  onStep(by: number): void;
  hold(element: HTMLButtonElement | null): void;
  onOpen(deal: QuietDeal): void;
}

export function DealDot({ dot: { deal }, isStop, onFocus, onStep, hold, onOpen }: DealDotProps) {
  const { verdict } = deal.quiet;
  const name = `${deal.title}: ${VERDICT[verdict].text.toLowerCase()}, ${silenceOf(deal.quiet).days}`;
  const pressed = (event: KeyboardEvent) => {
    const by = STEPS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    onStep(by);
  };
  return (
    <button
      ref={hold}
      type="button"
      tabIndex={isStop ? 0 : -1}
      aria-label={name}
      title={name}
      onFocus={onFocus}
      onKeyDown={pressed}
      onClick={() => onOpen(deal)}
    >
      <svg viewBox="-12 -12 24 24" width={DOT} height={DOT} aria-hidden="true">
        <Mark verdict={verdict} />
      </svg>
    </button>
  );
}
