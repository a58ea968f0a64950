// Names of tasks and agents: links, each with a card of what it is now.
import { Link, useSearch } from "wouter";

import { AgentCard, HoverCard, TaskCard } from "./HoverCard";
import styles from "./marks.module.css";

export function TaskLink({ id, title }: { id: string; title?: string }) {
  const search = useSearch();
  const link = (
    <Link href={`/tasks/${encodeURIComponent(id)}`} className={styles.link}>
      {title ? <bdi>{title}</bdi> : <code>{id}</code>}
    </Link>
  );
  // A card of the present has no place in the past.
  return new URLSearchParams(search).has("at") ? link : <HoverCard card={<TaskCard id={id} />}>{link}</HoverCard>;
}

export function AgentLink({ name }: { name: string }) {
  return (
    <HoverCard card={<AgentCard name={name} />}>
      <Link href={`/agents/${encodeURIComponent(name)}`} className={styles.agent}>
        <bdi>{name}</bdi>
      </Link>
    </HoverCard>
  );
}
