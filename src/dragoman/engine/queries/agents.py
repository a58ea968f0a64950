"""Agents: their records, roles and reputations."""

from typing import cast

from dragoman.core.agent import AgentRecord, Reputation
from dragoman.core.base import Role
from dragoman.core.ids import agent_stream, reputation_stream
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import ENTRY_PAGE, stream_state

# --- agents and roles -------------------------------------------------------------------------


def find_agent(store: Store, name: str) -> AgentRecord | None:
    """The record of the agent or person with this name."""
    row = store.stream(agent_stream(name))
    return None if row is None else cast(AgentRecord | None, stream_state(store, row))


def list_agents(store: Store, after: str = "", limit: int = ENTRY_PAGE) -> list[AgentRecord]:
    """A page of the registered agents and people by name, after a given name."""
    states = (stream_state(store, row) for row in store.streams_of_kind("agent", after, limit))
    return [state for state in states if isinstance(state, AgentRecord)]


def names_in_role(store: Store, role: Role) -> tuple[str, ...]:
    """The names of all agents and people in this role."""
    names, after = list[str](), 0
    while page := store.list_page(ListQuery(f"role:{role}", after, limit=ENTRY_PAGE)):
        names += [place.row.name.partition(":")[2] for place in page]
        after = page[-1].position
    return tuple(sorted(names))


def find_reputation(store: Store, name: str) -> Reputation | None:
    """The registry's record of an agent; None: its capabilities were never described."""
    row = store.stream(reputation_stream(name))
    reputation = None if row is None else stream_state(store, row)
    return reputation if isinstance(reputation, Reputation) else None
