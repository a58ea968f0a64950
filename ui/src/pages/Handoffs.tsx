// Handoffs: who hands what to whom, where each stands and by when; one of them in full beside the list.
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useSearchParams } from "wouter";

import { handoffsQuery } from "../api/queries";
import { Chains } from "../handoff/Chains";
import { HandoffPeek } from "../handoff/HandoffPeek";
import { AgentLink, TaskLink } from "../parts/links";
import { HandoffStatus, Mark } from "../parts/marks";
import page from "../parts/page.module.css";
import { Empty, Failed, Loading } from "../parts/states";
import { Ago } from "../parts/time";
import { useKeys } from "../shell/keys";

const STATES = ["proposed", "validating", "accepted", "activated", "rejected", "completed", "closed"];

export function Handoffs({ id }: { id: string | null }) {
  const [, navigate] = useLocation();
  const [parameters, setParameters] = useSearchParams();
  const state = parameters.get("status") ?? "";
  const found = useQuery(handoffsQuery(state, ""));
  const handoffs = found.data?.handoffs ?? [];
  const search = parameters.size ? `?${parameters}` : "";
  const open = (next: string | null) => navigate(`/handoffs${next === null ? "" : `/${encodeURIComponent(next)}`}${search}`, { replace: id !== null });
  const step = (by: number) => {
    const at = handoffs.findIndex((one) => one.handoff_id === id);
    const next = handoffs[Math.max(0, Math.min(handoffs.length - 1, at + by))];
    if (next) open(next.handoff_id);
  };
  useKeys({ j: () => step(1), k: () => step(-1), Escape: () => open(null) });
  return (
    <div className={page.page} data-split={id === null ? undefined : ""}>
      <section className={page.main} aria-labelledby="handoffs">
        <header className={page.head}>
          <h1 id="handoffs">Handoffs</h1>
          <label>
            <span className="visually-hidden">Only in this state</span>
            <select value={state} onChange={(event) => setParameters(event.target.value ? { status: event.target.value } : {}, { replace: true })}>
              <option value="">All states</option>
              {STATES.map((one) => (
                <option key={one} value={one}>
                  {one[0]!.toUpperCase() + one.slice(1)}
                </option>
              ))}
            </select>
          </label>
        </header>
        {found.data === undefined ? (
          found.error ? (
            <Failed error={found.error} retry={() => void found.refetch()} />
          ) : (
            <Loading />
          )
        ) : handoffs.length === 0 ? (
          <Empty command="dragoman handoff initiate --help">{state ? `No handoff is ${state}.` : "Nothing was handed over yet."}</Empty>
        ) : (
          <>
          <Chains handoffs={handoffs} selected={id} search={search} />
          <table className={page.table}>
            <thead>
              <tr>
                <th>State</th>
                <th>Handoff</th>
                <th>From → to</th>
                <th className={page.wide}>Task</th>
                <th className={page.number}>Due</th>
              </tr>
            </thead>
            <tbody>
              {handoffs.map((handoff) => (
                <tr key={handoff.handoff_id} data-selected={handoff.handoff_id === id || undefined}>
                  <td>
                    <HandoffStatus status={handoff.status} />
                  </td>
                  <td>
                    <Link className={page.choose} href={`/handoffs/${encodeURIComponent(handoff.handoff_id)}${search}`} dir="auto">
                      {handoff.title}
                    </Link>
                  </td>
                  <td>
                    <AgentLink name={handoff.from_agent} /> → <AgentLink name={handoff.to_agent} />
                  </td>
                  <td className={page.wide}>
                    <TaskLink id={handoff.task_id} />
                  </td>
                  <td className={page.number}>
                    {handoff.escalated ? (
                      <Mark shape="▲" tone="bad">
                        late
                      </Mark>
                    ) : handoff.due_by ? (
                      <Ago at={handoff.due_by} until />
                    ) : (
                      <span className={page.quiet}>–</span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          </>
        )}
        {found.data?.next != null && <p className={`${page.more} ${page.small}`}>Only the newest 200 are listed; choose a state to see more of it.</p>}
      </section>
      {id !== null && (
        <aside className={page.panel} aria-label="Handoff">
          <HandoffPeek key={id} id={id} onClose={() => open(null)} />
        </aside>
      )}
    </div>
  );
}
