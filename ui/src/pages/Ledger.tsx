// The ledger: every entry with its position, stream and hash, from the newest back.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";

import { readBack } from "../api/entries";
import { statusQuery } from "../api/queries";
import type { EntryResource } from "../api/types";
import { taskOf } from "../live/live";
import { Button } from "../parts/controls";
import { TaskLink } from "../parts/links";
import page from "../parts/page.module.css";
import { Empty, Failed, Loading } from "../parts/states";
import { Moment } from "../parts/time";
import { Checkpoints, Proof } from "./Proof";
import { Verify } from "./Verify";

const FAMILIES = ["task", "question", "mail", "handoff", "agent", "turn", "trace", "intent", "wave", "command", "token"];

export function Ledger() {
  const [parameters, setParameters] = useSearchParams();
  const status = useQuery(statusQuery);
  const head = status.data?.position;
  const at = Number(parameters.get("at") ?? 0);
  const type = parameters.get("type") ?? "";
  const task = parameters.get("task") ?? "";
  // Without a position the newest are shown, and what comes is added.
  const [end, setEnd] = useState<number | null>(at ? at + 10 : null);
  useEffect(() => setEnd(at ? at + 10 : null), [at]);
  // While somebody reads further down, what is new waits above.
  const [held, setHeld] = useState<number | null>(null);
  const top = useRef<HTMLElement>(null);
  const until = Math.min(end ?? held ?? head ?? 0, head ?? 0);
  const added = end === null && held !== null ? (head ?? 0) - held : 0;
  const found = useQuery({
    queryKey: ["ledger", until, type, task],
    queryFn: ({ signal }) => readBack(until, type, task, signal),
    enabled: head !== undefined,
    placeholderData: keepPreviousData,
  });
  if (found.data === undefined) {
    const failed = status.error ? status : found;
    return failed.error ? <Failed error={failed.error} retry={() => void failed.refetch()} /> : <Loading rows={8} />;
  }
  const { entries, begin } = found.data;
  const choose = (next: Record<string, string>) =>
    setParameters(Object.fromEntries(Object.entries({ type, task, ...next }).filter(([, value]) => value)), { replace: true });
  return (
    <div className={page.page}>
      <section
        ref={top}
        className={page.main}
        aria-labelledby="ledger"
        onScroll={(event) => {
          const isDown = event.currentTarget.scrollTop > 0;
          setHeld((old) => (isDown ? (old ?? head ?? null) : null));
        }}
      >
        <header className={page.head}>
          <h1 id="ledger">Ledger</h1>
          <p>{(head ?? 0).toLocaleString()} entries</p>
          <label>
            <span className="visually-hidden">Only of this kind</span>
            <select value={type} onChange={(event) => choose({ type: event.target.value })}>
              <option value="">All kinds</option>
              {FAMILIES.map((family) => (
                <option key={family}>{family}</option>
              ))}
            </select>
          </label>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              choose({ task: String(new FormData(event.currentTarget).get("task")).trim() });
            }}
          >
            <input key={task} name="task" type="search" aria-label="Only of this task" placeholder="Only of this task" defaultValue={task} autoComplete="off" spellCheck={false} maxLength={300} />
          </form>
          {end !== null && <Button onClick={() => (at ? setParameters({}, { replace: true }) : setEnd(null))}>Newest</Button>}
          <Verify />
        </header>
        <Checkpoints />
        {added > 0 && (
          <p className={page.added}>
            <Button kind="primary" onClick={() => top.current?.scrollTo({ top: 0 })}>
              {type || task ? "Newer" : `${added.toLocaleString()} new`} ↑
            </Button>
          </p>
        )}
        {entries.length === 0 ? (
          <Empty>There are no entries {type ? `of the kind ${type}` : ""} {task ? `of ${task}` : ""} here.</Empty>
        ) : (
          <ol className={page.entries} aria-label="Entries, the newest first">
            {entries.map((entry) => (
              <Entry key={entry.position} entry={entry} isHere={entry.position === at} />
            ))}
          </ol>
        )}
        {begin > 0 && (
          <p className={page.more}>
            <Button onClick={() => setEnd(begin)}>Older</Button>
          </p>
        )}
      </section>
    </div>
  );
}

function Entry({ entry, isHere }: { entry: EntryResource; isHere: boolean }) {
  const task = taskOf(entry);
  return (
    <li data-here={isHere || undefined}>
      <details open={isHere}>
        <summary>
          <span className={page.quiet}>#{entry.position}</span>
          <code>{entry.type}</code>
          <bdi>{entry.actor}</bdi>
          <span>{task ? <TaskLink id={task} /> : <bdi className={page.quiet}>{entry.stream}</bdi>}</span>
          <Moment at={entry.at} />
        </summary>
        <ul>
          <li>
            stream <code>{entry.stream}</code>, version {entry.version}
            {entry.via && `, by ${entry.via}`}
          </li>
          <li>
            hash <code>{entry.hash}</code> <Proof position={entry.position} />
          </li>
          <li>
            <Link href={`/board?at=${entry.position}`}>The board as of this entry</Link>
            {task && (
              <>
                {" · "}
                <Link href={`/tasks/${encodeURIComponent(task)}?at=${entry.position}`}>the task as of it</Link>
              </>
            )}
          </li>
          <li>
            cause <code>{entry.cause}</code>
          </li>
        </ul>
        <pre>{JSON.stringify(entry.body, null, 2)}</pre>
      </details>
    </li>
  );
}
