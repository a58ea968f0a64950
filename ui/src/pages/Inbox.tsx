// Letters: the boxes of whoever reads and of the agents; a letter with its thread, and an answer to it.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import { type Box, boxQuery, type Letter, letterQuery, threadQuery } from "../api/mail";
import { agentsQuery } from "../api/queries";
import { ActionButton, Button, Refusal, wordsOf } from "../parts/controls";
import { AgentLink, TaskLink } from "../parts/links";
import { Mark } from "../parts/marks";
import page from "../parts/page.module.css";
import { Empty, Failed, Loading } from "../parts/states";
import { Ago, Moment } from "../parts/time";
import { useSession } from "../session";
import { useKeys } from "../shell/keys";
import { useAct } from "../task/act";
import task from "../task/task.module.css";

const BOXES: Record<Box, string> = { in: "Received", sent: "Sent", overdue: "Overdue", waiting: "Waits for an answer" };

export function Inbox() {
  const session = useSession();
  const [parameters, setParameters] = useSearchParams();
  const agents = useQuery(agentsQuery);
  const agent = parameters.get("agent") ?? session.name;
  const box = (parameters.get("box") ?? "in") as Box;
  const selected = parameters.get("letter");
  const found = useQuery(boxQuery(agent, box));
  const letters = found.data ?? [];
  const change = (changes: Record<string, string | null>) =>
    setParameters(
      (old) => {
        const next = new URLSearchParams(old);
        for (const [name, value] of Object.entries(changes)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      { replace: true },
    );
  const step = (by: number) => {
    const at = letters.findIndex((letter) => letter.id === selected);
    const next = letters[Math.max(0, Math.min(letters.length - 1, at + by))];
    if (next) change({ letter: next.id });
  };
  useKeys({ j: () => step(1), k: () => step(-1), Escape: () => change({ letter: null }) });
  const names = [...new Set([session.name, agent, ...(agents.data?.agents.map((one) => one.name) ?? [])])];
  return (
    <div className={page.page} data-split={selected ? "" : undefined}>
      <section className={page.main} aria-labelledby="inbox">
        <header className={page.head}>
          <h1 id="inbox">Inbox</h1>
          <label>
            <span className="visually-hidden">Whose letters</span>
            <select value={agent} onChange={(event) => change({ agent: event.target.value === session.name ? null : event.target.value, letter: null })}>
              {names.map((name) => (
                <option key={name} value={name}>
                  {name === session.name ? `${name} (you)` : name}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span className="visually-hidden">Which box</span>
            <select value={box} onChange={(event) => change({ box: event.target.value === "in" ? null : event.target.value, letter: null })}>
              {Object.entries(BOXES).map(([key, name]) => (
                <option key={key} value={key}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </header>
        {found.data === undefined ? (
          found.error ? (
            <Failed error={found.error} retry={() => void found.refetch()} />
          ) : (
            <Loading />
          )
        ) : letters.length === 0 ? (
          <Empty command={`dragoman mail send --to ${agent}`}>There are no letters in this box.</Empty>
        ) : (
          <table className={page.table}>
            <thead>
              <tr>
                <th>{box === "sent" ? "To" : "From"}</th>
                <th>Subject</th>
                <th className={page.wide}>Task</th>
                <th>State</th>
                <th className={page.number}>Age</th>
              </tr>
            </thead>
            <tbody>
              {letters.map((letter) => (
                <tr key={letter.id} data-selected={letter.id === selected || undefined}>
                  <td>{box === "sent" ? letter.to.join(", ") : <AgentLink name={letter.from} />}</td>
                  <td>
                    <button type="button" className={`${page.choose} ${letter.read || box === "sent" ? "" : page.unread}`} onClick={() => change({ letter: letter.id })} dir="auto">
                      {letter.subject}
                    </button>
                  </td>
                  <td className={page.wide}>{letter.bead_id && <TaskLink id={letter.bead_id} />}</td>
                  <td>
                    <LetterState letter={letter} />
                  </td>
                  <td className={page.number}>
                    <Ago at={letter.timestamp} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      {selected && (
        <aside className={page.panel} aria-label="Letter">
          <Thread key={selected} id={selected} onClose={() => change({ letter: null })} />
        </aside>
      )}
    </div>
  );
}

function LetterState({ letter }: { letter: Letter }) {
  if (letter.overdue) {
    return (
      <Mark shape="▲" tone="bad">
        overdue
      </Mark>
    );
  }
  if (letter.waits_for.length) {
    return (
      <Mark shape="◆" tone="wait">
        waits for {letter.waits_for.join(", ")}
      </Mark>
    );
  }
  return <span className={page.quiet}>{letter.acked_by.length ? "acknowledged" : letter.read_by.length ? "read" : "stored"}</span>;
}

/** How far a letter has come with one of its recipients. */
function Delivery({ letter, name }: { letter: Letter; name: string }) {
  const isAcked = letter.acked_by.includes(name);
  const words = isAcked ? "acknowledged" : letter.read_by.includes(name) ? "read" : "stored, not read yet";
  return (
    <Mark shape={isAcked ? "✓" : letter.waits_for.includes(name) ? "◆" : "○"} tone={isAcked ? "good" : letter.waits_for.includes(name) ? "wait" : "idle"}>
      <span>
        <bdi>{name}</bdi>: {words}
        {letter.waits_for.includes(name) && ", is to acknowledge it"}
      </span>
    </Mark>
  );
}

function Thread({ id, onClose }: { id: string; onClose: () => void }) {
  const session = useSession();
  const act = useAct();
  const letter = useQuery(letterQuery(id));
  const thread = useQuery({ ...threadQuery(letter.data?.thread_id ?? ""), enabled: letter.data !== undefined });
  const isNew = letter.data !== undefined && letter.data.to.includes(session.name) && !letter.data.read_by.includes(session.name);
  const hasRead = useRef(false);
  useEffect(() => {
    if (!isNew || hasRead.current) return;
    hasRead.current = true;
    // A letter that cannot be marked is read all the same.
    void act("/v1/agentmail/mail.read", { id }).catch(() => undefined);
  });
  if (letter.data === undefined) {
    return letter.error ? <Failed error={letter.error} retry={() => void letter.refetch()} /> : <Loading />;
  }
  const one = letter.data;
  const letters = thread.data?.messages.length ? thread.data.messages : [one];
  return (
    <article className={task.peek} aria-label={one.subject}>
      <header>
        <div className={task.peekTop}>
          <span className={task.id}>{one.kind ?? (one.type === "UNKNOWN" ? "letter" : one.type)}</span>
          <Button kind="quiet" onClick={onClose} aria-label="close the panel">
            ×
          </Button>
        </div>
        <h2 dir="auto">{one.subject}</h2>
      </header>
      {one.bead_id && (
        <p>
          About <TaskLink id={one.bead_id} />
        </p>
      )}
      <div className={page.letters}>
        {letters.map((each) => (
          <section key={each.id} className={page.letter} aria-label={`from ${each.from}`}>
            <header>
              <span>
                <AgentLink name={each.from} /> to {each.to.join(", ")}
                {each.cc.length > 0 && `, copy to ${each.cc.join(", ")}`}
              </span>
              <Moment at={each.timestamp} />
            </header>
            <p className={task.prose} dir="auto">
              {each.body_md}
            </p>
            <ul className={page.delivery} aria-label="Delivery">
              {[...new Set([...each.to, ...each.cc])].map((name) => (
                <li key={name}>
                  <Delivery letter={each} name={name} />
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      {one.waits_for.includes(session.name) && (
        <ActionButton kind="primary" run={() => act("/v1/agentmail/mail.ack", { id: one.id })}>
          Acknowledge
        </ActionButton>
      )}
      {session.may.write && <Reply letter={letters.at(-1) ?? one} />}
    </article>
  );
}

function Reply({ letter }: { letter: Letter }) {
  const session = useSession();
  const act = useAct();
  const [text, setText] = useState("");
  const [refusal, setRefusal] = useState("");
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useKeys({ r: () => field.current?.focus() });
  const others = [...new Set([letter.from, ...letter.to])].filter((name) => name !== session.name);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    try {
      const subject = letter.subject.startsWith("Re: ") ? letter.subject : `Re: ${letter.subject}`;
      await act("/v1/agentmail/mail.send", { to: others, subject, body_md: text, thread_id: letter.thread_id });
      setText("");
    } catch (error) {
      setRefusal(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className={page.reply} onSubmit={(event) => void send(event)}>
      <textarea ref={field} aria-label="Your reply" placeholder={`Reply to ${others.join(", ")} as ${session.name}`} required maxLength={60_000} dir="auto" value={text} onChange={(event) => setText(event.target.value)} />
      <Button kind="primary" type="submit" disabled={isBusy || !text.trim()}>
        Send
      </Button>
      {refusal && <Refusal text={refusal} />}
    </form>
  );
}
