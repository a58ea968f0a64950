"""Agents and people as programs are shown them: by what they are recognized, but no credential."""

from typing import Literal

from msgspec import Struct

from dragoman.core.agents import AgentRecord, TokenRecord
from dragoman.core.events import Role
from dragoman.core.moments import to_rfc3339

TokenState = Literal["good", "expired", "revoked"]


class ShownToken(Struct, frozen=True, rename="camel"):
    """A token that was given out."""

    id: str
    state: TokenState
    issued_at: str
    expires_at: str


class ShownAgent(Struct, frozen=True, rename="camel"):
    """Everything that is known of an agent or a person, but for digests."""

    name: str
    role: Role
    speaks: tuple[str, ...]
    registered_at: str
    key: str | None
    """The public half of the key that it signs with."""
    tokens: tuple[ShownToken, ...]


def shown_agent(record: AgentRecord, now: int) -> ShownAgent:
    """An agent as it is now."""
    return ShownAgent(
        name=record.name,
        role=record.role,
        speaks=record.speaks,
        registered_at=to_rfc3339(record.registered_at),
        key=record.key or None,
        tokens=tuple(_token(token, now) for token in record.tokens),
    )


def _token(token: TokenRecord, now: int) -> ShownToken:
    return ShownToken(
        id=token.id,
        state=_state(token, now),
        issued_at=to_rfc3339(token.issued_at),
        expires_at=to_rfc3339(token.expires_at),
    )


def _state(token: TokenRecord, now: int) -> TokenState:
    if token.is_revoked:
        return "revoked"
    return "good" if token.is_live(now) else "expired"
