// Start: everything that waits for a person, the most urgent first, with the buttons that deal with it.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";

import { statusQuery } from "../api/queries";
import type { AttentionResource, StatusResource } from "../api/types";
import { GateButtons } from "../handoff/GateButtons";
import { post } from "../api/client";
import { BatchDialog } from "../parts/Batch";
import { ActionButton, Button } from "../parts/controls";
import { AgentLink, TaskLink } from "../parts/links";
import { Mark, type Tone } from "../parts/marks";
import { Empty, Failed, Loading } from "../parts/states";
import { Ago, hubNow, roughly, Sentence } from "../parts/time";
import { useSession } from "../session";
import { useKeys } from "../shell/keys";
import { taskPath, useAct } from "../task/act";
import { AssignDialog } from "../task/TaskActions";
import { AnswerForm, HelpForm, TaskPeek } from "../task/TaskPeek";
import { HandoffPeek } from "../handoff/HandoffPeek";
import styles from "./NeedsYou.module.css";

/** Kind -> its mark, its word, and what happens if nobody does anything. */
const KINDS: Record<string, [string, Tone, string, string]> = {
  question: ["◆", "wait", "Question", "The task waits until there is an answer."],
  help: ["◆", "wait", "Help", "Nobody else can answer this in time."],
  gate: ["⇄", "wait", "Approval", "The handoff cannot go on without a person."],
  review: ["◆", "wait", "Review", "The work is done only when somebody has approved it."],
  paused: ["○", "idle", "Paused agent", "Its tasks wait."],
  no_progress: ["◆", "wait", "No progress", "The attempt ends when its time is over."],
  deadletter: ["▲", "bad", "Given up", "Nobody works on it any more."],
  unknown_assignee: ["■", "bad", "Unknown agent", "Nobody can take the task."],
  escalation: ["▲", "bad", "Late", "It was escalated, and still waits."],
};

export function NeedsYou() {
  const status = useQuery(statusQuery);
  const [, navigate] = useLocation();
  const [chosen, setChosen] = useState<string | null>(null);
  const items = status.data?.attention ?? [];
  const index = items.findIndex((item) => keyOf(item) === chosen);
  const selected = index < 0 ? undefined : items[index];

  const select = (next: number) => {
    const item = items[Math.max(0, Math.min(items.length - 1, next))];
    if (item) setChosen(keyOf(item));
  };
  useKeys({
    j: () => select(index + 1),
    k: () => select(index - 1),
    Enter: () => selected && navigate(pageOf(selected)),
    Escape: () => setChosen(null),
  });

  if (status.data === undefined) {
    return status.error ? <Failed error={status.error} retry={() => void status.refetch()} /> : <Loading rows={6} />;
  }
  const left = Object.values(status.data.attentionCounts).reduce((sum, one) => sum + one, 0) - items.length;
  return (
    <div className={styles.page} data-split={selected ? "" : undefined}>
      <section className={styles.queue} aria-labelledby="needs-you">
        <header className={styles.head}>
          <h1 id="needs-you">Needs you</h1>
          <p>{summary(status.data)}</p>
        </header>
        <Batches items={items} selected={selected} />
        {items.length === 0 ? (
          <Calm status={status.data} />
        ) : (
          <ul className={styles.list}>
            {items.map((item) => (
              <Item key={keyOf(item)} item={item} isSelected={keyOf(item) === chosen} onSelect={() => setChosen(keyOf(item))} />
            ))}
          </ul>
        )}
        {left > 0 && <p className={styles.more}>{left} more of these kinds are not listed; they follow as these are dealt with.</p>}
      </section>
      {selected && (
        <aside className={styles.panel} aria-label="Evidence">
          <Evidence item={selected} onClose={() => setChosen(null)} />
        </aside>
      )}
    </div>
  );
}

/** Kind -> what is done with all of it: the button, the action and its body. */
const FOR_ALL: Record<string, [string, string, unknown]> = {
  review: ["Approve", "approve", {}],
  deadletter: ["Try again", "retry", {}],
  no_progress: ["Take back", "move", { to: "ready", reason: "no progress" }],
};
const MAX_BATCHES = 3;

/** What one agent waits for several times is dealt with at once; first that of the selected line. */
function Batches({ items, selected }: { items: readonly AttentionResource[]; selected: AttentionResource | undefined }) {
  const session = useSession();
  const [chosen, setChosen] = useState<{ kind: string; agent: string; tasks: string[] } | null>(null);
  if (!session.may.write) return null;
  const groups = new Map<string, { kind: string; agent: string; tasks: string[] }>();
  for (const { kind, agent, task } of items) {
    if (!FOR_ALL[kind] || !task || !agent) continue;
    const key = `${kind}\0${agent}`;
    groups.set(key, { kind, agent, tasks: [...(groups.get(key)?.tasks ?? []), task] });
  }
  const isSelected = (one: { kind: string; agent: string }) => one.kind === selected?.kind && one.agent === selected.agent;
  const several = [...groups.values()].filter((one) => one.tasks.length > 1);
  several.sort((a, b) => Number(isSelected(b)) - Number(isSelected(a)) || b.tasks.length - a.tasks.length);
  const [name, action, body] = FOR_ALL[chosen?.kind ?? ""] ?? [];
  return (
    <>
      {several.length > 0 && (
        <div className={styles.batches} role="group" aria-label="All at once">
          {several.slice(0, MAX_BATCHES).map((one) => (
            <Button key={`${one.kind} ${one.agent}`} onClick={() => setChosen(one)}>
              {FOR_ALL[one.kind]![0]} all {one.tasks.length} of {one.agent}…
            </Button>
          ))}
        </div>
      )}
      {chosen && (
        <BatchDialog
          title={`${name} all ${chosen.tasks.length} of ${chosen.agent}`}
          confirm={`${name} all`}
          names={chosen.tasks}
          run={(task) => post(taskPath(task, action!), body)}
          onClose={() => setChosen(null)}
        />
      )}
    </>
  );
}

