// Agents: who is known, what each does now, and who cannot go on. Only trouble has a colour.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { Credentials } from "../agent/Credentials";
import { Score } from "../agent/Score";
import { readBack } from "../api/entries";
import { agentsQuery, numbersQuery, statusQuery, tasksPage } from "../api/queries";
import type { Agent, AgentCountsResource, AgentStatusResource } from "../api/types";
import { taskOf } from "../live/live";
import { NumberBoard } from "../numbers/Numbers";
import { ActionButton, Button, Dialog, Field } from "../parts/controls";
import { AgentLink, TaskLink } from "../parts/links";
import { attemptOf, Mark, TaskStatus } from "../parts/marks";
import page from "../parts/page.module.css";
import { Empty, Failed, Loading } from "../parts/states";
import { Ago, Moment } from "../parts/time";
import { useSession } from "../session";
import { useKeys } from "../shell/keys";
import { useAct } from "../task/act";
import { Fact } from "../task/TaskPeek";
import task from "../task/task.module.css";

export function Agents({ name }: { name: string | null }) {
  const [, navigate] = useLocation();
  const found = useQuery(agentsQuery);
  const status = useQuery(statusQuery);
  const numbers = useQuery(numbersQuery(14));
  const counts = new Map((numbers.data?.agents ?? []).map((one) => [one.name, one]));
  const seen = new Map((status.data?.agents ?? []).map((agent) => [agent.name, agent]));
  const agents = (found.data?.agents ?? []).filter((agent) => agent.registered).map((agent) => ({ agent, seen: seen.get(agent.name) }));
  const strangers = (status.data?.agents ?? []).filter((agent) => !agent.registered);
  const names = [...agents.map(({ agent }) => agent.name), ...strangers.map((agent) => agent.name)];
  const open = (next: string | null | undefined) => next !== undefined && navigate(next === null ? "/agents" : `/agents/${encodeURIComponent(next)}`, { replace: name !== null });
  const at = names.indexOf(name ?? "");
  useKeys({ j: () => open(names[Math.min(names.length - 1, at + 1)]), k: () => open(names[Math.max(0, at - 1)]), Escape: () => open(null) });
  if (found.data === undefined) {
    return found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : <Loading rows={6} />;
  }
  return (
    <div className={page.page} data-split={name === null ? undefined : ""}>
      <section className={page.main} aria-labelledby="agents">
        <header className={page.head}>
          <h1 id="agents">Agents</h1>
          <p>{agents.length === 1 ? "1 is registered" : `${agents.length} are registered`}</p>
        </header>
        {names.length > 0 && <NumberBoard />}
        {names.length === 0 ? (
          <Empty command="dragoman agent add NAME">Nobody is known yet.</Empty>
        ) : (
          <table className={page.table}>
            <thead>
              <tr>
                <th>Agent</th>
                <th>State</th>
                <th>Works on</th>
                <th className={`${page.number} ${page.wide}`}>Waits for it</th>
                <th className={`${page.number} ${page.wide}`}>Success, 14 days</th>
                <th className={`${page.number} ${page.wide}`}>Today</th>
                <th className={page.number}>Last seen</th>
              </tr>
            </thead>
            <tbody>
              {agents.map(({ agent, seen }) => (
                <tr key={agent.name} data-selected={agent.name === name || undefined}>
                  <td>
                    <AgentLink name={agent.name} />{" "}
                    <small className={page.small}>
                      {agent.role}
                      {agent.speaks.length > 0 && ` · ${agent.speaks.join(", ")}`}
                    </small>
                  </td>
                  <td>
                    <State agent={agent} seen={seen} />
                  </td>
                  <td>
                    <Holds tasks={seen?.holds ?? []} />
                  </td>
                  <td className={`${page.number} ${page.wide}`}>{seen?.waiting ? seen.waiting : <span className={page.quiet}>–</span>}</td>
                  <td className={`${page.number} ${page.wide}`}>
                    <Success counts={counts.get(agent.name)} />
                  </td>
                  <td className={`${page.number} ${page.wide}`}>
                    <Today agent={agent} />
                  </td>
                  <td className={page.number}>{seen?.lastSeen ? <Ago at={seen.lastSeen} /> : <span className={page.quiet}>–</span>}</td>
                </tr>
              ))}
              {strangers.map((agent) => (
                <tr key={agent.name} data-selected={agent.name === name || undefined}>
                  <td>
                    <AgentLink name={agent.name} /> <small className={page.small}>not registered</small>
                  </td>
                  <td>
                    <span className={page.quiet}>–</span>
                  </td>
                  <td>
                    <Holds tasks={agent.holds} />
                  </td>
                  <td className={`${page.number} ${page.wide}`}>{agent.waiting || <span className={page.quiet}>–</span>}</td>
                  <td className={`${page.number} ${page.wide}`}>
                    <Success counts={counts.get(agent.name)} />
                  </td>
                  <td className={`${page.number} ${page.wide}`}>
                    <span className={page.quiet}>–</span>
                  </td>
                  <td className={page.number}>{agent.lastSeen ? <Ago at={agent.lastSeen} /> : <span className={page.quiet}>–</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      {name !== null && (
        <aside className={page.panel} aria-label="Agent">
          <AgentPeek key={name} name={name} agent={agents.find(({ agent }) => agent.name === name)?.agent} seen={seen.get(name)} counts={counts.get(name)} onClose={() => open(null)} />
        </aside>
      )}
    </div>
  );
}

function State({ agent, seen }: { agent: Agent; seen: AgentStatusResource | undefined }) {
  if (agent.paused) {
    return (
      <Mark shape="◆" tone="wait">
        paused{agent.paused.until ? <>, <Ago at={agent.paused.until} until /></> : ""}
      </Mark>
    );
  }
  if (agent.activity?.idle) {
    return (
      <Mark shape="◆" tone="wait">
        {agent.activity.idle}
      </Mark>
    );
  }
  if (seen?.holds.length) {
    return (
      <Mark shape="●" tone="run">
        at work
      </Mark>
    );
  }
  return <span className={page.quiet}>○ idle</span>;
}

function Holds({ tasks }: { tasks: readonly string[] }) {
  if (!tasks.length) return <span className={page.quiet}>–</span>;
  return (
    <>
      {tasks.map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <TaskLink id={id} />
        </span>
      ))}
    </>
  );
}

/** How much of its work became done, of what ended in two weeks. */
function Success({ counts }: { counts: AgentCountsResource | undefined }) {
  const ended = (counts?.finished ?? 0) + (counts?.failures ?? 0);
  if (!counts || !ended) return <span className={page.quiet}>–</span>;
  return (
    <span title={`${counts.attempts} attempts begun, ${counts.finished} tasks finished, ${counts.failures} failures`}>
      {Math.round((counts.finished / ended) * 100)} % of {ended}
    </span>
  );
}

function Today({ agent }: { agent: Agent }) {
  if (!agent.activity) return <span className={page.quiet}>–</span>;
  const { attempts, minutes, cost } = agent.activity;
  return (
    <>
      {attempts === 1 ? "1 attempt" : `${attempts} attempts`}, {minutes} min{cost ? `, cost ${cost}` : ""}
    </>
  );
}

interface AgentPeekProps {
  name: string;
  agent: Agent | undefined;
  seen: AgentStatusResource | undefined;
  counts: AgentCountsResource | undefined;
  onClose: () => void;
}

function AgentPeek({ name, agent, seen, counts, onClose }: AgentPeekProps) {
  const session = useSession();
  const act = useAct();
  const [isAsked, setAsked] = useState(false);
  const tasks = useQuery({
    queryKey: ["tasks", "of", name],
    queryFn: ({ signal }) => tasksPage("", name, 50, signal),
  });
  const path = `/v1/agents/${encodeURIComponent(name)}`;
  return (
    <article className={task.peek} aria-label={name}>
      <header>
        <div className={task.peekTop}>
          <span className={task.id}>{agent ? agent.role : "not registered"}</span>
          <Button kind="quiet" onClick={onClose} aria-label="close the panel">
            ×
          </Button>
        </div>
        <h2 dir="auto">{name}</h2>
      </header>
      {agent && session.may.pause && (
        <div className={task.actions} role="group" aria-label="Actions">
          {agent.paused ? (
            <ActionButton kind="primary" run={() => act(`${path}/resume`)}>
              Resume
            </ActionButton>
          ) : (
            <Button onClick={() => setAsked(true)}>Pause…</Button>
          )}
          <Link href={`/board?agent=${encodeURIComponent(name)}`}>Its board</Link>
          <Link href={`/inbox?agent=${encodeURIComponent(name)}`}>Its letters</Link>
        </div>
      )}
      {isAsked && (
        <Dialog title={`Pause ${name}`} confirm="Pause" run={(form) => act(`${path}/pause`, { reason: String(form.get("reason") ?? "").trim() || "paused" })} onClose={() => setAsked(false)}>
          <p>The hub starts nothing more for it; what runs goes on.</p>
          <Field label="Reason">
            <input name="reason" required maxLength={4096} dir="auto" autoFocus />
          </Field>
        </Dialog>
      )}
      {agent?.paused && (
        <section className={task.matter} data-tone="wait">
          <h3>◆ Paused</h3>
          <p className={task.prose} dir="auto">
            {agent.paused.reason}
          </p>
          <small>
            <Moment at={agent.paused.since} />
          </small>
        </section>
      )}
      <dl className={task.facts}>
        <Fact name="Works on">
          <Holds tasks={seen?.holds ?? []} />
        </Fact>
        {agent && (
          <>
            <Fact name="Speaks">{agent.speaks.join(", ") || "any dialect"}</Fact>
            <Fact name="Today">
              <Today agent={agent} />
            </Fact>
            {counts && (
              <Fact name="14 days">
                {counts.attempts} attempts, {counts.finished} finished, {counts.failures} failed
                {counts.tokens > 0 && `, ${counts.tokens.toLocaleString()} tokens`}
                {counts.cost > 0 && `, cost ${counts.cost}`}
              </Fact>
            )}
            {agent.registeredAt && (
              <Fact name="Registered">
                <Moment at={agent.registeredAt} />
              </Fact>
            )}
            <Fact name="Valid tokens">{agent.tokens}</Fact>
            <Fact name="Key">{agent.hasKey ? "signs its messages" : "none"}</Fact>
          </>
        )}
      </dl>
      {agent && session.may.credentials && <Credentials agent={name} />}
      {agent?.role === "agent" && <Score agent={name} />}
      <Attempts agent={name} />
      <section>
        <h3>Its tasks, the newest first</h3>
        {tasks.error && <Failed error={tasks.error} />}
        {tasks.data?.tasks.length === 0 && <p className={page.quiet}>It has none.</p>}
        <table className={page.table}>
          <tbody>
            {tasks.data?.tasks.map((one) => (
              <tr key={one.id}>
                <td>
                  <TaskStatus status={one.status} />
                </td>
                <td>
                  <TaskLink id={one.id} title={one.title} />
                </td>
                <td className={`${page.quiet} ${page.number} ${page.wide}`}>{one.attempt > 0 && attemptOf(one)}</td>
                <td className={page.number}>
                  <Ago at={one.updatedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </article>
  );
}

const MAX_ATTEMPTS = 10;

/** The last attempts that it began, as far as they are among the last of the whole fleet. */
function Attempts({ agent }: { agent: string }) {
  const status = useQuery(statusQuery);
  const head = status.data?.position;
  const found = useQuery({
    queryKey: ["tasks", "claims", head],
    queryFn: ({ signal }) => readBack(head ?? 0, "task.claimed", "", signal),
    enabled: head !== undefined,
    placeholderData: keepPreviousData,
  });
  const claims = (found.data?.entries ?? []).filter((entry) => (entry.body as { agent: string }).agent === agent);
  if (!claims.length) return null;
  return (
    <section aria-label="Attempts">
      <h3>Its last attempts</h3>
      <table className={page.table}>
        <tbody>
          {claims.slice(0, MAX_ATTEMPTS).map((entry) => (
            <tr key={entry.position}>
              <td>
                <TaskLink id={taskOf(entry)} />
              </td>
              <td className={page.quiet}>attempt {(entry.body as { attempt: number }).attempt}</td>
              <td className={page.number}>
                <Link href={`/tasks/${encodeURIComponent(taskOf(entry))}?at=${entry.position}`}>#{entry.position}</Link>
              </td>
              <td className={page.number}>
                <Ago at={entry.at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
