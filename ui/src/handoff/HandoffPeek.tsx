// A handoff in full: what it waits for, each check with what was found, the package, and what one can do.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";

import { diagnosisQuery, handoffQuery } from "../api/queries";
import type { HandoffDetail } from "../api/types";
import { Button, Dialog, Field } from "../parts/controls";
import { AgentLink, TaskLink } from "../parts/links";
import { HandoffStatus } from "../parts/marks";
import { Failed, Loading } from "../parts/states";
import { Ago, Moment, Sentence } from "../parts/time";
import { useSession } from "../session";
import { useAct } from "../task/act";
import { Fact } from "../task/TaskPeek";
import task from "../task/task.module.css";
import { GateButtons } from "./GateButtons";
import styles from "./handoff.module.css";

export function HandoffPeek({ id, onClose }: { id: string; onClose?: () => void }) {
  const found = useQuery(handoffQuery(id));
  if (found.data === undefined) {
    return found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  }
  const handoff = found.data;
  return (
    <article className={task.peek} aria-label={`Handoff ${handoff.handoff_id}`}>
      <header>
        <div className={task.peekTop}>
          <HandoffStatus status={handoff.status} />
          <code className={task.id}>{handoff.handoff_id}</code>
          <Link className={task.open} href={`/handoffs/${encodeURIComponent(handoff.handoff_id)}`}>
            Open
          </Link>
          {onClose && (
            <Button kind="quiet" onClick={onClose} aria-label="close the panel">
              ×
            </Button>
          )}
        </div>
        <h2 dir="auto">{handoff.title}</h2>
      </header>
      <Diagnosis id={handoff.handoff_id} />
      <HandoffActions handoff={handoff} />
      <dl className={task.facts}>
        <Fact name="From → to">
          <AgentLink name={handoff.from_agent} /> → <AgentLink name={handoff.to_agent} />
        </Fact>
        <Fact name="Task">
          <TaskLink id={handoff.task_id} />
        </Fact>
        {handoff.reason && <Fact name="Reason">{handoff.reason}</Fact>}
        {handoff.due_by && (
          <Fact name="Due">
            <Moment at={handoff.due_by} /> (<Ago at={handoff.due_by} until />)
          </Fact>
        )}
        {handoff.package_hash && (
          <Fact name="Package hash">
            <code>{handoff.package_hash}</code>
          </Fact>
        )}
        {handoff.supersedes && (
          <Fact name="Replaces">
            <Link href={`/handoffs/${encodeURIComponent(handoff.supersedes)}`}>{handoff.supersedes}</Link>
          </Fact>
        )}
        {handoff.superseded_by && (
          <Fact name="Replaced by">
            <Link href={`/handoffs/${encodeURIComponent(handoff.superseded_by)}`}>{handoff.superseded_by}</Link>
          </Fact>
        )}
      </dl>
      {handoff.approval && (
        <section className={task.matter} data-tone={handoff.approval.approved ? "idle" : "bad"}>
          <h3>
            {handoff.approval.approved ? "✓ Approved" : "▲ Denied"} by {handoff.approval.by} <small><Ago at={handoff.approval.at} /></small>
          </h3>
          <p className={task.prose} dir="auto">
            {handoff.approval.note}
          </p>
        </section>
      )}
      {handoff.rejection && (
        <section className={task.matter} data-tone="bad">
          <h3>
            ▲ Rejected by {handoff.rejection.by}: {handoff.rejection.reason.replaceAll("_", " ")}
          </h3>
          <p className={task.prose} dir="auto">
            {handoff.rejection.detail}
          </p>
          {handoff.rejection.suggested_fix && <p dir="auto">Suggested: {handoff.rejection.suggested_fix}</p>}
        </section>
      )}
      <Checks handoff={handoff} />
      <section>
        <h3>Package</h3>
        <pre className={styles.package}>{JSON.stringify(handoff.package, null, 2)}</pre>
      </section>
      <section>
        <h3>History</h3>
        <ol className={styles.steps}>
          {handoff.transitions.map((step) => (
            <li key={`${step.to_status}${step.at}`}>
              <HandoffStatus status={step.to_status} />
              <bdi>{step.by}</bdi>
              <Moment at={step.at} />
              {step.note && <small dir="auto">{step.note}</small>}
            </li>
          ))}
        </ol>
      </section>
    </article>
  );
}

