// The board as it was at a position of the ledger: one goes through it with a slider, and changes nothing.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useSearchParams } from "wouter";

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

export function PastBoard({ at, columns }: { at: number; columns: readonly string[] }) {
  const [, setParameters] = useSearchParams();
  const session = useSession();
  const status = useQuery(statusQuery);
  const head = status.data?.position ?? at;
  const [position, setPosition] = useState(at);
  const [selected, setSelected] = useState<string | null>(null);
  // The address follows when the slider rests.
  useEffect(() => {
    const timer = setTimeout(() => position !== at && setParameters({ at: String(position) }, { replace: true }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [position, at, setParameters]);
  const tasks = useQuery({
    queryKey: ["past", at],
    queryFn: ({ signal }) => get<TaskPage>(`/v1/tasks?as_of=${at}&limit=${MAX_TASKS}`, signal),
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
  const entry = useQuery({
    queryKey: ["past", "entry", at],
    queryFn: async ({ signal }) => (await entriesPage(Math.max(0, at - 1), 1, "", signal)).events[0] ?? null,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
  const all = tasks.data?.tasks ?? [];
  return (
    <div className={`${board.page} ${styles.past}`} data-split={selected ? "" : undefined}>
      <section className={board.main} aria-labelledby="board">
        <header className={board.head}>
          <h1 id="board">Board</h1>
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
          />
          <Button kind="primary" onClick={() => setParameters({}, { replace: true })}>
            Back to live
          </Button>
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
          <SessionContext value={{ ...session, may: NOTHING }}>
            <PastTask id={selected} at={at} onClose={() => setSelected(null)} />
          </SessionContext>
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
