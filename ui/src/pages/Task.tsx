// A task: where it stands, what one can do, and one story of everything that happened to it.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "wouter";

import { diffQuery, historyQuery, pastTaskQuery, runsQuery, statusQuery, taskQuery } from "../api/queries";
import type { StoryItemResource, TaskDetail } from "../api/types";
import { Button, wordsOf } from "../parts/controls";
import { statusName, TaskStatus } from "../parts/marks";
import { Empty, Failed, Loading, ShowsPresent } from "../parts/states";
import { formatClock, Moment } from "../parts/time";
import { useKeys } from "../shell/keys";
import { Artifacts } from "../task/Artifacts";
import { GROUPS, type Group, groupOf, storyQuery } from "../task/story";
import { StoryList } from "../task/StoryList";
import { TaskActions } from "../task/TaskActions";
import { TaskFacts, TaskNow } from "../task/TaskPeek";
import { type Span, Timeline } from "../task/Timeline";
import { InThePast, PastBar, pastOf } from "./Past";
import past from "./Past.module.css";
import styles from "./Task.module.css";

const TABS = { story: "Story", diff: "Diff", terminal: "Terminal", artifacts: "Artifacts", log: "Work log", entries: "Entries" } as const;

export function TaskPage({ id }: { id: string }) {
  const [parameters] = useSearchParams();
  const at = pastOf(parameters);
  useKeys({ Escape: () => history.back() });
  if (at === null) return <TaskView id={id} at={null} />;
  return (
    <InThePast>
      <TaskView id={id} at={at} />
    </InThePast>
  );
}

/** The task now, or as it was at a position of the ledger. */
function TaskView({ id, at }: { id: string; at: number | null }) {
  const now = useQuery({ ...taskQuery(id), enabled: at === null });
  const then = useQuery({ ...pastTaskQuery(id, at ?? 0), enabled: at !== null, placeholderData: keepPreviousData });
  const found = at === null ? now : then;
  const status = useQuery(statusQuery);
  const [parameters, setParameters] = useSearchParams();
  const tab = parameters.get("tab") ?? "story";
  const change = (name: string, value: string | null) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old);
        if (value === null) next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  const head = status.data?.position;
  const bar = at !== null && (
    <div className={styles.past}>
      <PastBar at={at} />
    </div>
  );
  if (found.data === undefined) {
    return (
      <>
        {bar}
        {found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : <Loading rows={6} />}
      </>
    );
  }
  const task = found.data;
  return (
    <article className={`${styles.page} ${at === null ? "" : past.past}`}>
      <header className={styles.head}>
        <p className={styles.crumbs}>
          <Link href={at === null ? "/board" : `/board?at=${at}`}>Board</Link>
          <code>{task.id}</code>
        </p>
        <h1 dir="auto">{task.title}</h1>
        <StatePath task={task} at={at} />
        {bar || (
          <div className={styles.doings}>
            <TaskActions task={task} withKeys />
            {head !== undefined && (
              <Button kind="quiet" onClick={() => change("at", String(head))}>
                The past
              </Button>
            )}
          </div>
        )}
      </header>
      <aside className={styles.side} aria-label="About the task">
        <TaskNow task={task} />
        <TaskFacts task={task} />
        {task.body && (
          <section>
            <h2>Task</h2>
            <p className={styles.body} dir="auto">
              {task.body}
            </p>
          </section>
        )}
      </aside>
      <section className={styles.main}>
        <div className={styles.tabs} role="tablist" aria-label="Views">
          {Object.entries(TABS).map(([key, name]) => (
            <button key={key} type="button" role="tab" aria-selected={tab === key} onClick={() => change("tab", key === "story" ? null : key)}>
              {name}
            </button>
          ))}
        </div>
        <TabView tab={tab} id={task.id} at={at} />
      </section>
    </article>
  );
}

