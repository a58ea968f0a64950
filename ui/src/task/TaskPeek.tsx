// A task in short: what it is, where it stands and why, and what one can do. In the panel and on its page.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";

import { taskQuery } from "../api/queries";
import type { QuestionResource, TaskDetail } from "../api/types";
import { Button, Refusal, wordsOf } from "../parts/controls";
import { AgentLink, TaskLink } from "../parts/links";
import { attemptOf, LeaseRing, TaskStatus } from "../parts/marks";
import { Failed, Loading } from "../parts/states";
import { Ago, Moment } from "../parts/time";
import { useSession } from "../session";
import { taskPath, useAct } from "./act";
import { TaskActions } from "./TaskActions";
import styles from "./task.module.css";

export function TaskPeek({ id, onClose }: { id: string; onClose?: () => void }) {
  const found = useQuery(taskQuery(id));
  if (found.data === undefined) {
    return found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  }
  const task = found.data;
  return (
    <article className={styles.peek} aria-label={task.title}>
      <header>
        <div className={styles.peekTop}>
          <TaskStatus status={task.status} />
          <code className={styles.id}>{task.id}</code>
          <Link className={styles.open} href={`/tasks/${encodeURIComponent(task.id)}`}>
            Open
          </Link>
          {onClose && (
            <Button kind="quiet" onClick={onClose} aria-label="close the panel">
              ×
            </Button>
          )}
        </div>
        <h2 dir="auto">{task.title}</h2>
      </header>
      <TaskActions task={task} withKeys />
      <TaskNow task={task} />
      <TaskFacts task={task} />
      {task.body && (
        <section>
          <h3>Task</h3>
          <p className={styles.prose} dir="auto">
            {task.body}
          </p>
        </section>
      )}
    </article>
  );
}

/** What is the matter now: questions, the obstacle, the report of the last attempt, the review's reason. */
export function TaskNow({ task }: { task: TaskDetail }) {
  const blocking = task.questions.some((question) => question.kind === "blocked");
  return (
    <>
      {task.questions.map((question) => (
        <Question key={question.id} task={task.id} question={question} />
      ))}
      {task.status === "ready" && task.waitReason && (
        <section className={styles.matter}>
          <h3>It waits</h3>
          <p className={styles.prose} dir="auto">
            {task.waitReason}
          </p>
        </section>
      )}
      {task.status === "blocked" && !blocking && (task.obstacle || task.waitsFor.length > 0) && (
        <section className={styles.matter} data-tone="bad">
          <h3>■ Blocked</h3>
          {task.obstacle && (
            <p className={styles.prose} dir="auto">
              {task.obstacle}
            </p>
          )}
        </section>
      )}
      {task.report && (
        <section className={styles.matter} data-tone={task.status === "deadletter" ? "bad" : task.status === "review" ? "wait" : "idle"}>
          <h3>
            Report of attempt {task.report.attempt}: {task.report.outcome} <small><AgentLink name={task.report.agent} /> · <Ago at={task.report.at} /></small>
          </h3>
          {task.report.notes && (
            <p className={styles.prose} dir="auto">
              {task.report.notes}
            </p>
          )}
        </section>
      )}
      {task.feedback.map((feedback) => (
        <section key={feedback.at} className={styles.matter} data-tone="wait">
          <h3>
            Sent back <small><Ago at={feedback.at} /></small>
          </h3>
          <p className={styles.prose} dir="auto">
            {feedback.text}
          </p>
        </section>
      ))}
      {task.answers.map((question) => (
        <section key={question.id} className={styles.matter}>
          <h3 dir="auto">{question.text}</h3>
          <p className={styles.prose} dir="auto">
            {question.answer}
          </p>
          <small>answered by {question.answeredBy}</small>
        </section>
      ))}
    </>
  );
}

export function Question({ task, question }: { task: string; question: QuestionResource }) {
  return (
    <section className={styles.matter} data-tone="wait">
      <h3>
        ◆ {question.askedBy ?? "Somebody"} asks <small><Ago at={question.askedAt} /></small>
      </h3>
      <p className={styles.prose} dir="auto">
        {question.text}
      </p>
      <AnswerForm task={task} question={question.id} />
    </section>
  );
}

