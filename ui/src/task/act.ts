// What a person does with a task, an agent or a handoff; what is shown is read again afterwards.
import { useQueryClient } from "@tanstack/react-query";

import { post } from "../api/client";

export type Act = (path: string, body?: unknown) => Promise<void>;

export function useAct(): Act {
  const client = useQueryClient();
  return async (path, body) => {
    await post(path, body);
    // The stream tells it, too; but not while updates are paused.
    await client.invalidateQueries({ refetchType: "active" });
  };
}

export const taskPath = (id: string, action: string): string => `/v1/tasks/${encodeURIComponent(id)}/${action}`;
