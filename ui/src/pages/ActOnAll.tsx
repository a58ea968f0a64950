// One action on every task that matches the filter of the board: how many it is for, and how many it skips.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { get, post, withQuery } from "../api/client";
import type { TaskPage, TaskSummary } from "../api/types";
import { BatchDialog } from "../parts/Batch";
import { Button, Field } from "../parts/controls";
import { statusName } from "../parts/marks";
import { Failed, Loading } from "../parts/states";
import { taskPath } from "../task/act";
import { MOVES } from "../task/TaskActions";

interface Action {
  name: string;
  isFor: (task: TaskSummary) => boolean;
  send: (task: TaskSummary, form: FormData) => [action: string, body: unknown];
}

const moveTo = (to: string, name: string, from?: readonly string[]): Action => ({
  name,
  isFor: (task) => (from ?? Object.keys(MOVES)).includes(task.status) && (MOVES[task.status]?.includes(to) ?? false),
  send: (_, form) => ["move", { to, reason: String(form.get("reason") ?? "").trim() }],
});

const ACTIONS: readonly Action[] = [
  { name: "Try again or unblock", isFor: (task) => ["blocked", "deadletter"].includes(task.status), send: () => ["retry", {}] },
  { name: "Approve", isFor: (task) => task.status === "review", send: () => ["approve", {}] },
  moveTo("ready", "Make ready", ["backlog"]),
  moveTo("backlog", "Put back into the backlog"),
  { ...moveTo("ready", "Take back from their agents", ["in-progress"]) },
  {
    name: "Assign",
    isFor: (task) => ["backlog", "ready", "blocked", "deadletter"].includes(task.status),
    send: (_, form) => ["assign", { to: String(form.get("to") ?? "").trim() }],
  },
  moveTo("cancelled", "Cancel"),
];

const PAGE = 1_000;
const MAX_TASKS = 10_000;

async function readAll(filter: Record<string, string>, signal: AbortSignal): Promise<TaskSummary[]> {
  const tasks: TaskSummary[] = [];
  let cursor: number | null = null;
  do {
    const page: TaskPage = await get<TaskPage>(withQuery("/v1/tasks", { ...filter, limit: PAGE, cursor }), signal);
    tasks.push(...page.tasks);
    cursor = page.next;
  } while (cursor !== null && tasks.length < MAX_TASKS);
  return tasks;
}

interface ActOnAllProps {
  assignee: string;
  words: string;
  columns: readonly string[];
  /** Tasks that were chosen one by one; none: all that match. */
  picked: ReadonlySet<string>;
  /** What was refused stays chosen. */
  onDone: (id: string) => void;
}

export function ActOnAll({ assignee, words, columns, picked, onDone }: ActOnAllProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>{picked.size ? `Act on ${picked.size} chosen…` : "Act on all…"}</Button>
      {isOpen && <ActOnAllDialog filter={{ assignee, words }} columns={columns} picked={picked} onDone={onDone} onClose={() => setOpen(false)} />}
    </>
  );
}

interface DialogProps extends Pick<ActOnAllProps, "columns" | "picked" | "onDone"> {
  filter: Record<string, string>;
  onClose: () => void;
}

function ActOnAllDialog({ filter, columns, picked: given, onDone, onClose }: DialogProps) {
  const [picked] = useState(given);
  const [status, setStatus] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = useQuery({
    // Not among the tasks that the stream refreshes: what one confirms does not change under the hand.
    queryKey: ["matching", filter, status, [...picked]],
    queryFn: async ({ signal }) => {
      if (!picked.size) return readAll({ ...filter, status }, signal);
      // As they are now: they may have moved since they were chosen.
      const chosen = await Promise.all([...picked].map((id) => get<TaskSummary>(`/v1/tasks/${encodeURIComponent(id)}`, signal)));
      return chosen.filter((task) => !status || task.status === status);
    },
    staleTime: 0,
    gcTime: 0,
  });
  const tasks = found.data ?? [];
  const action = ACTIONS[chosen]!;
  const eligible = new Map(tasks.filter(action.isFor).map((task) => [task.id, task]));
  const skipped = tasks.length - eligible.size;
  const limits = [filter.assignee && `of ${filter.assignee}`, filter.words && `with “${filter.words}”`].filter(Boolean).join(" ");
  return (
    <BatchDialog
      title={picked.size ? `Act on ${picked.size} chosen` : `Act on all ${limits || "tasks"}`}
      confirm={`${action.name}: ${eligible.size.toLocaleString()}`}
      names={[...eligible.keys()]}
      run={async (id, form) => {
        const [path, body] = action.send(eligible.get(id)!, form);
        await post(taskPath(id, path), body);
        onDone(id);
      }}
      onClose={onClose}
    >
      <Field label="In the status">
        <select value={status} onChange={(event) => setStatus(event.target.value)}>
          <option value="">Any</option>
          {columns.map((one) => (
            <option key={one} value={one}>
              {statusName(one)}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Action">
        <select value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
          {ACTIONS.map((one, index) => (
            <option key={one.name} value={index}>
              {one.name}
            </option>
          ))}
        </select>
      </Field>
      {action.name === "Assign" && (
        <Field label="To" hint="Only this agent may take them then; empty: anyone may.">
          <input name="to" autoComplete="off" spellCheck={false} />
        </Field>
      )}
      {action.name === "Cancel" && (
        <Field label="Reason">
          <input name="reason" maxLength={4096} dir="auto" />
        </Field>
      )}
      {found.error && <Failed error={found.error} />}
      {found.isPending && <Loading rows={1} />}
      {found.data && (
        <p role="status">
          {tasks.length.toLocaleString()} match{tasks.length >= MAX_TASKS && " (no more are taken at once)"}: {eligible.size.toLocaleString()} eligible, {skipped.toLocaleString()} skipped
        </p>
      )}
    </BatchDialog>
  );
}
