"""What SAOP is handed: settings, the redactor, and what is held back between two chunks."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from dragoman.engine.rests import Keeper, Left, Recorded
from dragoman.protocols.saop.types import TYPES, Types
from dragoman.protocols.saop.versions import Turns
from dragoman.text.redact import Redactor

QUIET_TTL_MS: Final = 1_200_000
"""How long a holder may be silent that shows its turns and sends no heartbeats (S-RUN)."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""The longest turn (S-LIMIT)."""


class ShortTails:
    """Keeps them as long as the process lives, and only so many."""

    def __init__(self, most: int = 1_024) -> None:
        self._most = most
        self._tails: dict[str, Left] = {}

    def get(self, key: str, is_recorded: Recorded) -> str:
        """What the last chunk that is on record has left."""
        left = self._tails.get(key)
        if left is None:
            return ""
        return left.after if is_recorded(left.event) else left.before

    def put(self, left: Sequence[Left]) -> None:
        """Keep these for the next chunks; the oldest make room."""
        for one in left:
            self._tails.pop(one.key, None)
            self._tails[one.key] = one
        while len(self._tails) > self._most:
            del self._tails[next(iter(self._tails))]

    def settle(self, left: Sequence[Left]) -> None:
        """Where nothing is held back any more, nothing has to be kept."""
        for one in left:
            if not one.after:
                self._tails.pop(one.key, None)


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
    tails: Keeper = field(default_factory=ShortTails)
    """What chunks hold back, by sender, session, turn and part: nobody gets that of another."""
    digest: Callable[[bytes], str] = digest_of
    """Of words as they came; keyed, so that it tells nothing of a secret."""
    head: Callable[[], str] = no_repository
    types: Types = TYPES
    turns: Turns = Turns()
