// Light or dark: as the system has it, or as the reader chose.
export type Theme = "system" | "light" | "dark";

const KEY = "dragoman-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function savedTheme(): Theme {
  const saved = localStorage.getItem(KEY);
  return saved === "light" || saved === "dark" ? saved : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  const isDark = theme === "dark" || (theme === "system" && system.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

system.addEventListener("change", () => applyTheme(savedTheme()));
