"""Agents over HTTP: list, show, pause, resume."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core import not_found
from dragoman.core.agent import DEFAULT_PAUSE_REASON, AgentRecord, PauseAgent, ResumeAgent
from dragoman.core.base import Command, Role
from dragoman.core.errors import Refusal
from dragoman.core.limits import MAX_REASON
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent, list_agents
from dragoman.engine.schemas.agents import AgentActivity, PauseResource, pause_resource
from dragoman.services.dispatch.agent_slots import AgentState
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint, Query
from dragoman.surfaces.http.parameters import Limit


class AgentFilter(Query, frozen=True):
    """Filters for a list of agents."""

    role: Annotated[Role, Meta(description="Only in this role.")] | UnsetType = UNSET
    speaks: Annotated[
        str, Meta(max_length=100, description="Only agents that speak this dialect.")
    ] = ""
    paused: (
        Annotated[bool, Meta(description="Only paused agents, or only those that are not.")]
        | UnsetType
    ) = UNSET
    after: Annotated[
        str, Meta(max_length=300, description="`next` of the page before; else the first.")
    ] = ""
    limit: Limit = 100


class Agent(Struct, frozen=True, rename="camel"):
    """An agent that the hub knows; of its tokens only the number of valid ones is shown."""

    name: str
    role: Role
    speaks: tuple[str, ...]
    registered_at: str
    tokens: int
    has_key: bool
    paused: PauseResource | None
    activity: AgentActivity | None
    """Null for an agent that this hub does not start."""


class AgentPage(Struct, frozen=True):
    """Agents by name; `next` is the `after` of the next page, null after the last one."""

    agents: list[Agent]
    next: str | None


async def list_agents_page(call: Call) -> AgentPage:
    """List a page of agents."""
    query: AgentFilter = call.query
    if query.speaks:
        call.context.find_dialect(query.speaks, "speaks")
    found = await call.context.read(_find_agents, query, call.now)
    page = found[: query.limit]
    more = page[-1].name if found[query.limit :] else None
    states = _agent_states(call)
    return AgentPage(
        [_to_resource(record, call.now, states.get(record.name)) for record in page], more
    )


def _find_agents(store: Store, query: AgentFilter, now: int) -> list[AgentRecord]:
    """Read the matching agents: at least one more than fits on the page, if there is one."""
    found, after = list[AgentRecord](), query.after
    while len(found) <= query.limit and (batch := list_agents(store, after)):
        found += (record for record in batch if _matches(record, query, now))
        after = batch[-1].name
    return found


def _matches(record: AgentRecord, query: AgentFilter, now: int) -> bool:
    return (
        query.role in (UNSET, record.role)
        and (not query.speaks or query.speaks in record.speaks)
        and query.paused in (UNSET, record.active_pause(now) is not None)
    )


async def show_agent(call: Call) -> Agent:
    """Show one agent by its name."""
    record = await call.context.find_or_raise(_find_record, call.path_params["name"])
    return _to_resource(record, call.now, _agent_states(call).get(record.name))


def _agent_states(call: Call) -> dict[str, AgentState]:
    return {state.name: state for state in call.context.deps.agent_states()}


def _find_record(store: Store, name: str) -> AgentRecord | Refusal:
    known = find_agent(store, name)
    return known or not_found.agent(name)


def _to_resource(record: AgentRecord, now: int, state: AgentState | None) -> Agent:
    return Agent(
        name=record.name,
        role=record.role,
        speaks=record.speaks,
        registered_at=to_rfc3339(record.registered_at),
        tokens=len(record.valid_tokens(now)),
        has_key=bool(record.key),
        paused=pause_resource(record.active_pause(now)),
        activity=None if state is None else _to_activity(state),
    )


def _to_activity(state: AgentState) -> AgentActivity:
    used = state.usage
    return AgentActivity(
        running=state.running_tasks,
        attempts=used.attempts,
        minutes=round(used.elapsed_ms / 60_000, 1),
        output=used.output_bytes,
        cost=used.cost,
        idle=state.idle_reason or None,
    )


class PauseBody(Body, frozen=True):
    """The reason for pausing an agent: nothing more is started for it."""

    reason: Annotated[str, Meta(min_length=1, max_length=MAX_REASON)] = DEFAULT_PAUSE_REASON


async def pause_agent(call: Call) -> Agent:
    """Pause an agent."""
    return await _run(call, PauseAgent(call.path_params["name"], call.body.reason))


async def resume_agent(call: Call) -> Agent:
    """Resume a paused agent, with as much again of its budget."""
    return await _run(call, ResumeAgent(call.path_params["name"]))


async def _run(call: Call, command: Command) -> Agent:
    await call.submit(command)
    return await show_agent(call)


ENDPOINTS = (
    Endpoint("GET", "/v1/agents", list_agents_page, AgentPage, query=AgentFilter),
    Endpoint("GET", "/v1/agents/{name}", show_agent, Agent),
    Endpoint("POST", "/v1/agents/{name}/pause", pause_agent, Agent, body=PauseBody),
    Endpoint("POST", "/v1/agents/{name}/resume", resume_agent, Agent, body=Body),
)
