// The same story as bars: a lane for each agent, attempts and tool calls with their lengths, idle time
// folded. Drag over it to see only that part of the story.
import { type PointerEvent, useMemo, useRef, useState } from "react";

import type { Run, StoryItemResource } from "../api/types";
import { formatClock, hubNow, roughly, useTick } from "../parts/time";
import styles from "./story.module.css";
import { groupOf, nameOf } from "./story";

export interface Span {
  from: number;
  to: number;
}

interface Bar extends Span {
  lane: string;
  kind: "attempt" | "tool" | "moment";
  tone: string;
  label: string;
  position: number | null;
}

/** Idle time longer than this share of the rest is drawn as this share. */
const FOLD = 0.08;
const MIN_FOLD_MS = 120_000;
const MAX_BARS = 2_000;

export function Timeline({ items, runs, span, onSpan, onSelect }: { items: readonly StoryItemResource[]; runs: readonly Run[]; span: Span | null; onSpan: (span: Span | null) => void; onSelect: (position: number) => void }) {
  const isLive = runs.some((run) => run.endedAt === null);
  useTick(isLive ? 5_000 : 3_600_000);
  const now = isLive ? Math.ceil(hubNow() / 5_000) * 5_000 : 0;
  const { bars, lanes, scale } = useMemo(() => layOut(items, runs, now), [items, runs, now]);
  const track = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  if (!bars.length) return null;

  const shareOf = (event: PointerEvent) => {
    const box = track.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  };
  const finish = () => {
    if (drag) {
      const [from, to] = drag[0] < drag[1] ? drag : [drag[1], drag[0]];
      if (to - from > 0.01) onSpan({ from: scale.toTime(from), to: scale.toTime(to) });
    }
    setDrag(null);
  };
  const shown = drag ? [Math.min(...drag), Math.max(...drag)] : span ? [scale.toShare(span.from), scale.toShare(span.to)] : null;
  return (
    <figure className={styles.timeline}>
      <figcaption className="visually-hidden">
        Timeline of {lanes.length} agents; the story below says the same.
      </figcaption>
      <div className={styles.names} aria-hidden="true">
        {lanes.map((lane) => (
          <bdi key={lane}>{lane}</bdi>
        ))}
      </div>
      <div
        ref={track}
        className={styles.track}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          setDrag([shareOf(event), shareOf(event)]);
        }}
        onPointerMove={(event) => drag && event.buttons === 1 && setDrag([drag[0], shareOf(event)])}
        onPointerUp={finish}
        onPointerLeave={finish}
      >
        {lanes.map((lane) => (
          <div key={lane} className={styles.lane}>
            {bars
              .filter((bar) => bar.lane === lane)
              .map((bar, index) => {
                const left = scale.toShare(bar.from);
                const width = scale.toShare(bar.to) - left;
                return (
                  <span
                    key={index}
                    className={styles.bar}
                    data-kind={bar.kind}
                    data-tone={bar.tone}
                    style={{ left: `${left * 100}%`, width: bar.kind === "moment" ? undefined : `max(2px, ${width * 100}%)` }}
                    title={bar.label}
                    onClick={() => bar.position !== null && onSelect(bar.position)}
                  />
                );
              })}
          </div>
        ))}
        {scale.folds.map((fold) => (
          <span key={fold.at} className={styles.fold} style={{ left: `${fold.at * 100}%`, width: `${fold.width * 100}%` }} title={`${roughly(fold.ms)} in which nothing happened`}>
            {roughly(fold.ms)}
          </span>
        ))}
        {shown && <span className={styles.brush} style={{ left: `${shown[0]! * 100}%`, width: `${(shown[1]! - shown[0]!) * 100}%` }} />}
      </div>
      <div className={styles.ends} aria-hidden="true">
        <span>{formatClock(scale.toTime(0))}</span>
        <span>{formatClock(scale.toTime(1))}</span>
      </div>
    </figure>
  );
}

function layOut(items: readonly StoryItemResource[], runs: readonly Run[], now: number) {
  const bars: Bar[] = runs.map((run) => ({
    lane: run.agent,
    kind: "attempt",
    from: Date.parse(run.startedAt),
    to: run.endedAt ? Date.parse(run.endedAt) : now,
    tone: run.status === "running" || run.endedAt === null ? "run" : run.report?.outcome === "done" ? "good" : run.report ? "wait" : "bad",
    label: `attempt ${run.attempt} of ${run.agent}: ${run.status}${run.reason ? `, ${run.reason}` : ""}`,
    position: null,
  }));
  for (const item of items.slice(-MAX_BARS)) {
    const at = Date.parse(item.at);
    const isTool = item.kind === "tool" && item.duration_ms !== null;
    if (groupOf(item) === "terminal" || groupOf(item) === "thoughts") continue;
    bars.push({
      lane: nameOf(item.actor),
      kind: isTool ? "tool" : "moment",
      from: isTool ? at - (item.duration_ms ?? 0) : at,
      to: at,
      tone: item.kind === "question" ? "wait" : item.kind === "handoff" || item.kind === "letter" ? "hand" : "idle",
      label: `${formatClock(item.at)} ${item.title}`,
      position: item.position,
    });
  }
  const lanes = [...new Set(bars.map((bar) => bar.lane))].slice(0, 8);
  return { bars: bars.filter((bar) => lanes.includes(bar.lane)), lanes, scale: fold(bars) };
}

/** A scale from times to shares of the width, in which long idle times are short. */
function fold(bars: readonly Bar[]) {
  const busy: Span[] = [];
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    const last = busy.at(-1);
    // An attempt that only waits is not busy: its moments are.
    if (bar.kind === "attempt") {
      busy.push({ from: bar.from, to: bar.from }, { from: bar.to, to: bar.to });
    } else if (last && bar.from <= last.to) last.to = Math.max(last.to, bar.to);
    else busy.push({ from: bar.from, to: bar.to });
  }
  const points = busy.flatMap((one) => [one.from, one.to]).sort((a, b) => a - b);
  const begin = points[0] ?? 0;
  const end = Math.max(points.at(-1) ?? 1, begin + 1);
  const gaps: Span[] = [];
  for (let index = 1; index < points.length; index++) {
    const from = points[index - 1]!;
    const to = points[index]!;
    const isBusy = bars.some((bar) => bar.kind === "tool" && bar.from <= from && bar.to >= to);
    if (!isBusy && to - from > Math.max(MIN_FOLD_MS, (end - begin) * 0.12)) gaps.push({ from, to });
  }
  const idle = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const active = Math.max(1, end - begin - idle);
  const foldMs = active * FOLD;
  const total = active + gaps.length * foldMs;
  const drawn = (at: number) => {
    let ms = at - begin;
    for (const gap of gaps) {
      if (at >= gap.to) ms -= gap.to - gap.from - foldMs;
      else if (at > gap.from) ms -= (at - gap.from) * (1 - foldMs / (gap.to - gap.from));
    }
    return ms;
  };
  const toShare = (at: number) => Math.max(0, Math.min(1, drawn(at) / total));
  const toTime = (share: number) => {
    let low = begin;
    let high = end;
    for (let step = 0; step < 40; step++) {
      const middle = (low + high) / 2;
      if (drawn(middle) / total < share) low = middle;
      else high = middle;
    }
    return high;
  };
  const folds = gaps.map((gap) => ({ at: toShare(gap.from), width: toShare(gap.to) - toShare(gap.from), ms: gap.to - gap.from }));
  return { toShare, toTime, folds };
}
