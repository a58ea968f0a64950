// The same action on many things: asked once, with what it is about; what was refused is told by its reason.
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { Problem } from "../api/client";
import { Dialog, wordsOf } from "./controls";
import styles from "./controls.module.css";

const AT_ONCE = 6;
const MAX_NAMED = 12;

interface BatchDialogProps {
  title: string;
  confirm: string;
  /** Names of what it is about. */
  names: readonly string[];
  run: (name: string, form: FormData) => Promise<unknown>;
  onClose: () => void;
  children?: ReactNode;
}

export function BatchDialog({ title, confirm, names, run, onClose, children }: BatchDialogProps) {
  const client = useQueryClient();
  const [done, setDone] = useState<number | null>(null);
  const runAll = async (form: FormData) => {
    const waiting = [...names];
    const reasons = new Map<string, number>();
    let ended = 0;
    setDone(0);
    const work = async () => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        try {
          await patiently(() => run(name, form));
        } catch (error) {
          const reason = wordsOf(error).replaceAll(name, "it");
          reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        }
        setDone(++ended);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    await client.invalidateQueries({ refetchType: "active" });
    setDone(null);
    const refused = [...reasons.values()].reduce((sum, one) => sum + one, 0);
    if (refused) throw new Error(`${names.length - refused} done, ${refused} refused. ${[...reasons].map(([reason, count]) => `${count}: ${reason}`).join(" · ")}`);
  };
  return (
    <Dialog title={title} confirm={confirm} run={runAll} onClose={onClose} isEmpty={names.length === 0}>
      {children}
      {names.length > 0 && (
        <p className={styles.named}>
          {names.slice(0, MAX_NAMED).map((name) => (
            <code key={name}>{name}</code>
          ))}
          {names.length > MAX_NAMED && <span>and {(names.length - MAX_NAMED).toLocaleString()} more</span>}
        </p>
      )}
      <p role="status">{done !== null && `${done.toLocaleString()} of ${names.length.toLocaleString()}`}</p>
    </Dialog>
  );
}

/** Waits where the hub takes only so many requests in a second. */
async function patiently(run: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await run();
      return;
    } catch (error) {
      if (!(error instanceof Problem && error.status === 429)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}