function TabView({ tab, id, at }: { tab: string; id: string; at: number | null }) {
  const isNow = at !== null && ["diff", "artifacts"].includes(tab);
  return (
    <>
      {isNow && <ShowsPresent />}
      {tab === "diff" ? (
        <Diff id={id} />
      ) : tab === "terminal" ? (
        <Terminal id={id} at={at} />
      ) : tab === "artifacts" ? (
        <Artifacts id={id} />
      ) : tab === "log" ? (
        <WorkLog id={id} at={at} />
      ) : tab === "entries" ? (
        <Entries id={id} at={at} />
      ) : (
        <StoryView id={id} at={at} />
      )}
    </>
  );
}

/** The story up to a position. */
function useStory(id: string, at: number | null) {
  const story = useQuery(storyQuery(id, useQueryClient()));
  const all = story.data?.items;
  const items = useMemo(() => all && (at === null ? all : all.filter((item) => item.position <= at)), [all, at]);
  return { story, items };
}

/** The statuses that the task has gone through, and where it is. */
function StatePath({ task, at }: { task: TaskDetail; at: number | null }) {
  const { items } = useStory(task.id, at);
  const path: { status: string; at: string }[] = [];
  for (const item of items ?? []) {
    if (item.status && item.status !== path.at(-1)?.status) path.push({ status: item.status, at: item.at });
  }
  const shown = path.slice(-7);
  const next = task.status === "in-progress" ? (task.reviewRequired ? ["review", "done"] : ["done"]) : task.status === "review" ? ["done"] : task.status === "ready" ? ["in-progress"] : [];
  return (
    <ol className={styles.path} aria-label="The way of the task">
      {path.length > shown.length && <li>…</li>}
      {(shown.length ? shown : [{ status: task.status, at: task.lastTransitionAt }]).map((step, index) => (
        <li key={`${step.at}${step.status}`} data-here={index === shown.length - 1 || !shown.length || undefined} title={formatClock(step.at)} aria-current={index === shown.length - 1 ? "step" : undefined}>
          <TaskStatus status={step.status} />
        </li>
      ))}
      {next.map((status) => (
        <li key={status} data-next="">
          {statusName(status)}
        </li>
      ))}
    </ol>
  );
}

function StoryView({ id, at }: { id: string; at: number | null }) {
  const { story, items: told } = useStory(id, at);
  const runs = useQuery(runsQuery(id));
  const [hidden, setHidden] = useState<ReadonlySet<Group>>(new Set());
  const [span, setSpan] = useState<Span | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const items = useMemo(() => told ?? [], [told]);
  const shown = useMemo(() => items.filter((item) => !hidden.has(groupOf(item)) && within(item, span)), [items, hidden, span]);
  const counts = useMemo(() => count(items), [items]);
  if (story.data === undefined) {
    return story.error ? <Failed error={story.error} retry={() => void story.refetch()} /> : <Loading rows={8} />;
  }
  const groups = (Object.keys(GROUPS) as Group[]).filter((group) => counts[group]);
  const toggle = (group: Group) => setHidden((old) => (old.has(group) ? new Set([...old].filter((one) => one !== group)) : new Set([...old, group])));
  const isDecisionsOnly = groups.every((group) => hidden.has(group) === (group !== "decisions"));
  return (
    <>
      <Timeline items={items} runs={at === null ? (runs.data?.runs ?? []) : []} span={span} onSpan={setSpan} onSelect={setSelected} />
      <div className={styles.chips} role="group" aria-label="What is shown">
        {groups.map((group) => (
          <button key={group} type="button" aria-pressed={!hidden.has(group)} onClick={() => toggle(group)}>
            {GROUPS[group]} <small>{counts[group]}</small>
          </button>
        ))}
        {groups.length > 1 && (
          <Button kind="quiet" onClick={() => setHidden(isDecisionsOnly ? new Set() : new Set(groups.filter((group) => group !== "decisions")))}>
            {isDecisionsOnly ? "Everything" : "Decisions only"}
          </Button>
        )}
        {span && (
          <Button kind="quiet" onClick={() => setSpan(null)}>
            {formatClock(span.from)} to {formatClock(span.to)} ×
          </Button>
        )}
      </div>
      {shown.length ? <StoryList items={shown} selected={selected} /> : <Empty>Nothing of this kind has happened.</Empty>}
    </>
  );
}

