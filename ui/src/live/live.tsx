// What the pages know of the stream: whether it is live, and which queries are out of date.
import { type QueryClient, type QueryKey, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";

import { sessionQuery, statusQuery } from "../api/queries";
import type { EntryResource } from "../api/types";
import { type Connection, LiveStream } from "./stream";

interface Live {
  connection: Connection;
  /** When the hub was last known to answer. */
  seenAt: number;
  isPaused: boolean;
  /** Entries that came while updates are paused. */
  held: number;
  setPaused: (paused: boolean) => void;
  /** Tasks that have just changed, for a moment. */
  changed: ReadonlySet<string>;
}

const LiveContext = createContext<Live | null>(null);

const REFRESH_MS = 400;
const HIDDEN_REFRESH_MS = 3_000;
const CHANGED_MS = 1_200;
const STATUS = JSON.stringify(statusQuery.queryKey);
const ALL = "[]";

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error("useLive outside of LiveProvider");
  return live;
}

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  const [seenAt, setSeenAt] = useState(0);
  const [isPaused, setPaused] = useState(false);
  const [held, setHeld] = useState(0);
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const refresher = useRef<Refresher | null>(null);

  useEffect(() => {
    const own = new Refresher(client, setHeld);
    refresher.current = own;
    let stream: LiveStream | undefined;
    let isLeft = false;
    const open = (position: number) => {
      if (isLeft) return;
      stream = new LiveStream(position, {
        entries: (entries) => {
          own.take(entries);
          mark(entries, setChanged);
        },
        gap: () => own.takeAll(),
        state: () => {
          if (!stream) return;
          setConnection(stream.state);
          setSeenAt(stream.seenAt);
          if (stream.state === "signed-out") void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
          // What was asked while there was no answer is asked again.
          if (stream.state === "live") own.takeFailed();
        },
      });
    };
    // Not from "now": between the first answer and the stream nothing may be missed.
    client.fetchQuery(statusQuery).then(
      (status) => open(status.position),
      () => open(0),
    );
    return () => {
      isLeft = true;
      stream?.close();
      own.close();
    };
  }, [client]);

  useEffect(() => refresher.current?.setPaused(isPaused), [isPaused]);

  const live = useMemo(
    () => ({ connection, seenAt, isPaused, held, setPaused, changed }),
    [connection, seenAt, isPaused, held, changed],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

function mark(entries: EntryResource[], setChanged: (change: (old: ReadonlySet<string>) => ReadonlySet<string>) => void) {
  const tasks = entries.map(taskOf).filter((task) => task !== "");
  if (!tasks.length) return;
  setChanged((old) => new Set([...old, ...tasks]));
  setTimeout(() => setChanged((old) => new Set([...old].filter((task) => !tasks.includes(task)))), CHANGED_MS);
}

export function taskOf(entry: EntryResource): string {
  const [kind, ...name] = entry.stream.split(":");
  return kind === "task" || kind === "turns" ? name.join(":") : "";
}

/** Asks again for what is on screen and out of date: together, and not while nobody looks. */
class Refresher {
  private readonly stale = new Map<string, QueryKey>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private since: number | undefined;
  private isPaused = false;
  private held = 0;

  constructor(
    private readonly client: QueryClient,
    private readonly onHeld: (held: number) => void,
  ) {
    document.addEventListener("visibilitychange", this.plan);
  }

  close(): void {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.plan);
  }

  setPaused(paused: boolean): void {
    this.isPaused = paused;
    this.held = 0;
    this.onHeld(0);
    this.plan();
  }

  take(entries: EntryResource[]): void {
    for (const entry of entries) for (const key of keysOf(entry)) this.stale.set(JSON.stringify(key), key);
    if (this.isPaused) this.onHeld((this.held += entries.length));
    this.plan();
  }

  takeAll(): void {
    this.stale.set(ALL, []);
    this.plan();
  }

  takeFailed(): void {
    void this.client.refetchQueries({ type: "active", predicate: (query) => query.state.status === "error" });
  }

  private readonly plan = (): void => {
    clearTimeout(this.timer);
    if (this.isPaused || !this.stale.size) return;
    // A tab that nobody looks at only keeps its badge right.
    const isHidden = document.hidden;
    const keys = [...this.stale.keys()].filter((key) => !isHidden || key === STATUS || key === ALL);
    if (!keys.length) return;
    // From the first entry on: a steady flow does not put it off for ever.
    this.since ??= Date.now();
    const wait = Math.max(0, this.since + (isHidden ? HIDDEN_REFRESH_MS : REFRESH_MS) - Date.now());
    this.timer = setTimeout(() => {
      this.since = undefined;
      const due = keys.map((key) => this.stale.get(key)!);
      for (const key of keys) this.stale.delete(key);
      for (const queryKey of due) void this.client.invalidateQueries({ queryKey });
    }, wait);
  };
}

function keysOf(entry: EntryResource): QueryKey[] {
  const family = entry.type.split(".", 1)[0] ?? "";
  const task = taskOf(entry);
  const keys: QueryKey[] = [["ledger"]];
  if (task) keys.push(["task", task]);
  switch (family) {
    case "turn":
    case "trace":
      return [...keys, ["story"]];
    case "handoff":
      keys.push(["handoffs"], ["handoff"]);
      break;
    case "mail":
      keys.push(["mail"]);
      break;
    case "agent":
      keys.push(["agents"]);
      break;
    default:
      keys.push(["tasks"], ["numbers"]);
  }
  return [...keys, ["status"], ["story"]];
}
