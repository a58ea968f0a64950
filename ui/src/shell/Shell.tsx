// The frame of every page: where one can go, whether what is shown is live, and who is signed in.
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation, useSearch, useSearchParams } from "wouter";

import { call, Problem, tellSessionEnd } from "../api/client";
import { statusQuery } from "../api/queries";
import { useLive } from "../live/live";
import { Button, Dialog, Field } from "../parts/controls";
import { ShowsPresent } from "../parts/states";
import { formatClock } from "../parts/time";
import { useSession } from "../session";
import { applyDensity, isCompact } from "./density";
import { KeyHelp } from "./KeyHelp";
import { useKeys } from "./keys";
import { canNotify, useNotices } from "./notices";
import { type Command, Palette } from "./Palette";
import styles from "./Shell.module.css";
import { applyTheme, savedTheme, type Theme } from "./theme";
import { removeView, saveView, useViews } from "./views";

const PAGES = [
  { path: "/", name: "Needs you", key: "n", icon: "M8 2v7M8 12.5v1" },
  { path: "/board", name: "Board", key: "b", icon: "M3 3v10M8 3v6M13 3v8" },
  { path: "/inbox", name: "Inbox", key: "i", icon: "M2 4h12v8H2zM2 4.5l6 4.5 6-4.5" },
  { path: "/handoffs", name: "Handoffs", key: "h", icon: "M3 5.5h10l-2.5-2.5M13 10.5H3l2.5 2.5" },
  { path: "/agents", name: "Agents", key: "a", icon: "M8 8.2a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2M3 13.5c.6-2.4 2.5-3.5 5-3.5s4.4 1.1 5 3.5" },
  { path: "/ledger", name: "Ledger", key: "l", icon: "M3 3.5h10M3 8h10M3 12.5h6" },
];

const ICON = "/icon.svg";
const WAITS = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2b4fa8"/><path d="M8 11h13m-4-4 4 4-4 4M24 21H11m4-4-4 4 4 4" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/><circle cx="25" cy="7" r="6" fill="#f0a83c" stroke="#fff" stroke-width="2"/></svg>')}`;

/** A dot on the icon of the tab while something waits for a person. */
function showDot(isShown: boolean): void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const href = isShown ? WAITS : ICON;
  if (icon && icon.getAttribute("href") !== href) icon.setAttribute("href", href);
}

