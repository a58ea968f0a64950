"""What is known of an agent or a person, folded from the stream `agent:NAME`."""

from msgspec import Struct

from dragoman.core.events import AgentRegistered, Role


class AgentRecord(Struct, frozen=True, omit_defaults=True):
    """A name that the hub knows: its role, and the dialects in which it can be reached."""

    name: str
    role: Role
    speaks: tuple[str, ...]
    registered_at: int
    """When it was first made known."""


def evolve_agent(record: AgentRecord | None, event: AgentRegistered, at: int) -> AgentRecord:
    """The record after a registration; a later one replaces what an earlier one said."""
    registered_at = at if record is None else record.registered_at
    return AgentRecord(event.name, event.role, event.speaks, registered_at)