const within = (item: StoryItemResource, span: Span | null): boolean => {
  const at = Date.parse(item.at);
  return !span || (at >= span.from && at <= span.to);
};

function count(items: readonly StoryItemResource[]): Partial<Record<Group, number>> {
  const counts: Partial<Record<Group, number>> = {};
  for (const item of items) counts[groupOf(item)] = (counts[groupOf(item)] ?? 0) + 1;
  return counts;
}

/** What the work on the task has changed in its repository. */
function Diff({ id }: { id: string }) {
  const diff = useQuery(diffQuery(id));
  if (diff.data === undefined) {
    return diff.error ? <Empty>There is nothing to compare: {wordsOf(diff.error)}.</Empty> : <Loading rows={8} />;
  }
  const { branch, into, patch, uncommitted, uncommittedPatch, isComplete } = diff.data;
  return (
    <div className={styles.diff} tabIndex={0} role="group" aria-label="Diff">
      <p>
        <code>{branch}</code> beside <code>{into}</code>
        {!isComplete && " (longer than is shown)"}
      </p>
      <Patch text={patch} none="Nothing is committed on its branch." />
      {uncommitted.length > 0 && (
        <>
          <h2>Not committed: {uncommitted.join(", ")}</h2>
          <Patch text={uncommittedPatch} none="These files are new." />
        </>
      )}
    </div>
  );
}

function Patch({ text, none }: { text: string; none: string }) {
  if (!text.trim()) return <p>{none}</p>;
  return (
    <pre>
      {text.split("\n").map((line, index) => (
        <span key={index} data-line={kindOf(line)}>
          {`${line}\n`}
        </span>
      ))}
    </pre>
  );
}

function kindOf(line: string): string {
  if (/^(diff|index|\+\+\+|---|new|deleted|rename|similarity) /.test(line) || line.startsWith("diff ")) return "file";
  if (line.startsWith("@@")) return "place";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}

const MAX_LINES = 10_000;

function Terminal({ id, at }: { id: string; at: number | null }) {
  const { story, items } = useStory(id, at);
  if (items === undefined) {
    return story.error ? <Failed error={story.error} retry={() => void story.refetch()} /> : <Loading rows={8} />;
  }
  const lines = items.filter((item) => item.kind === "terminal");
  if (!lines.length) return <Empty>No terminal of an attempt was recorded; an agent that sends SANDBOX_PULSE events, or is traced, has one.</Empty>;
  return (
    <pre className={styles.terminal} tabIndex={0}>
      {lines.slice(-MAX_LINES).map((line) => `${line.text || line.title}\n`)}
    </pre>
  );
}

/** Events whose words are the work log, as in the file of a task. */
const LOGGED = ["task.noted", "task.progressed", "task.reported", "question.asked", "question.answered"];

function WorkLog({ id, at }: { id: string; at: number | null }) {
  const { story, items } = useStory(id, at);
  if (items === undefined) {
    return story.error ? <Failed error={story.error} retry={() => void story.refetch()} /> : <Loading rows={8} />;
  }
  const lines = items.filter((item) => LOGGED.includes(item.type));
  if (!lines.length) return <Empty>Nobody has noted, reported or asked anything yet.</Empty>;
  return <StoryList items={lines} selected={null} name="Work log" />;
}

function Entries({ id, at }: { id: string; at: number | null }) {
  const history = useQuery(historyQuery(id));
  if (history.data === undefined) {
    return history.error ? <Failed error={history.error} retry={() => void history.refetch()} /> : <Loading rows={8} />;
  }
  return (
    <ol className={styles.entries} tabIndex={0} aria-label="Entries of the ledger">
      {history.data.events.filter((entry) => at === null || entry.position <= at).map((entry) => (
        <li key={entry.position}>
          <details>
            <summary>
              <Link href={`/ledger?at=${entry.position}`}>#{entry.position}</Link> <code>{entry.type}</code> <bdi>{entry.actor}</bdi> <Moment at={entry.at} />
            </summary>
            <pre>{JSON.stringify(entry.body, null, 2)}</pre>
            <p>
              hash <code>{entry.hash}</code>
            </p>
          </details>
        </li>
      ))}
    </ol>
  );
}