function Diagnosis({ id }: { id: string }) {
  const { data } = useQuery(diagnosisQuery(id));
  if (!data) return null;
  return (
    <section className={task.matter} data-tone={data.late ? "bad" : "idle"}>
      <p dir="auto">
        <Sentence text={data.summary} />
      </p>
      {data.findings.map((finding) => (
        <p key={finding} dir="auto">
          ▲ <Sentence text={finding} />
        </p>
      ))}
    </section>
  );
}

function Checks({ handoff }: { handoff: HandoffDetail }) {
  const artifacts = Object.entries(handoff.artifacts);
  if (!handoff.verification_passed.length && !handoff.verification_failed.length && !artifacts.length) return null;
  return (
    <section>
      <h3>Checks</h3>
      <ul className={styles.checks}>
        {handoff.verification_failed.map((check) => (
          <li key={check} data-bad="">
            <span aria-hidden="true">▲</span> <bdi>{check}</bdi> <span className="visually-hidden">failed</span>
          </li>
        ))}
        {handoff.verification_passed.map((check) => (
          <li key={check}>
            <span aria-hidden="true">✓</span> <bdi>{check}</bdi> <span className="visually-hidden">passed</span>
          </li>
        ))}
        {artifacts.map(([path, hash]) => (
          <li key={path}>
            <bdi>{path}</bdi> <code>sha256 {hash}</code>
          </li>
        ))}
        {handoff.artifacts_left_out.map((path) => (
          <li key={path}>
            <bdi>{path}</bdi> left out
          </li>
        ))}
      </ul>
    </section>
  );
}

function HandoffActions({ handoff }: { handoff: HandoffDetail }) {
  const session = useSession();
  const act = useAct();
  const [asked, setAsked] = useState<"extend" | "reassign" | "withdraw" | "close" | null>(null);
  if (!session.may.write) return <p className={task.mayNot}>As {session.role} you may look, and not decide.</p>;
  const isOpen = ["proposed", "validating", "accepted", "activated"].includes(handoff.status);
  const waitsForGate = handoff.requires_human_approval && !handoff.approval && isOpen;
  const run = (body: Record<string, unknown>) => act("/v1/acp/acp_handoff", { handoff_id: handoff.handoff_id, ...body });
  const text = (form: FormData, name: string) => String(form.get(name) ?? "").trim();
  const onClose = () => setAsked(null);
  return (
    <div className={task.actions} role="group" aria-label="Actions">
      {waitsForGate && <GateButtons handoff={handoff.handoff_id} />}
      {isOpen && handoff.due_by && <Button onClick={() => setAsked("extend")}>Extend…</Button>}
      {isOpen && <Button onClick={() => setAsked("reassign")}>Reassign…</Button>}
      {isOpen && handoff.status !== "activated" && session.name === handoff.from_agent && <Button onClick={() => setAsked("withdraw")}>Withdraw…</Button>}
      {["rejected", "completed"].includes(handoff.status) && <Button onClick={() => setAsked("close")}>Close…</Button>}
      {asked === "extend" && (
        <Dialog title="Give it more time" confirm="Extend" run={(form) => run({ action: "extend_sla", by: text(form, "by") })} onClose={onClose}>
          <Field label="By" hint="Such as 30m, 2h or 1d.">
            <input name="by" required defaultValue="1h" autoFocus />
          </Field>
        </Dialog>
      )}
      {asked === "reassign" && (
        <Dialog title="Hand it to another agent" confirm="Reassign" run={(form) => run({ action: "reassign", to_agent: text(form, "to"), notes: text(form, "notes") })} onClose={onClose}>
          <Field label="To">
            <input name="to" required autoFocus autoComplete="off" />
          </Field>
          <Field label="Note">
            <input name="notes" dir="auto" />
          </Field>
        </Dialog>
      )}
      {asked === "withdraw" && (
        <Dialog title="Withdraw the handoff" confirm="Withdraw" kind="danger" run={(form) => run({ action: "withdraw", reason: text(form, "reason") })} onClose={onClose}>
          <Field label="Reason">
            <input name="reason" dir="auto" autoFocus />
          </Field>
        </Dialog>
      )}
      {asked === "close" && (
        <Dialog title="Close the handoff" confirm="Close" run={(form) => run({ action: "close", closure_notes: text(form, "notes") })} onClose={onClose}>
          <Field label="Note">
            <input name="notes" dir="auto" autoFocus />
          </Field>
        </Dialog>
      )}
    </div>
  );
}
