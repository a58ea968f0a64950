// The card beside the name of a task or an agent, while a mouse rests on it or it has the focus.
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";

import { statusQuery, taskQuery } from "../api/queries";
import styles from "./HoverCard.module.css";
import { attemptOf, LeaseRing, Mark, TaskStatus } from "./marks";
import { Ago } from "./time";

const PAUSE_MS = 350;
const WIDTH = 300;
const MARGIN = 8;

export function HoverCard({ card, children }: { card: ReactNode; children: ReactNode }) {
  const anchor = useRef<HTMLSpanElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [place, setPlace] = useState<{ left: number; top?: number; bottom?: number } | null>(null);
  const close = () => {
    clearTimeout(timer.current);
    setPlace(null);
  };
  const open = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const box = anchor.current?.getBoundingClientRect();
      if (!box) return;
      const left = Math.max(MARGIN, Math.min(box.left, innerWidth - WIDTH - MARGIN));
      setPlace(box.bottom > innerHeight * 0.7 ? { left, bottom: innerHeight - box.top + 4 } : { left, top: box.bottom + 4 });
    }, PAUSE_MS);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <span
      ref={anchor}
      onPointerEnter={(event) => event.pointerType === "mouse" && open()}
      onPointerLeave={close}
      onFocus={(event) => event.target.matches(":focus-visible") && open()}
      onBlur={close}
      onClick={close}
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      {children}
      {place &&
        createPortal(
          <div role="tooltip" className={styles.card} style={{ ...place, width: WIDTH }}>
            {card}
          </div>,
          document.body,
        )}
    </span>
  );
}

export function TaskCard({ id }: { id: string }) {
  const { data: task, error } = useQuery(taskQuery(id));
  if (!task) return <small>{error ? error.message : id}</small>;
  const reason = task.questions[0]?.text ?? task.obstacle ?? task.waitReason;
  return (
    <>
      <p className={styles.top}>
        <TaskStatus status={task.status} />
        <code>{task.id}</code>
      </p>
      <strong dir="auto">{task.title}</strong>
      <p className={styles.top}>
        {task.assignee && <bdi>{task.assignee}</bdi>}
        {task.lease && <LeaseRing until={task.lease.expiresAt} isValid={task.lease.valid} ms={task.lease.ttlMs} />}
        {task.attempt > 0 && <span>{attemptOf(task)}</span>}
        <span>
          since <Ago at={task.lastTransitionAt} />
        </span>
      </p>
      {reason && (
        <p className={styles.reason} dir="auto">
          {reason}
        </p>
      )}
    </>
  );
}

export function AgentCard({ name }: { name: string }) {
  const status = useQuery(statusQuery);
  const agent = status.data?.agents.find((one) => one.name === name);
  return (
    <>
      <p className={styles.top}>
        <strong>
          <bdi>{name}</bdi>
        </strong>
        {agent && <small>{agent.role}</small>}
      </p>
      {!agent && <small>has not spoken lately</small>}
      {agent?.paused && (
        <Mark shape="◆" tone="wait">
          paused: {agent.paused.reason}
        </Mark>
      )}
      {agent && (
        <p>
          {agent.holds.length ? `works on ${agent.holds.join(", ")}` : "works on nothing"}
          {agent.lastSeen && (
            <>
              , last seen <Ago at={agent.lastSeen} />
            </>
          )}
        </p>
      )}
    </>
  );
}
