"""Agents: their records, roles and reputations."""

from typing import cast

from dragoman.core.agent import AgentRecord, Reputation
from dragoman.core.base import Role
from dragoman.core.ids import actor_stream, agent_stream, reputation_stream
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import ENTRY_PAGE, stream_state, walk_list

# --- agents and roles -------------------------------------------------------------------------


def find_agent(store: Store, name: str) -> AgentRecord | None:
    """The record of the agent or person with this name."""
    row = store.stream(agent_stream(name))
    return None if row is None else cast(AgentRecord | None, stream_state(store, row))


def list_agents(store: Store, after: str = "", limit: int = ENTRY_PAGE) -> list[AgentRecord]:
    """A page of the registered agents and people by name, after a given name."""
    states = (stream_state(store, row) for row in store.streams_of_kind("agent", after, limit))
    return [state for state in states if isinstance(state, AgentRecord)]


def all_agents(store: Store) -> dict[str, AgentRecord]:
    """All registered agents and people, by name."""
    found, after = dict[str, AgentRecord](), ""
    while page := list_agents(store, after):
        found |= {record.name: record for record in page}
        after = page[-1].name
    return found


def names_in_role(store: Store, role: Role) -> tuple[str, ...]:
    """The names of all agents and people in this role."""
    listed = walk_list(store, ListQuery(f"role:{role}", limit=ENTRY_PAGE), ENTRY_PAGE)
    return tuple(sorted(place.row.name.partition(":")[2] for place in listed))


def list_actors(store: Store) -> dict[str, Role]:
    """Everybody who has ever spoken, registered or not, with the role in which they did."""
    names, after = dict[str, Role](), ""
    while page := store.streams_of_kind("actor", after, ENTRY_PAGE):
        for row in page:
            _, role, name = row.name.split(":", 2)
            names.setdefault(name, cast(Role, role))
        after = page[-1].name.partition(":")[2]
    return names


def acts_as_agent(store: Store, name: str) -> bool:
    """True for an agent: registered as one, or not registered and on record as one."""
    record = find_agent(store, name)
    if record is not None:
        return record.role == "agent"
    return store.stream(actor_stream("agent", name)) is not None


def find_reputation(store: Store, name: str) -> Reputation | None:
    """The registry's record of an agent; None: its capabilities were never described."""
    row = store.stream(reputation_stream(name))
    reputation = None if row is None else stream_state(store, row)
    return reputation if isinstance(reputation, Reputation) else None
