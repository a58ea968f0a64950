// Buttons, and the dialog that asks before something is done.
import { type ButtonHTMLAttributes, cloneElement, type FormEvent, type ReactElement, type ReactNode, useEffect, useId, useRef, useState } from "react";

import styles from "./controls.module.css";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: "plain" | "primary" | "danger" | "quiet" };

export function Button({ kind = "plain", className, ...rest }: ButtonProps) {
  return <button type="button" {...rest} className={`${styles.button} ${className ?? ""}`} data-kind={kind} />;
}

/** A button that does something at the hub; a refusal is told where it was pressed. */
export function ActionButton({ run, children, kind = "plain" }: { run: () => Promise<unknown>; children: ReactNode; kind?: "plain" | "primary" | "danger" }) {
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const press = async () => {
    setBusy(true);
    setRefusal("");
    try {
      await run();
    } catch (error) {
      setRefusal(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <span className={styles.action}>
      <Button kind={kind} disabled={isBusy} onClick={() => void press()}>
        {children}
      </Button>
      {refusal && <Refusal text={refusal} onClose={() => setRefusal("")} />}
    </span>
  );
}

export function Refusal({ text, onClose }: { text: string; onClose?: () => void }) {
  return (
    <span className={styles.refusal} role="alert">
      <bdi>▲ {text}</bdi>
      {onClose && (
        <button type="button" aria-label="dismiss" onClick={onClose}>
          ×
        </button>
      )}
    </span>
  );
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface DialogProps {
  title: string;
  /** What is done when it is confirmed; the dialog stays open with the reason if that is refused. */
  run: (form: FormData) => Promise<unknown>;
  confirm: string;
  kind?: "primary" | "danger";
  onClose: () => void;
  /** There is nothing to confirm. */
  isEmpty?: boolean;
  children: ReactNode;
}

export function Dialog({ title, run, confirm, kind = "primary", onClose, isEmpty = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  useEffect(() => {
    const opened = dialog.current;
    if (opened && !opened.open) opened.showModal();
  }, []);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    setRefusal("");
    try {
      await run(new FormData(event.currentTarget));
      onClose();
    } catch (error) {
      setRefusal(wordsOf(error));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} className={styles.dialog} aria-labelledby={heading} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id={heading}>{title}</h2>
        {children}
        {refusal && <Refusal text={refusal} />}
        <div className={styles.buttons}>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={kind} type="submit" disabled={isBusy || isEmpty}>
            {confirm}
          </Button>
        </div>
      </form>
    </dialog>
  );
}

type Control = ReactElement<{ id?: string; "aria-describedby"?: string | undefined }>;

export function Field({ label, children, hint }: { label: string; children: Control; hint?: string }) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {cloneElement(children, { id, "aria-describedby": hint ? `${id}-hint` : undefined })}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}
