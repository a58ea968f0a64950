// The board: a column for each status, as long as it likes; the filters stand in the address.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type DragEvent, Fragment, useEffect, useMemo, useRef, useState } from "react";
import { useLocation, useSearchParams } from "wouter";

import { get, withQuery } from "../api/client";
import { statusQuery } from "../api/queries";
import type { TaskPage, TaskSummary } from "../api/types";
import { useLive } from "../live/live";
import { NumberStrip } from "../numbers/Numbers";
import { Button, Refusal, wordsOf } from "../parts/controls";
import { LeaseRing, statusName, TaskStatus } from "../parts/marks";
import { Empty, Failed, Loading } from "../parts/states";
import { Ago } from "../parts/time";
import { useSession } from "../session";
import { useKeys } from "../shell/keys";
import { taskPath, useAct } from "../task/act";
import { MOVES } from "../task/TaskActions";
import { TaskPeek } from "../task/TaskPeek";
import styles from "./Board.module.css";
import { ActOnAll } from "./ActOnAll";
import { PastBoard, pastOf } from "./Past";

const COLUMNS = ["backlog", "ready", "in-progress", "review", "blocked", "deadletter", "done", "cancelled"];
/** Columns that are folded until somebody opens them. */
const FOLDED = ["done", "cancelled"];
const PAGE = 100;
const CARD_PX = 98;
const HEADING_PX = 26;
/** Of a column whose cards are grouped so many are read at once. */
const GROUPED_PAGE = 1_000;

interface Dragged {
  id: string;
  from: string;
}

export function Board() {
  const [parameters] = useSearchParams();
  const at = pastOf(parameters);
  return at === null ? <LiveBoard /> : <PastBoard at={at} columns={COLUMNS} />;
}

function LiveBoard() {
  const status = useQuery(statusQuery);
  const [parameters, setParameters] = useSearchParams();
  const [, navigate] = useLocation();
  const session = useSession();
  const agent = parameters.get("agent") ?? "";
  const words = parameters.get("words") ?? "";
  const selected = parameters.get("task") ?? "";
  const isGrouped = parameters.get("group") === "agent";
  const open = parameters.get("open")?.split(" ") ?? [];
  const [dragged, setDragged] = useState<Dragged | null>(null);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const unpick = (id: string) => setPicked((old) => new Set([...old].filter((one) => one !== id)));
  const shown = useRef(new Map<string, readonly TaskSummary[]>());

  const change = (name: string, value: string) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  const fold = (column: string) => {
    const next = open.includes(column) ? open.filter((one) => one !== column) : [...open, column];
    change("open", next.join(" "));
  };
  const step = (by: number) => {
    const all = COLUMNS.flatMap((column) => shown.current.get(column) ?? []);
    const at = all.findIndex((task) => task.id === selected);
    const next = all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by))];
    if (next) change("task", next.id);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    Enter: () => selected && navigate(`/tasks/${encodeURIComponent(selected)}`),
    Escape: () => (selected ? change("task", "") : setPicked(new Set())),
    x: () => {
      if (!selected || !session.may.write) return;
      if (picked.has(selected)) unpick(selected);
      else setPicked(new Set([...picked, selected]));
    },
  });

  if (status.data === undefined) {
    return status.error ? <Failed error={status.error} retry={() => void status.refetch()} /> : <Loading rows={6} />;
  }
  const { counts, agents } = status.data;
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
  const names = [...new Set([...agents.map((one) => one.name), ...(agent ? [agent] : [])])].sort();
  return (
    <div className={styles.page} data-split={selected ? "" : undefined}>
      <section className={styles.main} aria-labelledby="board">
        <header className={styles.head}>
          <h1 id="board">Board</h1>
          <p>
            {total === 1 ? "1 task" : `${total.toLocaleString()} tasks`}
          </p>
          <label>
            <span className="visually-hidden">Only of this agent</span>
            <select value={agent} onChange={(event) => change("agent", event.target.value)}>
              <option value="">All agents</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <label>
            <span className="visually-hidden">Group by</span>
            <select value={isGrouped ? "agent" : ""} onChange={(event) => change("group", event.target.value)}>
              <option value="">Not grouped</option>
              <option value="agent">By agent</option>
            </select>
          </label>
          {total > 0 && <WordFilter words={words} onChange={(next) => change("words", next)} />}
          {total > 0 && session.may.write && <ActOnAll assignee={agent} words={words} columns={COLUMNS} picked={picked} onDone={unpick} />}
          {total > 0 && <Button onClick={() => setParameters({ at: String(status.data.position) })}>The past</Button>}
        </header>
        {total > 0 && <NumberStrip />}
        {total === 0 ? (
          <Empty command='dragoman task create "First" --ready'>There are no tasks yet. This makes one that any agent may take:</Empty>
        ) : (
          <div className={styles.columns}>
            {COLUMNS.map((column) => (
              <Column
                key={column}
                status={column}
                agent={agent}
                words={words}
                count={agent || words ? undefined : (counts[column] ?? 0)}
                isFolded={FOLDED.includes(column) !== open.includes(column)}
                onFold={() => fold(column)}
                isGrouped={isGrouped}
                picked={picked}
                selected={selected}
                onSelect={(id) => change("task", id)}
                dragged={dragged}
                onDrag={setDragged}
                onShow={(tasks) => void shown.current.set(column, tasks)}
              />
            ))}
          </div>
        )}
      </section>
      {selected && (
        <aside className={styles.panel} aria-label="Task">
          <TaskPeek key={selected} id={selected} onClose={() => change("task", "")} />
        </aside>
      )}
    </div>
  );
}

