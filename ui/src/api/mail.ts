// Letters: operations of the dialect of letters, which name their own shapes.
import { queryOptions } from "@tanstack/react-query";

import { post } from "./client";

export interface Letter {
  id: string;
  type: string;
  kind?: string;
  thread_id: string;
  from: string;
  to: string[];
  cc: string[];
  subject: string;
  body_md: string;
  timestamp: string;
  importance: string;
  ack_required: boolean;
  acknowledged: boolean;
  read: boolean;
  bead_id: string;
  position: number;
  acked_by: string[];
  read_by: string[];
  waits_for: string[];
  overdue: boolean;
}

interface LetterPage {
  messages: Letter[];
  cursor: number;
}

export type Box = "in" | "sent" | "overdue" | "waiting";

const PAGE = 100;
const MAX_PAGES = 10;

/** The newest letters of a box, the newest first: a box is read from its beginning. */
export const boxQuery = (agent: string, box: Box) =>
  queryOptions({
    queryKey: ["mail", "box", agent, box],
    queryFn: async () => {
      const letters: Letter[] = [];
      let after = 0;
      for (let page = 0; page < MAX_PAGES; page++) {
        const { messages, cursor } = await post<LetterPage>("/v1/agentmail/mail.inbox", { agent, box, after, limit: PAGE });
        letters.push(...messages);
        if (messages.length < PAGE) break;
        after = cursor;
      }
      return letters.reverse();
    },
  });

export const threadQuery = (thread: string) =>
  queryOptions({
    queryKey: ["mail", "thread", thread],
    queryFn: () => post<LetterPage>("/v1/agentmail/mail.thread", { thread_id: thread, limit: PAGE }),
  });

export const letterQuery = (id: string) =>
  queryOptions({
    queryKey: ["mail", "letter", id],
    queryFn: () => post<Letter>("/v1/agentmail/mail.show", { id }),
  });
