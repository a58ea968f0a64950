// Keys: single letters that act while nobody types, and pairs such as "g b".
import { useEffect, useRef } from "react";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const PAIR_MS = 1_200;
const FIRST = "g";
let firstAt = -PAIR_MS;
/** The events that are the second key of a pair. */
const seconds = new WeakSet<KeyboardEvent>();

// Registered before any page's: it knows which key of a pair this is.
window.addEventListener("keydown", (event) => {
  if (event.timeStamp - firstAt < PAIR_MS && event.key !== FIRST) seconds.add(event);
  firstAt = event.key === FIRST && !isTyping(event) ? event.timeStamp : -PAIR_MS;
});

/** Calls a function for each key; "g b" is two keys one after the other. */
export function useKeys(keys: Keys): void {
  const current = useRef(keys);
  useEffect(() => {
    current.current = keys;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event)) return;
      const act = current.current[seconds.has(event) ? `${FIRST} ${event.key}` : event.key];
      if (act) {
        event.preventDefault();
        act(event);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  if (document.querySelector("dialog[open]")) return true;
  if (target.matches("input, textarea, select, [contenteditable]")) return event.key !== "Escape";
  // Enter and the space bar press a button that has the focus.
  return target.matches("button, summary, [role=slider]") && (event.key === "Enter" || event.key === " ");
}