/** The address follows when nobody types. */
function WordFilter({ words, onChange }: { words: string; onChange: (words: string) => void }) {
  const [text, setText] = useState(words);
  useEffect(() => {
    const timer = setTimeout(() => text.trim() !== words && onChange(text.trim()), 250);
    return () => clearTimeout(timer);
  });
  return <input type="search" aria-label="Only with these words" placeholder="Only with these words" value={text} maxLength={300} onChange={(event) => setText(event.target.value)} />;
}

interface ColumnProps {
  status: string;
  agent: string;
  words: string;
  /** How many there are, where that is known without reading them. */
  count: number | undefined;
  isFolded: boolean;
  onFold: () => void;
  isGrouped: boolean;
  picked: ReadonlySet<string>;
  selected: string;
  onSelect: (id: string) => void;
  dragged: Dragged | null;
  onDrag: (dragged: Dragged | null) => void;
  onShow: (tasks: readonly TaskSummary[]) => void;
}

function Column({ status, agent, words, count, isFolded, onFold, isGrouped, picked, selected, onSelect, dragged, onDrag, onShow }: ColumnProps) {
  const act = useAct();
  const session = useSession();
  const { changed } = useLive();
  const [refusal, setRefusal] = useState("");
  const [isOver, setOver] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const found = useInfiniteQuery({
    queryKey: ["tasks", "board", status, agent, words, isGrouped],
    queryFn: ({ pageParam, signal }) => get<TaskPage>(withQuery("/v1/tasks", { status, assignee: agent, words, limit: isGrouped ? GROUPED_PAGE : PAGE, cursor: pageParam }), signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    enabled: !isFolded && count !== 0,
  });
  const tasks = useMemo(() => {
    const read = isFolded || count === 0 ? [] : (found.data?.pages.flatMap((page) => page.tasks) ?? []);
    return isGrouped ? read.toSorted((one, other) => byName.compare(one.assignee ?? "", other.assignee ?? "")) : read;
  }, [found.data, isFolded, count, isGrouped]);
  const begins = (index: number) => isGrouped && (index === 0 || tasks[index - 1]?.assignee !== tasks[index]?.assignee);
  useEffect(() => {
    onShow(tasks);
  });
  const rows = useVirtualizer({
    count: tasks.length,
    getScrollElement: () => list.current,
    estimateSize: (index) => CARD_PX + (begins(index) ? HEADING_PX : 0),
    overscan: 6,
    getItemKey: (index) => tasks[index]?.id ?? index,
  });
  // What is measured once is kept, until the order is another.
  useEffect(() => rows.measure(), [tasks, rows]);
  const visible = rows.getVirtualItems();
  const last = visible.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= tasks.length - 20) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, last, tasks.length]);
  const at = tasks.findIndex((task) => task.id === selected);
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: "auto" });
  }, [at, rows]);

  const allows = dragged !== null && (MOVES[dragged.from]?.includes(status) ?? false);
  const refuses = dragged !== null && dragged.from !== status && !allows;
  const drop = async (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (!dragged || !allows) return;
    try {
      setRefusal("");
      await act(taskPath(dragged.id, status === "done" ? "approve" : "move"), status === "done" ? {} : { to: status });
    } catch (error) {
      setRefusal(wordsOf(error));
    }
  };
  const shownCount = count ?? (found.data ? `${tasks.length}${hasNextPage ? "+" : ""}` : "");
  return (
    <section
      className={styles.column}
      data-folded={isFolded || undefined}
      data-empty={count === 0 || undefined}
      data-refuses={refuses || undefined}
      data-over={(isOver && allows) || undefined}
      aria-label={statusName(status)}
      onDragOver={(event) => {
        if (allows) {
          event.preventDefault();
          setOver(true);
        }
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => void drop(event)}
    >
      <h2>
        <button type="button" onClick={onFold} aria-expanded={!isFolded}>
          <TaskStatus status={status} />
          <span className={styles.count}>{shownCount.toLocaleString()}</span>
        </button>
      </h2>
      {refusal && <Refusal text={refusal} onClose={() => setRefusal("")} />}
      {refuses && <p className={styles.cannot}>{whyNot(dragged.from, status)}</p>}
      {!isFolded && found.error && <Failed error={found.error} retry={() => void found.refetch()} />}
      {!isFolded && (
        <div ref={list} className={styles.list} tabIndex={tasks.length ? 0 : -1} role="group" aria-label={`${statusName(status)}, tasks`}>
          {found.isLoading && <Loading rows={2} />}
          <div className={styles.pool} style={{ height: rows.getTotalSize() }}>
            {visible.map((row) => {
              const task = tasks[row.index];
              if (!task) return null;
              return (
                <Fragment key={row.key}>
                  {begins(row.index) && (
                    <h3 className={styles.group} style={{ transform: `translateY(${row.start}px)` }}>
                      <bdi>{task.assignee ?? "nobody yet"}</bdi>
                    </h3>
                  )}
                  <Card
                    task={task}
                    top={row.start + (begins(row.index) ? HEADING_PX : 0)}
                    isPicked={picked.has(task.id)}
                    isSelected={task.id === selected}
                    hasChanged={changed.has(task.id)}
                    onSelect={() => onSelect(task.id)}
                    canDrag={session.may.write}
                    onDrag={onDrag}
                  />
                </Fragment>
              );
            })}
          </div>
        </div>
      )}
    </section>
  );
}

