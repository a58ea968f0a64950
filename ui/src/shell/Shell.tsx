// The frame of every page: where one can go, whether what is shown is live, and who is signed in.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";

import { call, get } from "../api/client";
import { sessionQuery, statusQuery } from "../api/queries";
import type { TaskDetail } from "../api/types";
import { useLive } from "../live/live";
import { Button, wordsOf } from "../parts/controls";
import { formatClock, noteHubTime } from "../parts/time";
import { useSession } from "../session";
import { KeyHelp } from "./KeyHelp";
import { useKeys } from "./keys";
import styles from "./Shell.module.css";
import { applyTheme, savedTheme, type Theme } from "./theme";

const PAGES = [
  { path: "/", name: "Needs you", key: "n", icon: "M8 2v7M8 12.5v1" },
  { path: "/board", name: "Board", key: "b", icon: "M3 3v10M8 3v6M13 3v8" },
  { path: "/inbox", name: "Inbox", key: "i", icon: "M2 4h12v8H2zM2 4.5l6 4.5 6-4.5" },
  { path: "/handoffs", name: "Handoffs", key: "h", icon: "M3 5.5h10l-2.5-2.5M13 10.5H3l2.5 2.5" },
  { path: "/agents", name: "Agents", key: "a", icon: "M8 8.2a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2M3 13.5c.6-2.4 2.5-3.5 5-3.5s4.4 1.1 5 3.5" },
  { path: "/ledger", name: "Ledger", key: "l", icon: "M3 3.5h10M3 8h10M3 12.5h6" },
];

export function Shell({ children }: { children: ReactNode }) {
  const [path, navigate] = useLocation();
  const live = useLive();
  const status = useQuery(statusQuery);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const waiting = Object.values(status.data?.attentionCounts ?? {}).reduce((sum, one) => sum + one, 0);

  const at = status.data?.at;
  useEffect(() => {
    if (at) noteHubTime(at);
  }, [at]);
  useEffect(() => {
    document.title = waiting ? `(${waiting}) dragoman` : "dragoman";
  }, [waiting]);

  useKeys({
    ...Object.fromEntries(PAGES.map((page) => [`g ${page.key}`, () => navigate(page.path)])),
    "?": () => setHelpOpen(true),
    ".": () => live.setPaused(!live.isPaused),
    "/": () => search.current?.focus(),
  });

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
          <Link key={page.path} href={page.path} className={styles.place} aria-current={isHere(page.path) ? "page" : undefined}>
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
      </nav>
      <header className={styles.bar}>
        <GoTo input={search} />
        <ConnectionState />
        <ThemeButton />
        <Account />
      </header>
      <main id="content" className={styles.content} data-stale={live.connection === "lost" || undefined} tabIndex={-1}>
        {children}
      </main>
      {isHelpOpen && <KeyHelp pages={PAGES} onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

/** Goes to a task by any of its names. */
function GoTo({ input }: { input: React.RefObject<HTMLInputElement | null> }) {
  const [, navigate] = useLocation();
  const [refusal, setRefusal] = useState("");
  const go = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const name = String(new FormData(form).get("task")).trim();
    if (!name) return;
    try {
      const task = await get<TaskDetail>(`/v1/tasks/${encodeURIComponent(name)}`);
      form.reset();
      setRefusal("");
      input.current?.blur();
      navigate(`/tasks/${encodeURIComponent(task.id)}`);
    } catch (error) {
      setRefusal(wordsOf(error));
    }
  };
  return (
    <form className={styles.search} role="search" onSubmit={(event) => void go(event)}>
      <input
        ref={input}
        name="task"
        type="search"
        placeholder="Go to task…"
        aria-label="Go to a task by its name"
        autoComplete="off"
        spellCheck={false}
        maxLength={300}
        onInput={() => setRefusal("")}
        onKeyDown={(event) => event.key === "Escape" && input.current?.blur()}
      />
      {refusal && (
        <span className={styles.notFound} role="alert">
          <bdi>{refusal}</bdi>
        </span>
      )}
    </form>
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
  const client = useQueryClient();
  const signOut = async () => {
    await call("DELETE", "/v1/session");
    await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
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
