"""Resource schemas of agents and people: public keys and token states, never a credential."""

from typing import Literal

from msgspec import Struct

from dragoman.core.agent import Pause, TokenRecord
from dragoman.core.base import Role
from dragoman.core.presence import Presence, PresenceState
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.status import AgentStatus

TokenState = Literal["good", "expired", "revoked"]


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
    record = agent.record
    return AgentResource(
        name=agent.name,
        role=agent.role,
        registered=record is not None,
        speaks=record.speaks if record else (),
        registered_at=record and to_rfc3339(record.registered_at),
        holds=agent.holds,
        waiting=agent.waiting,
        last_seen=None if agent.seen_at is None else to_rfc3339(agent.seen_at),
        key=record.key or None if record else None,
        tokens=tuple(token_resource(token, now) for token in record.tokens) if record else (),
        paused=pause_resource(agent.pause),
        saop_role=record.saop_role or None if record else None,
        sessions=tuple(map(session_resource, agent.sessions)),
    )


def session_resource(presence: Presence) -> SessionResource:
    """The resource of a presence."""
    since = to_rfc3339(presence.since)
    return SessionResource(presence.session, presence.state, since, presence.text or None)


def pause_resource(pause: Pause | None) -> PauseResource | None:
    """A pause that is in effect."""
    if pause is None:
        return None
    until = None if pause.until is None else to_rfc3339(pause.until)
    return PauseResource(pause.reason, to_rfc3339(pause.since), until)


def token_resource(token: TokenRecord, now: int) -> TokenResource:
    """The resource of a token, without its digest."""
    return TokenResource(
        id=token.id,
        state=_token_state(token, now),
        issued_at=to_rfc3339(token.issued_at),
        expires_at=to_rfc3339(token.expires_at),
    )


def _token_state(token: TokenRecord, now: int) -> TokenState:
    if token.is_revoked:
        return "revoked"
    return "good" if token.is_valid(now) else "expired"
