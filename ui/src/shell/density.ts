// How close rows stand: normal, or compact, as the reader chose.
const KEY = "dragoman-density";

export const isCompact = (): boolean => localStorage.getItem(KEY) === "compact";

export function applyDensity(compact: boolean): void {
  if (compact) localStorage.setItem(KEY, "compact");
  else localStorage.removeItem(KEY);
  document.documentElement.dataset.density = compact ? "compact" : "normal";
}
