// What a state looks like: a shape, a word and a colour, the same everywhere.
import type { TaskSummary } from "../api/types";
import { hubNow, roughly, useTick } from "./time";
import styles from "./marks.module.css";

export type Tone = "run" | "wait" | "bad" | "good" | "hand" | "idle";

const TASK_MARKS: Record<string, [string, Tone, string]> = {
  backlog: ["○", "idle", "Backlog"],
  ready: ["○", "idle", "Ready"],
  "in-progress": ["●", "run", "In progress"],
  review: ["◆", "wait", "Review"],
  blocked: ["■", "bad", "Blocked"],
  deadletter: ["▲", "bad", "Deadletter"],
  done: ["✓", "good", "Done"],
  cancelled: ["–", "idle", "Cancelled"],
};

const HANDOFF_MARKS: Record<string, [string, Tone, string]> = {
  draft: ["○", "idle", "Draft"],
  proposed: ["⇄", "hand", "Proposed"],
  validating: ["⇄", "hand", "Validating"],
  accepted: ["⇄", "hand", "Accepted"],
  activated: ["●", "run", "Activated"],
  rejected: ["▲", "bad", "Rejected"],
  completed: ["✓", "good", "Completed"],
  closed: ["–", "idle", "Closed"],
};

export const statusName = (status: string): string => TASK_MARKS[status]?.[2] ?? status;

export function Mark({ shape, tone, children }: { shape: string; tone: Tone; children?: React.ReactNode }) {
  return (
    <span className={styles.mark} data-tone={tone}>
      <span aria-hidden="true" className={styles.shape}>
        {shape}
      </span>
      {children}
    </span>
  );
}

export function TaskStatus({ status }: { status: string }) {
  const [shape, tone, word] = TASK_MARKS[status] ?? ["○", "idle", status];
  return (
    <Mark shape={shape} tone={tone}>
      {word}
    </Mark>
  );
}

export function HandoffStatus({ status }: { status: string }) {
  const [shape, tone, word] = HANDOFF_MARKS[status] ?? ["○", "idle", status];
  return (
    <Mark shape={shape} tone={tone}>
      {word}
    </Mark>
  );
}

/** A lease that runs out: a ring, and the time that is left. */
export function LeaseRing({ until, isValid, ms }: { until: string; isValid: boolean; ms: number }) {
  useTick(1_000);
  const left = Math.max(0, Date.parse(until) - hubNow());
  const part = Math.min(1, left / ms);
  const lost = !isValid || left === 0;
  const words = lost ? "lease over" : `lease ${roughly(left)}`;
  return (
    <span className={styles.lease} data-tone={lost ? "bad" : part < 0.2 ? "wait" : "run"} title={`The lease runs out at ${new Date(until).toLocaleTimeString()}.`}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <circle cx="8" cy="8" r="6" className={styles.track} />
        <circle cx="8" cy="8" r="6" className={styles.arc} pathLength="100" strokeDasharray={`${part * 100} 100`} />
      </svg>
      {words}
    </span>
  );
}

/** The dialect of a message: two letters, never a colour. */
export function Dialect({ name }: { name: string }) {
  const marks: Record<string, string> = { aof: "AO", agentmail: "AM", saop: "SA", acp: "AC", ccos: "CC" };
  return (
    <span className={styles.dialect} title={`said in ${name}`}>
      {marks[name] ?? name.slice(0, 2).toUpperCase()}
    </span>
  );
}

/** Which attempt it is; so many that fail in a row are allowed, and a person's retry begins a new row. */
export const attemptOf = (task: TaskSummary): string =>
  `attempt ${task.attempt}${task.failures && task.maxAttempts ? `, ${task.failures} of ${task.maxAttempts} failures in a row` : ""}`;
