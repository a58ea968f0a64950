// Saved views: addresses with their filters, kept in this browser under names of the reader's choice.
import { useSyncExternalStore } from "react";

export interface View {
  name: string;
  path: string;
}

const KEY = "dragoman-views";
const CHANGED = "dragoman-views-changed";

let read = "";
let views: readonly View[] = [];

function savedViews(): readonly View[] {
  const text = localStorage.getItem(KEY) ?? "[]";
  if (text !== read) {
    read = text;
    views = parse(text);
  }
  return views;
}

/** What somebody else has written there is no view. */
function parse(text: string): View[] {
  try {
    const found: unknown = JSON.parse(text);
    if (!Array.isArray(found)) return [];
    return found.filter((one: Partial<View> | null): one is View => typeof one?.name === "string" && typeof one.path === "string" && one.path.startsWith("/"));
  } catch {
    return [];
  }
}

function write(next: readonly View[]): void {
  if (next.length) localStorage.setItem(KEY, JSON.stringify(next));
  else localStorage.removeItem(KEY);
  window.dispatchEvent(new Event(CHANGED));
}

export const saveView = (view: View): void => write([...savedViews().filter((one) => one.name !== view.name), view]);

export const removeView = (name: string): void => write(savedViews().filter((one) => one.name !== name));

export function useViews(): readonly View[] {
  return useSyncExternalStore((listener) => {
    window.addEventListener(CHANGED, listener);
    window.addEventListener("storage", listener);
    return () => {
      window.removeEventListener(CHANGED, listener);
      window.removeEventListener("storage", listener);
    };
  }, savedViews);
}
