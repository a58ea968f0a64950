"""Who speaks to the hub, and the record of what was refused to whom."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import UNRECORDED, Refusal
from dragoman.core.events import ActorEvent, CommandRefused, MessageReceived, Role
from dragoman.core.ids import actor_stream, check_agent, shown_name

REFUSALS_PER_MINUTE = 60
"""More than these add no entry: a caller in a loop must not be able to fill the ledger."""

RECEIVED_PER_MINUTE = 60
"""The same for messages that change nothing."""

REMEMBERED_REFUSALS = 8
"""A refusal that equals one of the last few of its minute is a repeat and adds no entry."""

_MINUTE_MS = 60_000


class Actor(Struct, frozen=True):
    """A caller: its role and name by its credential, and the door it came through."""

    role: Role
    name: str
    via: str = ""
    task: str = ""
    """The one task that its credential speaks for; empty: any."""
    fence: int = 0
    """And under which fencing token, where there is such a task."""

    def __post_init__(self) -> None:
        malformed = check_agent(self.name)
        if malformed is not None:
            raise ValueError(malformed.detail)

    @property
    def label(self) -> str:
        """How an entry names this actor."""
        return f"{self.role}:{self.name}"

    @property
    def stream(self) -> str:
        """Where this actor's refusals are recorded."""
        return actor_stream(self.role, self.name)


HUB: Final = "hub"
"""What the hub is called wherever it acts by itself; nobody else may be."""
NO_HUB: Final = f"the name {HUB} is the hub's own: choose another"

NAMELESS: Final = "unknown"
"""Who is on record for a message whose sender cannot be named."""

SYSTEM = Actor("system", HUB)
"""The hub itself: its time-driven duties act as this."""


class ActorRecord(Struct, frozen=True, omit_defaults=True):
    """What is remembered of an actor: the refusals and idle messages of its current minute."""

    minute: int = 0
    refusals: int = 0
    recent: tuple[str, ...] = ()
    received: int = 0


def record_refusal(
    record: ActorRecord,
    command: str,
    target: str,
    refusal: Refusal,
    now: int,
    said: bytes = b"",
) -> CommandRefused | None:
    """The entry that a refusal leaves, or None for a repeat, a flood or an ordinary answer."""
    if refusal.code in UNRECORDED:
        return None
    event = CommandRefused(
        command,
        shown_name(target),
        refusal.code,
        refusal.detail,
        shown_name(refusal.kind),
        blake2b(said, digest_size=8).hexdigest() if said and refusal.kind else "",
    )
    if record.minute == now // _MINUTE_MS and (
        record.refusals >= REFUSALS_PER_MINUTE or _gist(event) in record.recent
    ):
        return None
    return event


def record_received(
    record: ActorRecord, event: MessageReceived, now: int
) -> MessageReceived | None:
    """The entry that a message leaves which changed nothing, or None in a flood of them."""
    is_flood = record.minute == now // _MINUTE_MS and record.received >= RECEIVED_PER_MINUTE
    return None if is_flood else event


def evolve_refused(record: ActorRecord | None, event: CommandRefused, at: int) -> ActorRecord:
    """The record after one more refusal."""
    record = _of_minute(record, at)
    recent = (*record.recent, _gist(event))[-REMEMBERED_REFUSALS:]
    return replace(record, refusals=record.refusals + 1, recent=recent)


def evolve_received(record: ActorRecord | None, _: MessageReceived, at: int) -> ActorRecord:
    """The record after one more message that changed nothing."""
    record = _of_minute(record, at)
    return replace(record, received=record.received + 1)


EVOLVE_ACTOR: dict[type[ActorEvent], Callable[[Any, Any, int], ActorRecord]] = {
    CommandRefused: evolve_refused,
    MessageReceived: evolve_received,
}
"""Event -> the record after it, from the record before it (None at first) and its time."""


def _of_minute(record: ActorRecord | None, at: int) -> ActorRecord:
    """The record if it is of this minute, else an empty one."""
    minute = at // _MINUTE_MS
    return ActorRecord(minute) if record is None or record.minute != minute else record


def _gist(event: CommandRefused) -> str:
    """What makes two refusals the same. Short, because a record keeps several of them.

    Sentences that differ in a time or a count are different: the limit of a minute bounds those.
    """
    said = f"{event.kind} {event.detail}{event.words}".encode()
    digest = blake2b(said, digest_size=8).hexdigest()
    return f"{event.command} {event.target} {event.code} {digest}"
