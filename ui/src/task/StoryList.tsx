// One story: what happened to a task, in the order of the ledger, over all dialects.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef, useState } from "react";
import { Link } from "wouter";

import type { StoryItemResource } from "../api/types";
import { AgentLink } from "../parts/links";
import { Dialect, type Tone } from "../parts/marks";
import { Moment, roughly } from "../parts/time";
import styles from "./story.module.css";
import { nameOf, titleOf } from "./story";

const MARKS: Record<string, [string, Tone]> = {
  task: ["○", "idle"],
  attempt: ["●", "run"],
  question: ["◆", "wait"],
  delegation: ["⇄", "hand"],
  handoff: ["⇄", "hand"],
  intent: ["⇄", "hand"],
  letter: ["✉", "idle"],
  turn: ["›", "idle"],
  thought: ["…", "idle"],
  tool: ["⚙", "idle"],
  trace: ["·", "idle"],
  terminal: ["$", "idle"],
  work_item: ["□", "idle"],
};

const STATUS_TONES: Record<string, Tone> = { done: "good", review: "wait", blocked: "bad", deadletter: "bad", "in-progress": "run" };

interface StoryListProps {
  items: readonly StoryItemResource[];
  selected: number | null;
  name?: string;
}

export function StoryList({ items, selected, name = "Story" }: StoryListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 56,
    overscan: 12,
    getItemKey: (index) => items[index]?.position ?? index,
  });
  const at = selected === null ? -1 : items.findIndex((item) => item.position === selected);
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: "center" });
  }, [at, rows]);
  return (
    <div ref={scroller} className={styles.scroller} tabIndex={0} role="group" aria-label={`${name} of the task`}>
      <ol className={styles.list} style={{ height: rows.getTotalSize() }} aria-label={name}>
        {rows.getVirtualItems().map((row) => {
          const item = items[row.index];
          if (!item) return null;
          const before = items[row.index - 1];
          const begins = item.attempt !== null && item.attempt !== before?.attempt;
          return (
            <li key={row.key} ref={rows.measureElement} data-index={row.index} className={styles.row} style={{ transform: `translateY(${row.start}px)` }}>
              <Item item={item} begins={begins} isSelected={item.position === selected} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const Item = memo(function Item({ item, begins, isSelected }: { item: StoryItemResource; begins: boolean; isSelected: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const [shape, tone] = MARKS[item.kind] ?? ["·", "idle"];
  const text = item.text;
  const beginning = titleOf(item);
  // A title that is the beginning of the text is not said twice.
  const title = beginning !== "" && text.startsWith(beginning) ? text : beginning;
  const hasMore = text.trim() !== "" && !title.includes(text);
  return (
    <div className={styles.item} data-selected={isSelected || undefined} data-kind={item.kind}>
      <span className={styles.time}>
        <Moment at={item.at} withDay={false} />
      </span>
      <span className={styles.shape} data-tone={item.status ? (STATUS_TONES[item.status] ?? "idle") : tone} aria-hidden="true">
        {shape}
      </span>
      <div className={styles.what}>
        <p className={styles.title}>
          <AgentLink name={nameOf(item.actor)} /> <bdi>{title}</bdi>{" "}
          <span className={styles.marks}>
            {begins && <span>attempt {item.attempt}</span>}
            {item.duration_ms !== null && item.kind === "tool" && <span>{roughly(item.duration_ms)}</span>}
            {item.dialect && <Dialect name={item.dialect} />}
            <Link href={`/ledger?at=${item.position}`} title={`entry ${item.position} of the ledger, ${item.type}`}>
              #{item.position}
            </Link>
          </span>
        </p>
        {hasMore && (
          <button type="button" className={styles.text} data-open={isOpen || undefined} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} dir="auto">
            {text}
          </button>
        )}
      </div>
    </div>
  );
});
