// What a list or a panel shows when it has nothing to show: it loads, is empty, or failed.
import { type ReactNode, useEffect, useState } from "react";

import { Problem } from "../api/client";
import { Button } from "./controls";
import styles from "./states.module.css";

/** Rows of the real height, after a moment: what is fast does not flicker. */
export function Loading({ rows = 4 }: { rows?: number }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 200);
    return () => clearTimeout(timer);
  }, []);
  if (!isLate) return null;
  return (
    <div className={styles.loading} role="status" aria-label="loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} />
      ))}
    </div>
  );
}

/** One sentence, and the command that fills the place. */
export function Empty({ children, command }: { children: ReactNode; command?: string }) {
  return (
    <div className={styles.empty}>
      <p>{children}</p>
      {command && <Command text={command} />}
    </div>
  );
}

export function Command({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <span className={styles.command}>
      <code>{text}</code>
      <button type="button" onClick={() => void copy()} aria-label={`copy ${text}`}>
        {isCopied ? "copied" : "copy"}
      </button>
    </span>
  );
}

export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = error instanceof Problem ? error : new Problem(0, "page_error", String(error));
  return (
    <div className={styles.failed} role="alert">
      <p>
        <strong>▲ {problem.status >= 400 && problem.status < 500 ? "The hub refused this" : "This could not be read"}.</strong> <bdi>{problem.message}</bdi>
      </p>
      <p className={styles.code}>
        <code>{problem.code}</code>
        {retry && <Button onClick={retry}>Try again</Button>}
      </p>
    </div>
  );
}

/** Said where somebody comes from the past to what has none. */
export function ShowsPresent({ children }: { children?: ReactNode }) {
  return <p className={styles.present}>This shows the present, not the past. {children}</p>;
}
