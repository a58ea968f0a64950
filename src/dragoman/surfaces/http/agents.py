"""Agents and people that the hub knows, over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct

from dragoman.core.agents import AgentRecord
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ask import find_agent, list_agents
from dragoman.engine.ports import Store
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.tasks import Limit


class AgentsQuery(Query, frozen=True):
    """Which of them."""

    after: Annotated[
        str, Meta(max_length=300, description="`next` of the page before; else the first.")
    ] = ""
    limit: Limit = 100


class ShownAgent(Struct, frozen=True, rename="camel"):
    """A name that the hub knows; nothing is shown of its tokens but how many are good."""

    name: str
    role: Role
    speaks: tuple[str, ...]
    registered_at: str
    tokens: int
    has_key: bool


class AgentPage(Struct, frozen=True):
    """Agents by name; `next` is the `after` of the next page, null after the last one."""

    agents: list[ShownAgent]
    next: str | None


async def list_known(call: Call) -> AgentPage:
    """A page of agents."""
    query: AgentsQuery = call.query
    found = await call.office.read(list_agents, query.after, query.limit + 1)
    page = found[: query.limit]
    more = page[-1].name if found[query.limit :] else None
    return AgentPage([_shown(record, call.now) for record in page], more)


async def show_agent(call: Call) -> ShownAgent:
    """One agent by its name."""
    return _shown(await call.office.found(_find, call.path["name"]), call.now)


def _find(store: Store, name: str) -> AgentRecord | Refusal:
    known = find_agent(store, name)
    return known or Refusal("agent_not_found", f"no agent is known as {name[:100]!a}")


def _shown(record: AgentRecord, now: int) -> ShownAgent:
    return ShownAgent(
        name=record.name,
        role=record.role,
        speaks=record.speaks,
        registered_at=to_rfc3339(record.registered_at),
        tokens=len(record.live_tokens(now)),
        has_key=bool(record.key),
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/agents", "List agents", list_known, AgentPage, query=AgentsQuery),
    Endpoint("GET", "/v1/agents/{name}", "Show an agent", show_agent, ShownAgent),
)
