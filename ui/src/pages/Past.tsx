// The board as it was at a position of the ledger: one goes through it with a slider, and changes nothing.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";

import { get } from "../api/client";
import { entriesPage, pastTaskQuery, statusQuery } from "../api/queries";
import type { TaskPage, TaskSummary } from "../api/types";
import { Button } from "../parts/controls";
import { TaskStatus } from "../parts/marks";
import { Failed, Loading } from "../parts/states";
import { Moment } from "../parts/time";
import { SessionContext, useSession } from "../session";
import { TaskFacts, TaskNow } from "../task/TaskPeek";
import task from "../task/task.module.css";
import board from "./Board.module.css";
import styles from "./Past.module.css";

const MAX_TASKS = 1_000;
const PAUSE_MS = 120;
const NOTHING = { write: false, answer: false, pause: false, credentials: false };

/** Where in the ledger one is, with its time; a slider through it, and the way back. */
export function PastBar({ at }: { at: number }) {
  const [, setParameters] = useSearchParams();
  const status = useQuery(statusQuery);
  const head = status.data?.position ?? at;
  const [position, setPosition] = useState(at);
  // The address follows when the slider rests.
  useEffect(() => {
    const timer = setTimeout(() => position !== at && setParameters((old) => withAt(old, position), { replace: true }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [position, at, setParameters]);
  const entry = useQuery({
    queryKey: ["past", "entry", at],
    queryFn: async ({ signal }) => (await entriesPage(Math.max(0, at - 1), 1, "", signal)).events[0] ?? null,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!event.shiftKey || !step) return;
    event.preventDefault();
    void minuteFrom(position, step, head).then(setPosition);
  };
  return (
    <>
      <p role="status">
        as of entry {at} of {head}
        {entry.data && (
          <>
            , <Moment at={entry.data.at} />
          </>
        )}
      </p>
      <input
        type="range"
        className={styles.slider}
        aria-label="Position in the ledger"
        min={0}
        max={head}
        value={position}
        onChange={(event) => setPosition(Number(event.target.value))}
        onKeyDown={press}
      />
      <Button kind="primary" onClick={() => setParameters((old) => withAt(old, null), { replace: true })}>
        Back to live
      </Button>
    </>
  );
}

function withAt(old: URLSearchParams, at: number | null): URLSearchParams {
  const next = new URLSearchParams(old);
  if (at === null) next.delete("at");
  else next.set("at", String(at));
  return next;
}

/** The position of a moment in an address; null: now. */
export function pastOf(parameters: URLSearchParams): number | null {
  const at = parameters.get("at");
  return at === null ? null : Math.max(0, Math.floor(Number(at) || 0));
}

const MINUTE_MS = 60_000;
const SEARCHED = 1_000;

/** The last entry that is a minute older, or the first that is a minute newer, of those around a position. */
async function minuteFrom(position: number, step: number, head: number): Promise<number> {
  const signal = new AbortController().signal;
  const after = step < 0 ? Math.max(0, position - SEARCHED) : Math.max(0, position - 1);
  const { events } = await entriesPage(after, SEARCHED, "", signal);
  const here = events.find((entry) => entry.position >= Math.max(1, position));
  if (!here) return position;
  const time = Date.parse(here.at) + step * MINUTE_MS;
  if (step < 0) return events.findLast((entry) => Date.parse(entry.at) <= time)?.position ?? after;
  return events.find((entry) => Date.parse(entry.at) >= time)?.position ?? Math.min(head, after + SEARCHED);
}

/** Nothing can be done in the past: no button is there. */
export function InThePast({ children }: { children: ReactNode }) {
  const session = useSession();
  return <SessionContext value={{ ...session, may: NOTHING }}>{children}</SessionContext>;
}

export function PastBoard({ at, columns }: { at: number; columns: readonly string[] }) {
  const [selected, setSelected] = useState<string | null>(null);
  const tasks = useQuery({
    queryKey: ["past", at],
    queryFn: ({ signal }) => get<TaskPage>(`/v1/tasks?as_of=${at}&limit=${MAX_TASKS}`, signal),
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
  const all = tasks.data?.tasks ?? [];
  return (
    <div className={`${board.page} ${styles.past}`} data-split={selected ? "" : undefined}>
      <section className={board.main} aria-labelledby="board">
        <header className={board.head}>
          <h1 id="board">Board</h1>
          <PastBar at={at} />
        </header>
        {tasks.data === undefined ? (
          tasks.error ? (
            <Failed error={tasks.error} retry={() => void tasks.refetch()} />
          ) : (
            <Loading rows={4} />
          )
        ) : (
          <div className={board.columns}>
            {columns.map((column) => (
              <PastColumn key={column} status={column} tasks={all.filter((one) => one.status === column)} selected={selected} onSelect={setSelected} />
            ))}
          </div>
        )}
        {tasks.data?.next != null && <p className={styles.more}>Only the newest {MAX_TASKS.toLocaleString()} tasks are shown.</p>}
      </section>
      {selected && (
        <aside className={board.panel} aria-label="Task">
          <InThePast>
            <PastTask id={selected} at={at} onClose={() => setSelected(null)} />
          </InThePast>
        </aside>
      )}
    </div>
  );
}

function PastColumn({ status, tasks, selected, onSelect }: { status: string; tasks: readonly TaskSummary[]; selected: string | null; onSelect: (id: string) => void }) {
  return (
    <section className={board.column} data-empty={tasks.length === 0 || undefined} aria-label={status}>
      <h2 className={styles.heading}>
        <TaskStatus status={status} /> <span className={board.count}>{tasks.length}</span>
      </h2>
      <ul className={board.list}>
        {tasks.map((one) => (
          <li key={one.id}>
            <button type="button" className={styles.card} data-selected={one.id === selected || undefined} onClick={() => onSelect(one.id)}>
              <bdi>{one.title}</bdi>
              <small>
                <code>{one.id}</code> {one.assignee}
              </small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function PastTask({ id, at, onClose }: { id: string; at: number; onClose: () => void }) {
  const found = useQuery(pastTaskQuery(id, at));
  if (found.data === undefined) {
    return found.error ? <Failed error={found.error} /> : <Loading />;
  }
  const past = found.data;
  return (
    <article className={task.peek} aria-label={past.title}>
      <header>
        <div className={task.peekTop}>
          <TaskStatus status={past.status} />
          <code className={task.id}>{past.id}</code>
          <Link className={task.open} href={`/tasks/${encodeURIComponent(past.id)}?at=${at}`}>
            Open
          </Link>
          <Button kind="quiet" onClick={onClose} aria-label="close the panel">
            ×
          </Button>
        </div>
        <h2 dir="auto">{past.title}</h2>
      </header>
      <p className={task.mayNot}>This is the past: nothing can be changed in it.</p>
      <TaskNow task={past} />
      <TaskFacts task={past} />
      {past.body && (
        <p className={task.prose} dir="auto">
          {past.body}
        </p>
      )}
    </article>
  );
}