export function AnswerForm({ task, question }: { task: string; question: string | null }) {
  const act = useAct();
  return <TextForm word="Answer" send={(text) => act(taskPath(task, "answer"), { text, ...(question ? { question } : {}) })} />;
}

/** An answer to a letter that asks for help, where no question of a task has it. */
export function HelpForm({ letter, to }: { letter: string; to: string }) {
  const act = useAct();
  return <TextForm word="Reply" send={(text) => act("/v1/agentmail/mail.send", { to: [to], subject: "HELP_RESPONSE", reply_to: letter, body_md: text })} />;
}

/** A field for a text to whoever asks; the refusal is told below it. */
function TextForm({ word, send: sendText }: { word: "Answer" | "Reply"; send: (text: string) => Promise<void> }) {
  const session = useSession();
  const [text, setText] = useState("");
  const [refusal, setRefusal] = useState("");
  const [isBusy, setBusy] = useState(false);
  if (!session.may.write) return null;
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    try {
      await sendText(text.trim());
      setText("");
    } catch (error) {
      setRefusal(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className={styles.answer} onSubmit={(event) => void send(event)}>
      <textarea
        aria-label={`Your ${word.toLowerCase()}`}
        placeholder={`Your ${word.toLowerCase()}`}
        required
        rows={1}
        maxLength={4096}
        dir="auto"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
        }}
      />
      <Button kind="primary" type="submit" disabled={isBusy || !text.trim()}>
        {word}
      </Button>
      {refusal && <Refusal text={refusal} />}
    </form>
  );
}

export function TaskFacts({ task }: { task: TaskDetail }) {
  return (
    <dl className={styles.facts}>
      {task.lease && (
        <Fact name="Held by">
          <AgentLink name={task.lease.agent} /> <LeaseRing until={task.lease.expiresAt} isValid={task.lease.valid} ms={task.lease.ttlMs} />
        </Fact>
      )}
      {!task.lease && task.assignee && (
        <Fact name="Assignee">
          <AgentLink name={task.assignee} />
        </Fact>
      )}
      {task.attempt > 0 && <Fact name="Attempts">{attemptOf(task)}</Fact>}
      <Fact name="Priority">{task.priority}</Fact>
      {task.deadline && (
        <Fact name="Deadline">
          <span data-bad={task.overdue || undefined}>
            <Moment at={task.deadline} /> (<Ago at={task.deadline} until />)
          </span>
        </Fact>
      )}
      {task.notBefore && (
        <Fact name="Not before">
          <Moment at={task.notBefore} /> (<Ago at={task.notBefore} until />)
        </Fact>
      )}
      <Names name="Waits for" tasks={task.waitsFor} />
      <Names name="Blocks" tasks={task.blocks} />
      <Names name="Part of" tasks={task.parent ? [task.parent] : []} />
      <Names name="Parts" tasks={task.children} />
      <Names name="Found at" tasks={task.discoveredFrom ? [task.discoveredFrom] : []} />
      {task.handoff && (
        <Fact name="Handoff">
          <Link className={styles.link} href={`/handoffs/${encodeURIComponent(task.handoff)}`}>
            <code>{task.handoff}</code>
          </Link>
        </Fact>
      )}
      {task.aliases.length > 0 && (
        <Fact name="Other names">
          <code>{task.aliases.join(", ")}</code>
        </Fact>
      )}
      <Fact name="Created">
        <Moment at={task.createdAt} />
      </Fact>
      <Fact name="In this status">
        <Ago at={task.lastTransitionAt} />
      </Fact>
    </dl>
  );
}

export function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Names({ name, tasks }: { name: string; tasks: readonly string[] }) {
  if (!tasks.length) return null;
  return (
    <Fact name={name}>
      {tasks.map((task) => (
        <span key={task} className={styles.name}>
          <TaskLink id={task} />
        </span>
      ))}
    </Fact>
  );
}
