// What the last days brought, counted from the ledger: figures, and bars of a day and of two weeks.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { numbersQuery, statusQuery } from "../api/queries";
import type { CountsResource, NumbersResource } from "../api/types";
import { Failed } from "../parts/states";
import { hubNow, roughly } from "../parts/time";
import styles from "./Numbers.module.css";

type Bars = readonly { name: string; tone: string; of: (counts: CountsResource) => number }[];

const HOUR_MS = 3_600_000;
const DAYS = 14;

const average = (ms: number, count: number): string => (count ? roughly(ms / count) : "–");
const amount = (value: number): string => value.toLocaleString(undefined, { notation: value >= 100_000 ? "compact" : "standard", maximumFractionDigits: 2 });

const MEASURES: Record<string, { bars: Bars; words: (value: number) => string }> = {
  Work: {
    bars: [
      { name: "finished", tone: "good", of: (one) => one.finished },
      { name: "failures", tone: "bad", of: (one) => one.failures },
    ],
    words: amount,
  },
  Waiting: {
    bars: [
      { name: "for review", tone: "wait", of: (one) => one.reviewMs },
      { name: "for an answer", tone: "hand", of: (one) => one.answerMs },
    ],
    words: roughly,
  },
  Tokens: { bars: [{ name: "tokens", tone: "run", of: (one) => one.tokens }], words: amount },
  Cost: { bars: [{ name: "cost", tone: "run", of: (one) => one.cost }], words: amount },
};

/** The last day in one line. */
export function NumberStrip() {
  const { data } = useQuery(numbersQuery(1));
  if (!data) return null;
  return (
    <section className={styles.strip} aria-label="The last 24 hours">
      <Figures numbers={data} />
    </section>
  );
}

/** The last two weeks: figures, and the bars of one measure. */
export function NumberBoard() {
  const found = useQuery(numbersQuery(DAYS));
  const [chosen, setChosen] = useState("Work");
  if (!found.data) return found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : null;
  const numbers = found.data;
  const { total } = numbers;
  const names = Object.keys(MEASURES).filter((name) => (name !== "Tokens" || total.tokens) && (name !== "Cost" || total.cost));
  const isCut = Date.parse(numbers.at) - Date.parse(numbers.since) < DAYS * 24 * HOUR_MS - HOUR_MS;
  return (
    <section className={styles.board} aria-label="The last two weeks">
      <Figures numbers={numbers} />
      <div className={styles.measures} role="group" aria-label="What is drawn">
        {names.map((name) => (
          <button key={name} type="button" aria-pressed={name === chosen} onClick={() => setChosen(name)}>
            {name}
          </button>
        ))}
        {isCut && <small>counted since {new Date(numbers.since).toLocaleString()}: the ledger is very long</small>}
      </div>
      <div className={styles.plots}>
        <Plot title="The last 24 hours" measure={chosen} slots={byHour(numbers)} />
        <Plot title="The last 14 days" measure={chosen} slots={byDay(numbers)} />
      </div>
    </section>
  );
}

function Figures({ numbers }: { numbers: NumbersResource }) {
  const status = useQuery(statusQuery);
  const { total } = numbers;
  const waiting = Object.values(status.data?.attentionCounts ?? {}).reduce((sum, one) => sum + one, 0);
  return (
    <dl className={styles.figures} tabIndex={0}>
      <Figure name={total.finished === 1 ? "task finished" : "tasks finished"} value={amount(total.finished)} />
      <Figure name={total.failures === 1 ? "failure" : "failures"} value={amount(total.failures)} tone={total.failures ? "bad" : undefined} />
      <Figure name={waiting === 1 ? "waits for a person" : "wait for a person"} value={amount(waiting)} tone={waiting ? "wait" : undefined} />
      <Figure name="in review" value={average(total.reviewMs, total.reviews)} hint={`mean of ${total.reviews}`} />
      <Figure name="until an answer" value={average(total.answerMs, total.answers)} hint={`mean of ${total.answers}`} />
      {total.tokens > 0 && <Figure name="tokens" value={amount(total.tokens)} />}
      {total.cost > 0 && <Figure name="cost" value={amount(total.cost)} />}
    </dl>
  );
}

function Figure({ name, value, tone, hint }: { name: string; value: string; tone?: string | undefined; hint?: string }) {
  return (
    <div title={hint}>
      <dt>{name}</dt>
      <dd data-tone={tone}>{value}</dd>
    </div>
  );
}

interface Slot {
  label: string;
  counts: readonly CountsResource[];
}

function byHour({ hours }: NumbersResource): Slot[] {
  const last = Math.floor(hubNow() / HOUR_MS) * HOUR_MS;
  return Array.from({ length: 24 }, (_, index) => {
    const at = last - (23 - index) * HOUR_MS;
    const label = new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
    return { label, counts: hours.filter((hour) => Date.parse(hour.at) === at) };
  });
}

/** Days of the reader's zone. */
function byDay({ hours }: NumbersResource): Slot[] {
  return Array.from({ length: DAYS }, (_, index) => {
    const day = new Date(hubNow());
    day.setDate(day.getDate() - (DAYS - 1 - index));
    const label = day.toLocaleDateString(undefined, { day: "numeric", month: "short" });
    return { label, counts: hours.filter((hour) => new Date(hour.at).toDateString() === day.toDateString()) };
  });
}

function Plot({ title, measure, slots }: { title: string; measure: string; slots: readonly Slot[] }) {
  const { bars, words } = MEASURES[measure]!;
  const rows = slots.map((slot) => ({ label: slot.label, values: bars.map((bar) => slot.counts.reduce((sum, one) => sum + bar.of(one), 0)) }));
  const most = Math.max(...rows.map((row) => row.values.reduce((sum, one) => sum + one, 0)));
  return (
    <figure className={styles.plot}>
      <figcaption>
        {title}
        <span>
          {bars.map((bar) => (
            <span key={bar.name} data-tone={bar.tone} className={styles.key}>
              {bar.name}
            </span>
          ))}
          {most > 0 && <span className={styles.most}>at most {words(most)}</span>}
        </span>
      </figcaption>
      <div className={styles.bars} aria-hidden="true">
        {rows.map((row) => (
          <div key={row.label} title={`${row.label}: ${row.values.map((value, index) => `${words(value)} ${bars[index]!.name}`).join(", ")}`}>
            {row.values.map((value, index) => value > 0 && <i key={bars[index]!.name} data-tone={bars[index]!.tone} style={{ height: `${(value / most) * 100}%` }} />)}
          </div>
        ))}
      </div>
      <div className={styles.ends} aria-hidden="true">
        <span>{rows[0]?.label}</span>
        <span>{rows.at(-1)?.label}</span>
      </div>
      <table className="visually-hidden">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th>From</th>
            {bars.map((bar) => (
              <th key={bar.name}>{bar.name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.label}>
              <th>{row.label}</th>
              {row.values.map((value, index) => (
                <td key={bars[index]!.name}>{words(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
