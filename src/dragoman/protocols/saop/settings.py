"""Settings of SAOP, with the redactor and the carry-over between chunks that it is handed."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from dragoman.engine.redaction_carry_over import CarryOverStore, IsRecorded, StoredCarryOver
from dragoman.protocols.saop.parse import TYPES, EventTypes, VersionedTurnSchema
from dragoman.text.redact import Redactor

TRACE_LEASE_MS: Final = 1_200_000
"""Lease of a holder that records turns and sends no heartbeats (S-RUN)."""
MAX_TURN_BYTES: Final = 16 * 1024 * 1024
"""Limit of a turn (S-LIMIT)."""


class MemoryCarryOver:
    """Carry-over store in memory, limited in size and lost with the process."""

    def __init__(self, max_tails: int = 1_024) -> None:
        self._most = max_tails
        self._tails: dict[str, StoredCarryOver] = {}

    def get(self, key: str, is_recorded: IsRecorded) -> str:
        left = self._tails.get(key)
        return left.resolve(is_recorded) if left else ""

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        """Store carry-over for the next chunks; the oldest entries are dropped."""
        for one in updates:
            self._tails.pop(one.key, None)
            self._tails[one.key] = one
        while len(self._tails) > self._most:
            del self._tails[next(iter(self._tails))]


def no_repository() -> str:
    """Return no commit; the default without a repository."""
    return ""


def constant_digest(_: bytes) -> str:
    """Return an empty digest; the default without a key."""
    return ""


class Choices(Struct, frozen=True):
    """Settings of the dialect."""

    adopt: bool = True
    """Create a task for the first turn about an unknown one."""
    review_required: bool = True
    max_attempts: int = 5
    ttl_ms: int = TRACE_LEASE_MS
    max_turn_bytes: int = MAX_TURN_BYTES
    redactor: Redactor = Redactor()
    tails: CarryOverStore = field(default_factory=MemoryCarryOver)
    """Carry-over of chunks, by sender, session, turn and role: no sender gets another's text."""
    digest: Callable[[bytes], str] = constant_digest
    """Keyed digest of the original text, so that it reveals nothing of a secret."""
    head: Callable[[], str] = no_repository
    types: EventTypes = TYPES
    turns: VersionedTurnSchema = VersionedTurnSchema()
