// Times: how long ago, in words; the exact moment in the reader's zone on hover.
import { useEffect, useState } from "react";

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dayAndClock = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** The hub's clock minus this one's, as of the last answer that had its time. */
let offset = 0;

export function noteHubTime(at: string): void {
  const difference = Date.parse(at) - Date.now();
  // A difference below a second is the time that the answer took.
  offset = Math.abs(difference) > 1_000 ? difference : 0;
}

export const hubNow = (): number => Date.now() + offset;

/** Renders again every so many milliseconds. */
export function useTick(ms: number): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** A length of time by its largest unit, as "4 min". */
export function roughly(ms: number): string {
  for (const [size, unit] of UNITS) if (ms >= size) return `${Math.floor(ms / size)} ${unit}`;
  return ms > 0 && ms < 1_000 ? `${Math.round(ms)} ms` : "0 s";
}

export function formatClock(at: string | number): string {
  return clock.format(new Date(at));
}

/** How long ago; `until` tells how long it still takes. */
export function Ago({ at, until = false }: { at: string; until?: boolean }) {
  const left = Date.parse(at) - hubNow();
  useTick(Math.abs(left) < 120_000 ? 1_000 : 20_000);
  const words = until ? (left > 0 ? `in ${roughly(left)}` : `${roughly(-left)} late`) : left > -1_000 ? "now" : `${roughly(-left)}`;
  return (
    <time dateTime={at} title={`${exact.format(new Date(at))} · ${at}`}>
      {words}
    </time>
  );
}

const MOMENT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A sentence of the hub, with the moments in it on the reader's clock. */
export function Sentence({ text }: { text: string }) {
  return text.split(MOMENT).map((part, index) => (index % 2 ? <Moment key={index} at={part} /> : part));
}

/** A moment on the clock, with its day. */
export function Moment({ at, withDay = true }: { at: string; withDay?: boolean }) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={`${exact.format(date)} · ${at}`}>
      {(withDay ? dayAndClock : clock).format(date)}
    </time>
  );
}
