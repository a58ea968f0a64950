"""What is known of an agent or a person, folded from the stream `agent:NAME`."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    AgentEvent,
    AgentKeySet,
    AgentPaused,
    AgentRegistered,
    AgentResumed,
    Role,
    TokenIssued,
    TokenRevoked,
)

REMEMBERED_TOKENS = 64
"""Ended tokens that are remembered, the latest, so that their bearers are told so."""


class TokenRecord(Struct, frozen=True, omit_defaults=True):
    """An issued token, known by its digest only."""

    id: str
    digest: str
    issued_at: int
    expires_at: int
    is_revoked: bool = False

    def is_valid(self, now: int) -> bool:
        """True if it still speaks for its agent."""
        return not self.is_revoked and now < self.expires_at


class Pause(Struct, frozen=True, omit_defaults=True):
    """Pause of an agent: its reason, its start, and its end if that is known."""

    reason: str
    since: int
    until: int | None = None

    def is_active(self, now: int) -> bool:
        """True unless it has ended by itself."""
        return self.until is None or now < self.until


class PreviousKey(Struct, frozen=True):
    """A replaced key, and the end of its validity."""

    key: str
    until: int


class AgentRecord(Struct, frozen=True, omit_defaults=True):
    """A name that the hub knows: its role, its dialects, its key and tokens."""

    name: str
    role: Role
    speaks: tuple[str, ...]
    registered_at: int
    """When it was first registered."""
    key: str = ""
    """Public half of the key that it signs with, if it has one."""
    tokens: tuple[TokenRecord, ...] = ()
    cut_off_at: int | None = None
    """When all of its tokens were revoked at once: none issued until then is valid, whether it is
    on this list or not."""
    pause: Pause | None = None
    """The last pause, which may have ended by itself."""
    plays: str = ""
    """Its SAOP role in traces; empty: its name, where that is one."""
    former: PreviousKey | None = None
    """The previous key, where it was not to end at once."""

    def valid_keys(self, now: int) -> tuple[str, ...]:
        """Public keys by which its messages are accepted."""
        previous = self.valid_previous_key(now)
        if previous is None:
            return (self.key,) if self.key else ()
        return self.key, previous.key

    def valid_previous_key(self, now: int) -> PreviousKey | None:
        """The previous key, while it is valid."""
        return self.former if self.former is not None and now < self.former.until else None

    def active_pause(self, now: int) -> Pause | None:
        """The pause that is in force."""
        return self.pause if self.pause is not None and self.pause.is_active(now) else None

    def valid_tokens(self, now: int) -> list[TokenRecord]:
        """Tokens that are valid now."""
        return [token for token in self.tokens if token.is_valid(now)]


def agent_list_keys(record: AgentRecord) -> tuple[str, ...]:
    """Keys of the lists it stands on: all agents of its role."""
    return (f"role:{record.role}",)


def fold_registered(record: AgentRecord | None, event: AgentRegistered, at: int) -> AgentRecord:
    """Register; a later registration replaces an earlier one."""
    if record is None:
        return AgentRecord(event.name, event.role, event.speaks, at, plays=event.plays)
    return replace(record, name=event.name, role=event.role, speaks=event.speaks, plays=event.plays)


def fold_key_set(record: AgentRecord, event: AgentKeySet, at: int) -> AgentRecord:
    """Set the key; the same key again only sets the end of the previous one."""
    del at
    until = event.former_until
    before = record.former.key if record.former and event.key == record.key else record.key
    return replace(
        record, key=event.key, former=None if until is None else PreviousKey(before, until)
    )


def fold_token_issued(record: AgentRecord, event: TokenIssued, at: int) -> AgentRecord:
    """Add a token; the oldest that have ended make room for it."""
    token = TokenRecord(event.id, event.digest, at, event.expires_at)
    ended = [known.id for known in record.tokens if not known.is_valid(at)]
    too_many = len(record.tokens) + 1 - REMEMBERED_TOKENS
    forgotten = frozenset(ended[: max(0, too_many)])
    kept = tuple(known for known in record.tokens if known.id not in forgotten)
    return replace(record, tokens=(*kept, token))


def fold_token_revoked(record: AgentRecord, event: TokenRevoked, at: int) -> AgentRecord:
    """Revoke one token, or all of them."""
    tokens = tuple(
        replace(token, is_revoked=True) if event.id in ("", token.id) else token
        for token in record.tokens
    )
    return replace(record, tokens=tokens, cut_off_at=record.cut_off_at if event.id else at)


def fold_paused(record: AgentRecord, event: AgentPaused, at: int) -> AgentRecord:
    """Pause; a later pause replaces an earlier one."""
    return replace(record, pause=Pause(event.reason, at, event.until))


def fold_resumed(record: AgentRecord, event: AgentResumed, at: int) -> AgentRecord:
    del event, at
    return replace(record, pause=None)


AGENT_FOLDS: dict[type[AgentEvent], Callable[[Any, Any, int], AgentRecord]] = {
    AgentRegistered: fold_registered,
    AgentKeySet: fold_key_set,
    TokenIssued: fold_token_issued,
    TokenRevoked: fold_token_revoked,
    AgentPaused: fold_paused,
    AgentResumed: fold_resumed,
}
"""Event -> fold: the record after it, from the record before it (None at first) and its time."""