const byName = new Intl.Collator();

function whyNot(from: string, to: string): string {
  if (to === "in-progress") return "Only an agent's claim leads here.";
  if (to === "done") return "Only reviewed work is done.";
  return `Not from ${statusName(from).toLowerCase()}.`;
}

interface CardProps {
  task: TaskSummary;
  top: number;
  isPicked: boolean;
  isSelected: boolean;
  hasChanged: boolean;
  onSelect: () => void;
  canDrag: boolean;
  onDrag: (dragged: Dragged | null) => void;
}

function Card({ task, top, isPicked, isSelected, hasChanged, onSelect, canDrag, onDrag }: CardProps) {
  const blockers = task.waitsFor.length;
  return (
    <button
      type="button"
      className={styles.card}
      data-selected={isSelected || undefined}
      data-changed={hasChanged || undefined}
      style={{ transform: `translateY(${top}px)` }}
      draggable={canDrag}
      onDragStart={(event) => {
        event.dataTransfer.setData("text/plain", task.id);
        event.dataTransfer.effectAllowed = "move";
        onDrag({ id: task.id, from: task.status });
      }}
      onDragEnd={() => onDrag(null)}
      onClick={onSelect}
    >
      <span className={styles.title} dir="auto">
        {isPicked && (
          <b>
            <span aria-hidden="true">☑ </span>
            <span className="visually-hidden">chosen </span>
          </b>
        )}
        {task.title}
      </span>
      <span className={styles.meta}>
        {task.assignee && <b dir="auto">{task.assignee}</b>}
        {task.lease && <LeaseRing until={task.lease.expiresAt} isValid={task.lease.valid} ms={task.lease.ttlMs} />}
        {task.attempt > 1 && <span>attempt {task.attempt}</span>}
        {task.priority !== "normal" && <span data-high={task.priority === "critical" || task.priority === "high" || undefined}>{task.priority}</span>}
      </span>
      <span className={styles.meta}>
        <code>{task.id}</code>
        {blockers > 0 && <span title={task.waitReason ?? task.waitsFor.join(", ")}>waits for {blockers}</span>}
        {task.questions.length > 0 && <span data-wait="">◆ asks</span>}
        {task.overdue && <span data-high="">▲ overdue</span>}
        <Ago at={task.lastTransitionAt} />
      </span>
    </button>
  );
}
