"""What SAOP is handed: settings, the redactor, and what is held back between two chunks."""

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct, field

from dragoman.protocols.saop.types import TYPES, Types
from dragoman.protocols.saop.versions import Turns
from dragoman.text.redact import Redactor

QUIET_TTL_MS: Final = 1_200_000
"""How long a holder may be silent that shows its turns and sends no heartbeats (S-RUN)."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""The longest turn (S-LIMIT)."""


Recorded = Callable[[str], bool]
"""Whether the event with this id, in small letters, is on record."""


class Tails(Protocol):
    """Keeps what a chunk has held back because it may be the beginning of a secret.

    By sender, session, turn and agent: nobody gets what another one has left.
    """

    def get(self, key: str, is_recorded: Recorded) -> str:
        """What the last chunk that is on record has left; empty: nothing."""
        ...

    def put(self, key: str, held: str, *, event: str, before: str) -> None:
        """Keep this for the next one, if this event is on record then; else what was `before`."""
        ...

    def clear(self, key: str) -> None:
        """The event with which nothing is held back any more is on record."""
        ...


class ShortTails:
    """Keeps them as long as the process lives, and only so many."""

    def __init__(self, most: int = 1_024) -> None:
        self._most = most
        self._tails: dict[str, tuple[str, str, str]] = {}
        """Key -> what is held back, after which event, and what was before it."""

    def get(self, key: str, is_recorded: Recorded) -> str:
        """What the last chunk that is on record has left."""
        held, event, before = self._tails.get(key, ("", "", ""))
        return held if is_recorded(event) else before

    def put(self, key: str, held: str, *, event: str, before: str) -> None:
        """Keep this for the next one; the oldest makes room."""
        self.clear(key)
        self._tails[key] = held, event, before
        if len(self._tails) > self._most:
            del self._tails[next(iter(self._tails))]

    def clear(self, key: str) -> None:
        """Nothing is held back any more."""
        self._tails.pop(key, None)


def no_repository() -> str:
    """What is checked out where there is no repository."""
    return ""


def digest_of(_: bytes) -> str:
    """The digest where there is no key: everything is the same."""
    return ""


class Choices(Struct, frozen=True):
    """The settings that this dialect goes by."""

    adopt: bool = True
    """Whether the first turn about an unknown task makes it one."""
    review_required: bool = True
    max_attempts: int = 5
    ttl_ms: int = QUIET_TTL_MS
    most_bytes: int = MOST_BYTES
    redactor: Redactor = Redactor()
    tails: Tails = field(default_factory=ShortTails)
    digest: Callable[[bytes], str] = digest_of
    """Of words as they came; keyed, so that it tells nothing of a secret."""
    head: Callable[[], str] = no_repository
    types: Types = TYPES
    turns: Turns = Turns()
