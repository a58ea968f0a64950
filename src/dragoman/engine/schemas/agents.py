"""Resource schemas of agents and people: public keys and token states, never a credential."""

from typing import Any, Literal, TypeVar

from msgspec import Struct

from dragoman.core.agent import AgentRecord, TokenRecord
from dragoman.core.base import Role
from dragoman.core.presence import PresenceState
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.status import AgentStatus
from dragoman.engine.schemas.resource_fields import project

TokenState = Literal["good", "expired", "revoked"]

S = TypeVar("S", bound=Struct)


class TokenResource(Struct, frozen=True, rename="camel"):
    """A token that was issued."""

    id: str
    state: TokenState
    issued_at: str
    expires_at: str


class PauseResource(Struct, frozen=True):
    """The reason why the hub starts nothing for an agent; without an end until it is resumed."""

    reason: str
    since: str
    until: str | None


class SessionResource(Struct, frozen=True):
    """Presence of a session of an agent."""

    session: str
    state: PresenceState
    since: str
    text: str | None
    """The question, where it waits for the permission or the input of a person."""


class AgentActivity(Struct, frozen=True, rename="camel"):
    """Activity of an agent that this hub starts."""

    running: tuple[str, ...]
    """The tasks that it works on."""
    attempts: int
    """Number of attempts that it has begun today (UTC)."""
    minutes: float
    output: int
    """Size of its output of today, in bytes."""
    cost: float
    """The cost of its work of today, as it states it."""
    idle: str | None
    """The reason why it takes no work now: it is paused, has used up its daily budget, cannot be
    started, or its tasks are in cooldown after a release."""


class AgentResource(Struct, frozen=True, rename="camel"):
    """Everything about an agent or a person, registered or not, except for digests."""

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
    key: str | None
    """The public half of the key that it signs with."""
    tokens: tuple[TokenResource, ...]
    paused: PauseResource | None
    saop_role: str | None
    """Its role in SAOP, where one was assigned."""
    sessions: tuple[SessionResource, ...]


def agent_resource(agent: AgentStatus, now: int) -> AgentResource:
    record = agent.record or AgentRecord(agent.name, agent.role, speaks=(), registered_at=0)
    return project_agent(
        AgentResource,
        agent,
        speaks=record.speaks,
        registered_at=to_rfc3339(record.registered_at) if record.registered_at else None,
        key=record.key or None,
        tokens=tuple(token_resource(token, now) for token in record.tokens),
        saop_role=record.saop_role or None,
    )


def project_agent(shape: type[S], agent: AgentStatus, **others: Any) -> S:
    """The resource of an agent, with what every such resource says about it."""
    return project(
        shape,
        agent,
        registered=agent.record is not None,
        last_seen=None if agent.seen_at is None else to_rfc3339(agent.seen_at),
        paused=agent.pause and project(PauseResource, agent.pause),
        sessions=tuple(project(SessionResource, one) for one in agent.sessions),
        **others,
    )


def token_resource(token: TokenRecord, now: int) -> TokenResource:
    """The resource of a token, without its digest."""
    issued_at = to_rfc3339(token.issued_at)
    return project(TokenResource, token, state=_token_state(token, now), issued_at=issued_at)


def _token_state(token: TokenRecord, now: int) -> TokenState:
    if token.is_revoked:
        return "revoked"
    return "good" if token.is_valid(now) else "expired"