function summary(status: StatusResource): string {
  const working = status.working.length === 1 ? "1 task in progress" : `${status.working.length} tasks in progress`;
  const ready = status.claimable + status.reserved;
  return `${working}, ${ready} ready`;
}

function Calm({ status }: { status: StatusResource }) {
  const total = Object.values(status.counts).reduce((sum, one) => sum + one, 0);
  if (!total) return <Empty command='dragoman task create "First" --ready'>Nobody waits for you. There are no tasks yet:</Empty>;
  const agents = new Set(status.working.map((one) => one.agent)).size;
  const next = status.working.map((one) => one.leaseUntil).filter((until) => until !== null).sort()[0];
  const lease = next ? `; the next lease ends in ${roughly(Math.max(0, Date.parse(next) - hubNow()))}` : "";
  return (
    <Empty>
      Nobody waits for you. {agents === 1 ? "1 agent is" : `${agents} agents are`} at work{lease}.
    </Empty>
  );
}

const keyOf = (item: AttentionResource): string =>
  [item.kind, item.task, item.agent, item.question, item.mail, item.handoff].join("\0");

function pageOf(item: AttentionResource): string {
  if (item.task && !item.handoff) return `/tasks/${encodeURIComponent(item.task)}`;
  if (item.handoff) return `/handoffs/${encodeURIComponent(item.handoff)}`;
  if (item.mail) return `/inbox?letter=${encodeURIComponent(item.mail)}`;
  return `/agents/${encodeURIComponent(item.agent ?? "")}`;
}

function Item({ item, isSelected, onSelect }: { item: AttentionResource; isSelected: boolean; onSelect: () => void }) {
  const row = useRef<HTMLLIElement>(null);
  const [shape, tone, word, otherwise] = KINDS[item.kind] ?? ["◆", "wait", item.kind, ""];
  useEffect(() => {
    if (!isSelected) return;
    row.current?.scrollIntoView({ block: "nearest" });
    // From here Tab goes on to the controls of the line.
    if (!row.current?.contains(document.activeElement)) row.current?.focus();
  }, [isSelected]);
  return (
    <li ref={row} tabIndex={-1} className={styles.item} data-selected={isSelected || undefined}>
      <div className={styles.line}>
        <Mark shape={shape} tone={tone}>
          {word}
        </Mark>
        {item.agent && <AgentLink name={item.agent} />}
        {item.task && <TaskLink id={item.task} />}
        <span className={styles.since} title={otherwise}>
          waits <Ago at={item.since} />
        </span>
      </div>
      <button type="button" className={styles.text} aria-expanded={isSelected} onClick={onSelect} dir="auto">
        <Sentence text={item.text} />
      </button>
      <div className={styles.buttons}>
        <ItemButtons item={item} onShow={onSelect} />
      </div>
    </li>
  );
}

function ItemButtons({ item, onShow }: { item: AttentionResource; onShow: () => void }) {
  const session = useSession();
  const act = useAct();
  const [isAsked, setAsked] = useState(false);
  const { task } = item;
  if (!session.may.write) return null;
  switch (item.kind) {
    case "question":
      return task && <AnswerForm task={task} question={item.question} />;
    case "help":
      if (task && item.question) return <AnswerForm task={task} question={item.question} />;
      return (
        item.mail && (
          <>
            {item.agent && <HelpForm letter={item.mail} to={item.agent} />}
            <Link href={`/inbox?letter=${encodeURIComponent(item.mail)}`}>Read the letter</Link>
          </>
        )
      );
    case "gate":
      return item.handoff && <GateButtons handoff={item.handoff} />;
    case "review":
      return (
        task && (
          <>
            <ActionButton kind="primary" run={() => act(taskPath(task, "approve"))}>
              Approve
            </ActionButton>
            <Button onClick={onShow}>Look at it</Button>
          </>
        )
      );
    case "deadletter":
      return (
        task && (
          <>
            <ActionButton kind="primary" run={() => act(taskPath(task, "retry"))}>
              Try again
            </ActionButton>
            <Button onClick={onShow}>Look at it</Button>
          </>
        )
      );
    case "no_progress":
      return task && <ActionButton run={() => act(taskPath(task, "move"), { to: "ready", reason: "no progress" })}>Take back</ActionButton>;
    case "unknown_assignee":
      return (
        task && (
          <>
            <Button kind="primary" onClick={() => setAsked(true)}>
              Assign…
            </Button>
            {isAsked && <AssignDialog task={{ id: task, status: "ready", lease: null, reservedFor: null }} onClose={() => setAsked(false)} />}
          </>
        )
      );
    case "paused":
      return <ActionButton kind="primary" run={() => act(`/v1/agents/${encodeURIComponent(item.agent ?? "")}/resume`)}>Resume</ActionButton>;
    default:
      return <Button onClick={onShow}>Look at it</Button>;
  }
}

function Evidence({ item, onClose }: { item: AttentionResource; onClose: () => void }) {
  if (item.handoff) return <HandoffPeek id={item.handoff} onClose={onClose} />;
  if (item.task) return <TaskPeek id={item.task} onClose={onClose} />;
  return (
    <div className={styles.elsewhere}>
      <p dir="auto">
        <Sentence text={item.text} />
      </p>
      <Link href={pageOf(item)}>Open</Link>
    </div>
  );
}
