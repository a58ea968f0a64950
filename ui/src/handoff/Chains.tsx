// Handoffs as a graph, left to right: for each task its owners, and between two of them the handoff
// with its state and its clock. The list below says the same in rows.
import { Link } from "wouter";

import type { HandoffSummary } from "../api/types";
import { AgentLink, TaskLink } from "../parts/links";
import { HandoffStatus, Mark } from "../parts/marks";
import { Ago } from "../parts/time";
import styles from "./Chains.module.css";

const MAX_CHAINS = 12;
const OPEN = ["proposed", "validating", "accepted", "activated"];

interface Chain {
  task: string;
  /** Each from whom the one before went to. */
  steps: HandoffSummary[];
}

/** Handoffs of a task that follow one another; one that begins elsewhere begins a chain of its own. */
function chainsOf(handoffs: readonly HandoffSummary[]): Chain[] {
  const chains: Chain[] = [];
  for (const handoff of [...handoffs].reverse()) {
    const before = chains.findLast((chain) => chain.task === handoff.task_id && chain.steps.at(-1)?.to_agent === handoff.from_agent);
    if (before) before.steps.push(handoff);
    else chains.push({ task: handoff.task_id, steps: [handoff] });
  }
  const isOpen = (chain: Chain) => chain.steps.some((step) => OPEN.includes(step.status));
  return chains.reverse().sort((a, b) => Number(isOpen(b)) - Number(isOpen(a)));
}

export function Chains({ handoffs, selected, search }: { handoffs: readonly HandoffSummary[]; selected: string | null; search: string }) {
  const chains = chainsOf(handoffs);
  return (
    <section className={styles.graph} aria-label="Who handed what to whom" tabIndex={0}>
      <ul>
        {chains.slice(0, MAX_CHAINS).map((chain) => (
          <li key={chain.steps[0]!.handoff_id}>
            <span className={styles.task}>
              <TaskLink id={chain.task} />
            </span>
            <span className={styles.node}>
              <AgentLink name={chain.steps[0]!.from_agent} />
            </span>
            {chain.steps.map((step) => (
              <Step key={step.handoff_id} step={step} isSelected={step.handoff_id === selected} search={search} />
            ))}
          </li>
        ))}
      </ul>
      {chains.length > MAX_CHAINS && <p>{chains.length - MAX_CHAINS} more stand in the list.</p>}
    </section>
  );
}

function Step({ step, isSelected, search }: { step: HandoffSummary; isSelected: boolean; search: string }) {
  const isOpen = OPEN.includes(step.status);
  return (
    <>
      <Link className={styles.edge} data-status={step.status} data-open={isOpen || undefined} data-selected={isSelected || undefined} href={`/handoffs/${encodeURIComponent(step.handoff_id)}${search}`} title={step.title}>
        <HandoffStatus status={step.status} />
        {isOpen && (
          <small>
            {step.escalated ? (
              <Mark shape="▲" tone="bad">
                late
              </Mark>
            ) : (
              step.due_by && <Ago at={step.due_by} until />
            )}
          </small>
        )}
      </Link>
      <span className={styles.node}>
        <AgentLink name={step.to_agent} />
      </span>
    </>
  );
}
