// The buttons of a task: those that its status allows a person.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { agentsQuery } from "../api/queries";
import type { TaskSummary } from "../api/types";
import { ActionButton, Button, Dialog, Field } from "../parts/controls";
import { statusName } from "../parts/marks";
import { useSession } from "../session";
import { useKeys } from "../shell/keys";
import { taskPath, useAct } from "./act";
import styles from "./task.module.css";

type Asked = "send-back" | "assign" | "block" | "note" | "move" | "edit";

/** Status -> the statuses to which a person may move a task. */
export const MOVES: Record<string, readonly string[]> = {
  backlog: ["ready", "blocked", "cancelled"],
  ready: ["backlog", "blocked", "deadletter", "cancelled"],
  "in-progress": ["ready", "review", "blocked", "deadletter", "cancelled"],
  blocked: ["ready", "review", "deadletter", "cancelled"],
  review: ["done", "ready", "blocked", "cancelled"],
  deadletter: ["ready"],
  done: [],
  cancelled: [],
};

export function TaskActions({ task, withKeys = false }: { task: TaskSummary; withKeys?: boolean }) {
  const session = useSession();
  const act = useAct();
  const [asked, setAsked] = useState<Asked | null>(null);
  const may = session.may.write;
  useKeys(withKeys && may ? { m: () => MOVES[task.status]?.length && setAsked("move"), a: () => setAsked("assign") } : {});
  if (!may) {
    return <p className={styles.mayNot}>As {session.role} you may look, and not change tasks.</p>;
  }
  const run = (action: string, body: unknown = {}) => () => act(taskPath(task.id, action), body);
  const isOver = task.status === "done" || task.status === "cancelled";
  return (
    <div className={styles.actions} role="group" aria-label="Actions">
      {task.status === "backlog" && (
        <ActionButton kind="primary" run={run("move", { to: "ready" })}>
          Make ready
        </ActionButton>
      )}
      {task.status === "review" && (
        <>
          <ActionButton kind="primary" run={run("approve")}>
            Approve
          </ActionButton>
          <Button onClick={() => setAsked("send-back")}>Send back…</Button>
        </>
      )}
      {(task.status === "blocked" || task.status === "deadletter") && (
        <ActionButton kind={task.questions.length ? "plain" : "primary"} run={run("retry")}>
          {task.status === "blocked" ? "Unblock" : "Try again"}
        </ActionButton>
      )}
      {task.status === "in-progress" && <ActionButton run={run("move", { to: "ready", reason: "taken back" })}>Take back</ActionButton>}
      {isOver && <ActionButton run={run("reopen")}>Reopen</ActionButton>}
      {!isOver && <Button onClick={() => setAsked("assign")}>Assign…</Button>}
      {MOVES[task.status]?.length ? <Button onClick={() => setAsked("move")}>Move…</Button> : null}
      {!isOver && <Button onClick={() => setAsked("edit")}>Edit…</Button>}
      <Button onClick={() => setAsked("note")}>Note…</Button>
      {asked && <ActionDialog task={task} asked={asked} onClose={() => setAsked(null)} />}
    </div>
  );
}

function ActionDialog({ task, asked, onClose }: { task: TaskSummary; asked: Asked; onClose: () => void }) {
  const act = useAct();
  const send = (action: string, read: (form: FormData) => unknown) => (form: FormData) => act(taskPath(task.id, action), read(form));
  const text = (form: FormData, name: string) => String(form.get(name) ?? "").trim();
  switch (asked) {
    case "send-back":
      return (
        <Dialog title="Send the work back" confirm="Send back" run={send("send-back", (form) => ({ reason: text(form, "reason") }))} onClose={onClose}>
          <Field label="What is wrong with it?" hint="The agent reads this before it works on the task again.">
            <textarea name="reason" required maxLength={4096} autoFocus dir="auto" />
          </Field>
        </Dialog>
      );
    case "note":
      return (
        <Dialog title="Add a note" confirm="Add" run={send("note", (form) => ({ text: text(form, "text") }))} onClose={onClose}>
          <Field label="A line for the work log">
            <textarea name="text" required maxLength={16384} autoFocus dir="auto" />
          </Field>
        </Dialog>
      );
    case "block":
    case "move":
      return <MoveDialog task={task} onClose={onClose} />;
    case "edit":
      return (
        <Dialog
          title="Edit the task"
          confirm="Save"
          run={send("edit", (form) => ({ title: text(form, "title"), priority: text(form, "priority") }))}
          onClose={onClose}
        >
          <Field label="Title">
            <input name="title" defaultValue={task.title} required maxLength={300} autoFocus dir="auto" />
          </Field>
          <Field label="Priority">
            <select name="priority" defaultValue={task.priority}>
              {["critical", "high", "normal", "low"].map((priority) => (
                <option key={priority}>{priority}</option>
              ))}
            </select>
          </Field>
        </Dialog>
      );
    case "assign":
      return <AssignDialog task={task} onClose={onClose} />;
  }
}

export function MoveDialog({ task, to, refusal, onClose }: { task: TaskSummary; to?: string; refusal?: string; onClose: () => void }) {
  const act = useAct();
  const targets = MOVES[task.status] ?? [];
  const move = (form: FormData) => act(taskPath(task.id, "move"), { to: form.get("to"), reason: String(form.get("reason") ?? "").trim() });
  return (
    <Dialog title="Move the task" confirm="Move" run={move} onClose={onClose}>
      {refusal && <p>{refusal}</p>}
      <Field label="To">
        <select name="to" defaultValue={to ?? targets[0]} autoFocus>
          {targets.map((status) => (
            <option key={status} value={status}>
              {statusName(status)}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Reason" hint="It stands in the history of the task.">
        <input name="reason" maxLength={4096} dir="auto" />
      </Field>
    </Dialog>
  );
}

export function AssignDialog({ task, onClose }: { task: Pick<TaskSummary, "id" | "status" | "lease" | "reservedFor">; onClose: () => void }) {
  const act = useAct();
  const known = useQuery(agentsQuery).data?.agents;
  const isHeld = task.status === "in-progress";
  const [to, setTo] = useState(isHeld ? "" : (task.reservedFor ?? ""));
  const isUnknown = to.trim() !== "" && known !== undefined && !known.some((agent) => agent.name === to.trim());
  const assign = (form: FormData) =>
    act(taskPath(task.id, "assign"), { to: String(form.get("to") ?? "").trim(), take: isHeld, reason: String(form.get("reason") ?? "").trim() });
  return (
    <Dialog title={isHeld ? "Take the task away and assign it" : "Assign the task"} confirm="Assign" kind={isHeld ? "danger" : "primary"} run={assign} onClose={onClose}>
      {isHeld && <p>The attempt of {task.lease?.agent ?? "its holder"} ends.</p>}
      <Field label="To" hint={isUnknown ? "▲ No agent of this name is known to the hub: nobody can take it until one is." : "Only this agent may take it then; empty: anyone may."}>
        <input name="to" list="known-agents" value={to} onChange={(event) => setTo(event.target.value)} autoComplete="off" spellCheck={false} autoFocus />
      </Field>
      <datalist id="known-agents">
        {known?.map((agent) => (
          <option key={agent.name} value={agent.name} />
        ))}
      </datalist>
      <Field label="Reason">
        <input name="reason" maxLength={4096} dir="auto" />
      </Field>
    </Dialog>
  );
}
