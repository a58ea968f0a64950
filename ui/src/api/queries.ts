// What the pages read: one key for each resource, so that the live stream can tell what is out of date.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { noteHubTime } from "../parts/time";
import { get, withQuery } from "./client";
import type {
  Agent,
  AgentPage,
  EventPage,
  HandoffDetail,
  HandoffDiagnosis,
  HandoffPage,
  HistoryPage,
  NumbersResource,
  Runs,
  Session,
  StatusResource,
  TaskDetail,
  TaskDiff,
  TaskPage,
  TokenPage,
} from "./types";

const name = encodeURIComponent;

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: ({ signal }) => get<Session>("/v1/session", signal),
  staleTime: Infinity,
  retry: false,
});

export const statusQuery = queryOptions({
  queryKey: ["status"],
  queryFn: async ({ signal }) => {
    const status = await get<StatusResource>("/v1/status", signal);
    // Before anything is drawn: ages are those of the hub's clock.
    noteHubTime(status.at);
    return status;
  },
  // A heartbeat adds no entry to the ledger, so the stream does not tell of it.
  refetchInterval: (query) => (query.state.data?.working.length ? 30_000 : false),
});

export const taskQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id],
    queryFn: ({ signal }) => get<TaskDetail>(`/v1/tasks/${name(id)}`, signal),
  });

export const runsQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id, "runs"],
    queryFn: ({ signal }) => get<Runs>(`/v1/runs/${name(id)}?limit=1000`, signal),
  });

export const pastTaskQuery = (id: string, position: number) =>
  queryOptions({
    queryKey: ["past", position, id],
    queryFn: ({ signal }) => get<TaskDetail>(`/v1/tasks/${name(id)}?as_of=${position}`, signal),
    staleTime: Infinity,
  });

export const diffQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id, "diff"],
    queryFn: ({ signal }) => get<TaskDiff>(`/v1/tasks/${name(id)}/diff`, signal),
    retry: false,
  });

export const tasksPage = (status: string, assignee: string, limit: number, signal: AbortSignal) =>
  get<TaskPage>(withQuery("/v1/tasks", { status, assignee, limit }), signal);

export const agentsQuery = queryOptions({
  queryKey: ["agents"],
  queryFn: ({ signal }) => get<AgentPage>("/v1/agents?limit=1000", signal),
});

export const agentQuery = (agent: string) =>
  queryOptions({
    queryKey: ["agents", agent],
    queryFn: ({ signal }) => get<Agent>(`/v1/agents/${name(agent)}`, signal),
  });

export const tokensQuery = (agent: string) =>
  queryOptions({
    queryKey: ["agents", agent, "tokens"],
    queryFn: ({ signal }) => get<TokenPage>(`/v1/agents/${name(agent)}/tokens`, signal),
  });

export const numbersQuery = (days: number) =>
  queryOptions({
    queryKey: ["numbers", days],
    queryFn: ({ signal }) => get<NumbersResource>(withQuery("/v1/numbers", { days }), signal),
    // An hour begins without an entry, too.
    refetchInterval: 60_000,
  });

export const handoffsQuery = (status: string, task: string) =>
  queryOptions({
    queryKey: ["handoffs", status, task],
    queryFn: ({ signal }) => get<HandoffPage>(withQuery("/v1/handoffs", { status, task, limit: 200 }), signal),
    placeholderData: keepPreviousData,
  });

export const handoffQuery = (id: string) =>
  queryOptions({
    queryKey: ["handoff", id],
    queryFn: ({ signal }) => get<HandoffDetail>(`/v1/handoffs/${name(id)}`, signal),
  });

export const diagnosisQuery = (id: string) =>
  queryOptions({
    queryKey: ["handoff", id, "diagnosis"],
    queryFn: ({ signal }) => get<HandoffDiagnosis>(`/v1/handoffs/${name(id)}/diagnosis`, signal),
  });

export const historyQuery = (id: string) =>
  queryOptions({
    queryKey: ["task", id, "history"],
    queryFn: ({ signal }) => get<HistoryPage>(`/v1/tasks/${name(id)}/events?limit=1000`, signal),
  });

export const entriesPage = (after: number, limit: number, type: string, signal: AbortSignal, task = "") =>
  get<EventPage>(withQuery("/v1/events", { after, limit, type, task }), signal);