export function Shell({ children }: { children: ReactNode }) {
  const [path, navigate] = useLocation();
  const [parameters] = useSearchParams();
  // In the ledger the same word names the entry that is open.
  const at = path.startsWith("/ledger") ? null : parameters.get("at");
  const hasPast = path.startsWith("/board") || path.startsWith("/tasks");
  const addressOf = (page: string) => (at !== null && page !== "/ledger" ? `${page}?at=${encodeURIComponent(at)}` : page);
  const goTo = (page: string) => {
    navigate(addressOf(page));
    document.getElementById("content")?.focus();
  };
  const live = useLive();
  const status = useQuery(statusQuery);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const [notices, setNotices] = useNotices(status.data?.attention);
  const waiting = Object.values(status.data?.attentionCounts ?? {}).reduce((sum, one) => sum + one, 0);

  useEffect(() => {
    document.title = waiting ? `(${waiting}) dragoman` : "dragoman";
    showDot(waiting > 0);
  }, [waiting]);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      setSearching(true);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);

  useKeys({
    ...Object.fromEntries(PAGES.map((page) => [`g ${page.key}`, () => goTo(page.path)])),
    "?": () => setHelpOpen(true),
    ".": () => live.setPaused(!live.isPaused),
    "/": () => setSearching(true),
  });
  const commands: Command[] = [
    ...PAGES.map((page) => ({ name: page.name, hint: `page · g ${page.key}`, run: () => goTo(page.path) })),
    { name: live.isPaused ? "Go on with live updates" : "Pause live updates", hint: "command · .", run: () => live.setPaused(!live.isPaused) },
    ...(canNotify ? [{ name: notices ? "No more notices of the browser" : "Notices of the browser when somebody waits", hint: "command", run: () => void setNotices(!notices) }] : []),
    { name: "Keys", hint: "command · ?", run: () => setHelpOpen(true) },
  ];

  const isHere = (page: string) => (page === "/" ? path === "/" : path.startsWith(page) || (page === "/board" && path.startsWith("/tasks")));
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#content">
        Skip to the page
      </a>
      <nav className={styles.rail} aria-label="Pages">
        <Link href="/" className={styles.brand} aria-label="dragoman, start">
          <img src="/icon.svg" alt="" width="22" height="22" />
          <span>dragoman</span>
        </Link>
        {PAGES.map((page) => (
          <Link key={page.path} href={addressOf(page.path)} className={styles.place} aria-current={isHere(page.path) ? "page" : undefined}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <path d={page.icon} />
            </svg>
            <span>{page.name}</span>
            {page.path === "/" && waiting > 0 && (
              <b className={styles.badge} aria-label={`${waiting} wait for you`}>
                {waiting}
              </b>
            )}
          </Link>
        ))}
        <Views />
      </nav>
      <header className={styles.bar}>
        <button type="button" className={styles.search} onClick={() => setSearching(true)} aria-keyshortcuts="Control+K Meta+K /">
          <span>Search and commands</span>
          <kbd>/</kbd>
        </button>
        <ConnectionState />
        <DensityButton />
        <ThemeButton />
        <Account />
      </header>
      <main id="content" className={styles.content} data-stale={live.connection === "lost" || undefined} tabIndex={-1}>
        {at !== null && !hasPast && (
          <ShowsPresent>
            <Link href={path}>Back to live</Link>
          </ShowsPresent>
        )}
        {children}
      </main>
      {isSearching && <Palette commands={commands} onClose={() => setSearching(false)} />}
      {isHelpOpen && <KeyHelp pages={PAGES} onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

/** The saved views, and a button for the address that is open, where it has filters. */
function Views() {
  const [path] = useLocation();
  const search = useSearch();
  const views = useViews();
  const [isAsked, setAsked] = useState(false);
  const here = search ? `${path}?${search}` : path;
  const isNew = search !== "" && !views.some((view) => view.path === here);
  const save = async (form: FormData) => saveView({ name: String(form.get("name")).trim(), path: here });
  return (
    <div className={styles.views}>
      {views.map((view) => (
        <span key={view.name} className={styles.view}>
          <Link href={view.path} aria-current={view.path === here ? "page" : undefined}>
            <bdi>{view.name}</bdi>
          </Link>
          <button type="button" aria-label={`forget the view ${view.name}`} onClick={() => removeView(view.name)}>
            ×
          </button>
        </span>
      ))}
      {isNew && (
        <Button kind="quiet" onClick={() => setAsked(true)}>
          Save this view…
        </Button>
      )}
      {isAsked && (
        <Dialog title="Save this view" confirm="Save" run={save} onClose={() => setAsked(false)}>
          <Field label="Name" hint="It is kept in this browser.">
            <input name="name" required maxLength={60} autoFocus dir="auto" />
          </Field>
        </Dialog>
      )}
    </div>
  );
}

function ConnectionState() {
  const live = useLive();
  const isLost = live.connection === "lost";
  const words = isLost
    ? live.seenAt
      ? `reconnecting, shown as of ${formatClock(live.seenAt)}`
      : "reconnecting"
    : live.isPaused
      ? `paused${live.held ? `, ${live.held} new` : ""}`
      : live.connection === "live"
        ? "live"
        : "connecting";
  return (
    <button
      type="button"
      className={styles.connection}
      data-state={isLost ? "lost" : live.isPaused ? "paused" : live.connection}
      onClick={() => live.setPaused(!live.isPaused)}
      title={live.isPaused ? "Go on with live updates ( . )" : "Pause live updates ( . )"}
    >
      <i aria-hidden="true" />
      <span role="status">{words}</span>
    </button>
  );
}

function DensityButton() {
  const [compact, setCompact] = useState(isCompact());
  const choose = (next: boolean) => {
    applyDensity(next);
    setCompact(next);
  };
  return (
    <Button kind="quiet" className={styles.density} aria-pressed={compact} onClick={() => choose(!compact)}>
      Compact
    </Button>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(savedTheme());
  const choose = (next: Theme) => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <select className={styles.theme} aria-label="Theme" value={theme} onChange={(event) => choose(event.target.value as Theme)}>
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

function Account() {
  const session = useSession();
  const signOut = async () => {
    try {
      await call("DELETE", "/v1/session");
      tellSessionEnd();
    } catch (error) {
      // Who is not signed in any more has been told.
      if (!(error instanceof Problem && error.isSignedOut)) throw error;
    }
  };
  const ends = session.expiresAt ? ` until ${formatClock(session.expiresAt)}` : "";
  return (
    <div className={styles.account}>
      <span title={`signed in as ${session.role}${session.owner ? ", the owner of this hub" : ""}${ends}`}>
        <bdi>{session.name}</bdi>
        <small>{session.owner ? "owner" : session.role}</small>
      </span>
      <Button kind="quiet" onClick={() => void signOut()}>
        Sign out
      </Button>
    </div>
  );
}
