// Search and commands: pages, saved views, agents, tasks by their words, and what the keys do.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";

import { get, withQuery } from "../api/client";
import { statusQuery } from "../api/queries";
import type { TaskPage } from "../api/types";
import { statusName } from "../parts/marks";
import styles from "./Palette.module.css";
import { useViews } from "./views";

export interface Command {
  name: string;
  hint: string;
  run: () => void;
}

const MAX_TASKS = 12;
const MAX_OTHERS = 8;
const PAUSE_MS = 150;

export function Palette({ commands, onClose }: { commands: readonly Command[]; onClose: () => void }) {
  const [, navigate] = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [text, setText] = useState("");
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const views = useViews();
  const status = useQuery(statusQuery);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    const timer = setTimeout(() => setWords(text.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const tasks = useQuery({
    queryKey: ["tasks", "words", words],
    queryFn: ({ signal }) => get<TaskPage>(withQuery("/v1/tasks", { words, limit: MAX_TASKS }), signal),
    enabled: words !== "",
    placeholderData: keepPreviousData,
  });

  const goTo = (path: string) => () => navigate(path);
  const others: Command[] = [
    ...commands,
    ...views.map((view) => ({ name: view.name, hint: "saved view", run: goTo(view.path) })),
    ...(status.data?.agents ?? []).map((agent) => ({ name: agent.name, hint: "agent", run: goTo(`/agents/${encodeURIComponent(agent.name)}`) })),
  ].filter((one) => `${one.name} ${one.hint}`.toLowerCase().includes(text.trim().toLowerCase()));
  const found: Command[] = words && text.trim() ? (tasks.data?.tasks ?? []).map((task) => ({ name: task.title, hint: `${task.id} · ${statusName(task.status)}`, run: goTo(`/tasks/${encodeURIComponent(task.id)}`) })) : [];
  const options = [...others.slice(0, MAX_OTHERS), ...found];
  const chosen = Math.min(at, options.length - 1);

  const choose = (option: Command | undefined) => {
    if (!option) return;
    onClose();
    option.run();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(options.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
    else if (event.key === "Enter") choose(options[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} className={styles.palette} aria-label="Search and commands" onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <input
        role="combobox"
        aria-label="Search and commands"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={options.length ? `${id}-${chosen}` : undefined}
        placeholder="Task, agent, page or command"
        autoComplete="off"
        spellCheck={false}
        maxLength={300}
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <ul id={id} role="listbox" aria-label="Found">
        {options.map((option, index) => (
          <li key={`${option.hint} ${option.name}`} id={`${id}-${index}`} role="option" aria-selected={index === chosen} onMouseMove={() => setAt(index)} onClick={() => choose(option)}>
            <bdi>{option.name}</bdi> <small>{option.hint}</small>
          </li>
        ))}
      </ul>
      {options.length === 0 && <p>{tasks.isFetching || words !== text.trim() ? "Searching…" : "Nothing has this name."}</p>}
    </dialog>
  );
}
