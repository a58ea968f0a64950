"""Agents over HTTP: list, show, pause, resume; their tokens."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core import not_found
from dragoman.core.agent import (
    DEFAULT_PAUSE_REASON,
    IssueToken,
    PauseAgent,
    ResumeAgent,
    RevokeToken,
)
from dragoman.core.authority import may_manage_credentials_of
from dragoman.core.base import Command, Role
from dragoman.core.errors import Refusal, Refused
from dragoman.core.limits import MAX_REASON
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.status import AgentStatus, find_anybody, list_everybody
from dragoman.engine.schemas.agents import (
    AgentActivity,
    PauseResource,
    TokenResource,
    agent_resource,
    token_resource,
)
from dragoman.services.dispatch.agent_slots import AgentState
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint, Query
from dragoman.surfaces.http.parameters import Limit
from dragoman.system.bearer_tokens import new_token


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
    """An agent or a person that is registered or has spoken; of its tokens only the number of valid
    ones is shown."""

    name: str
    role: Role
    registered: bool
    speaks: tuple[str, ...]
    registered_at: str | None
    holds: tuple[str, ...]
    """The tasks that it holds."""
    waiting: int
    """Number of ready tasks that are reserved for it."""
    last_seen: str | None
    """Last sign of life, where there was one lately."""
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
        [_to_resource(agent, call.now, states.get(agent.name)) for agent in page], more
    )


def _find_agents(store: Store, query: AgentFilter, now: int) -> list[AgentStatus]:
    """Read the matching agents that come after a name."""
    everybody = list_everybody(store, now)
    return [agent for agent in everybody if agent.name > query.after and _matches(agent, query)]


def _matches(agent: AgentStatus, query: AgentFilter) -> bool:
    speaks = agent.record.dialects if agent.record else ()
    return (
        query.role in (UNSET, agent.role)
        and (not query.speaks or query.speaks in speaks)
        and query.paused in (UNSET, agent.pause is not None)
    )


async def show_agent(call: Call) -> Agent:
    """Show one agent by its name."""
    agent = await call.context.find_or_raise(find_anybody, call.now, call.path_params["name"])
    return _to_resource(agent, call.now, _agent_states(call).get(agent.name))


def _agent_states(call: Call) -> dict[str, AgentState]:
    return {state.name: state for state in call.context.deps.agent_states()}


def _to_resource(agent: AgentStatus, now: int, state: AgentState | None) -> Agent:
    shown = agent_resource(agent, now)
    return Agent(
        name=shown.name,
        role=shown.role,
        registered=shown.registered,
        speaks=shown.speaks,
        registered_at=shown.registered_at,
        holds=shown.holds,
        waiting=shown.waiting,
        last_seen=shown.last_seen,
        tokens=sum(token.state == "good" for token in shown.tokens),
        has_key=shown.key is not None,
        paused=shown.paused,
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


# --- tokens -----------------------------------------------------------------------------------

_DAY_MS = 86_400_000


class TokenPage(Struct, frozen=True):
    """Tokens that were issued to an agent, the oldest first; ended ones as long as they are
    remembered."""

    tokens: list[TokenResource]


class TokenBody(Body, frozen=True):
    """The lifetime of a new token."""

    days: Annotated[int, Meta(ge=1, le=366)] = 90


class IssuedToken(Struct, frozen=True, rename="camel"):
    """A new token: its text is shown only now, and the hub keeps its digest."""

    id: str
    token: str
    expires_at: str


async def list_tokens(call: Call) -> TokenPage:
    """List the tokens of an agent, for those who may revoke them."""
    name, actor = call.path_params["name"], call.principal.actor
    record = await call.context.read(find_agent, name)
    if not may_manage_credentials_of(actor, record) and name != actor.name:
        detail = f"{actor.label} may not see the tokens of {name}"
        raise Refused(Refusal("not_authorized", detail))
    if record is None:
        raise Refused(not_found.agent(name))
    return TokenPage([token_resource(token, call.now) for token in record.tokens])


async def add_token(call: Call) -> IssuedToken:
    """Give an agent one more token, whose text is in this answer and nowhere else."""
    name = call.path_params["name"]
    new, expires_at = new_token(name), call.now + call.body.days * _DAY_MS
    await call.submit(IssueToken(name, new.id, new.digest, expires_at))
    return IssuedToken(new.id, new.text, to_rfc3339(expires_at))


async def revoke_token(call: Call) -> TokenPage:
    """Revoke one token of an agent: from now on it is refused."""
    await call.submit(RevokeToken(call.path_params["name"], call.path_params["id"]))
    return await list_tokens(call)


ENDPOINTS = (
    Endpoint("GET", "/v1/agents", list_agents_page, AgentPage, query=AgentFilter),
    Endpoint("GET", "/v1/agents/{name}", show_agent, Agent),
    Endpoint("POST", "/v1/agents/{name}/pause", pause_agent, Agent, body=PauseBody),
    Endpoint("POST", "/v1/agents/{name}/resume", resume_agent, Agent, body=Body),
    Endpoint("GET", "/v1/agents/{name}/tokens", list_tokens, TokenPage),
    Endpoint(
        "POST", "/v1/agents/{name}/tokens", add_token, IssuedToken, body=TokenBody, status=201
    ),
    Endpoint("DELETE", "/v1/agents/{name}/tokens/{id}", revoke_token, TokenPage),
)
