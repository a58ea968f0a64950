// The story of a task as it grows: what is new is appended, and nothing is read twice.
import { queryOptions, type QueryClient } from "@tanstack/react-query";

import { get, withQuery } from "../api/client";
import type { StoryItemResource, StoryPage } from "../api/types";

export interface Story {
  items: readonly StoryItemResource[];
}

const PAGE = 500;
/** More than this is not shown: the oldest ones stay out. */
export const MAX_ITEMS = 50_000;

export const storyQuery = (id: string, client: QueryClient) => {
  const queryKey = ["story", id] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Story> => {
      const old = client.getQueryData<Story>(queryKey)?.items ?? [];
      const added: StoryItemResource[] = [];
      let after: number | null = old.at(-1)?.position ?? 0;
      while (after !== null) {
        const page: StoryPage = await get(withQuery(`/v1/tasks/${encodeURIComponent(id)}/story`, { after, limit: PAGE }), signal);
        added.push(...page.items);
        after = page.next;
      }
      return { items: added.length ? [...old, ...added].slice(-MAX_ITEMS) : old };
    },
    // Items of different tasks are never compared: what is old stays as it is.
    structuralSharing: false,
  });
};

export type Group = "decisions" | "messages" | "tools" | "thoughts" | "terminal";

export const GROUPS: Record<Group, string> = {
  decisions: "Decisions",
  messages: "Letters and handoffs",
  tools: "Tools",
  thoughts: "Thoughts",
  terminal: "Terminal",
};

export function groupOf(item: StoryItemResource): Group {
  switch (item.kind) {
    case "letter":
    case "handoff":
      return "messages";
    case "tool":
    case "trace":
      return "tools";
    case "thought":
    case "turn":
      return "thoughts";
    case "terminal":
      return "terminal";
    default:
      return "decisions";
  }
}

/** What a recorded event of a trace says, without the words around it. */
export function titleOf(item: StoryItemResource): string {
  const [, type, said] = /^([A-Z_]+) in session [^:]*?(?:: (.*))?$/s.exec(item.title) ?? [];
  if (type === undefined) return item.title;
  const ends = type === "TOOL_LIFECYCLE_COMPLETED" ? "done: " : "";
  return `${ends}${said ?? (item.kind === "thought" ? "thinks" : "")}`;
}

/** The name of an actor, without its role. */
export const nameOf = (actor: string): string => actor.slice(actor.indexOf(":") + 1);
