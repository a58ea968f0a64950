// Notices of the browser about what has begun to wait for a person, while nobody looks at the page.
import { useEffect, useRef, useState } from "react";

import type { AttentionResource } from "../api/types";

const KEY = "dragoman-notices";

export const canNotify = "Notification" in window;

const keyOf = (item: AttentionResource): string => [item.kind, item.task, item.agent, item.question, item.mail, item.handoff].join("\0");

const isWanted = (): boolean => canNotify && localStorage.getItem(KEY) === "on" && Notification.permission === "granted";

/** Whether they are on, and a function that turns them on or off. */
export function useNotices(items: readonly AttentionResource[] | undefined): [boolean, (on: boolean) => Promise<void>] {
  const [isOn, setOn] = useState(isWanted);
  const known = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    if (!items) return;
    const before = known.current;
    known.current = new Set(items.map(keyOf));
    // What waited when the page was opened is no news.
    const news = before ? items.filter((item) => !before.has(keyOf(item))) : [];
    if (!news.length || !isOn || document.visibilityState === "visible") return;
    new Notification(news.length === 1 ? "Somebody waits for you" : `${news.length} wait for you`, { body: news[0]!.text, tag: KEY, icon: "/icon.svg" });
  }, [items, isOn]);
  const turn = async (on: boolean) => {
    const allowed = on && (await Notification.requestPermission()) === "granted";
    if (allowed) localStorage.setItem(KEY, "on");
    else localStorage.removeItem(KEY);
    setOn(allowed);
  };
  return [isOn, turn];
}
