"""Actors: who sends a command, and the rate-limited record of what was refused to whom."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.base import Command, Event, Role
from dragoman.core.errors import UNRECORDED_REFUSALS, Refusal
from dragoman.core.ids import actor_stream, check_agent, safe_name

# --- commands ---------------------------------------------------------------------------------


class RejectMessage(Command, frozen=True, tag="message.reject"):
    """Refuse a message that is no command, so that it is recorded like every other refusal."""

    free_text = ("detail", "target", "kind")

    code: str
    detail: str
    target: str = ""
    kind: str = ""
    """Type of the message, in its sender's words."""

    @property
    def target_task(self) -> str:
        """Task that the message names, known or not."""
        return self.target


# --- events -----------------------------------------------------------------------------------


class CommandRefused(Event, frozen=True):
    """A command was refused; recorded with the actor, never with the target."""

    command: str
    target: str
    code: str
    detail: str
    kind: str = ""
    """Type of the message in its sender's words, where it never became a command."""
    words: str = ""
    """Digest of such a message: another text is another refusal, even under the same sentence."""


class MessageReceived(Event, frozen=True):
    """A message was understood and changed nothing; recorded with the actor, not with a task."""

    dialect: str
    kind: str
    target: str = ""


# --- state ------------------------------------------------------------------------------------

REFUSALS_PER_MINUTE = 60
"""Limit of recorded refusals: a caller in a loop must not be able to fill the ledger."""

RECEIVED_PER_MINUTE = 60
"""The same limit for messages that change nothing."""

REMEMBERED_REFUSALS = 8
"""Window for repeats: a refusal that equals one of the last few of its minute adds no entry."""

_MINUTE_MS = 60_000


class Actor(Struct, frozen=True):
    """A caller: role and name from its credential, and the surface it came through."""

    role: Role
    name: str
    via: str = ""
    task: str = ""
    """The one task that its credential is bound to; empty: any."""
    fence: int = 0
    """Fencing token of the credential's attempt, where there is such a task."""

    def __post_init__(self) -> None:
        malformed = check_agent(self.name)
        if malformed is not None:
            raise ValueError(malformed.detail)

    @property
    def label(self) -> str:
        """Name of this actor in entries."""
        return f"{self.role}:{self.name}"

    @property
    def stream(self) -> str:
        """Stream that records this actor's refusals."""
        return actor_stream(self.role, self.name)


HUB_NAME: Final = "hub"
"""Name of the hub wherever it acts by itself; reserved for it."""

HUB_NAME_TAKEN: Final = f"the name {HUB_NAME} is the hub's own: choose another"

UNKNOWN_SENDER: Final = "unknown"
"""Name on record for a message whose sender cannot be determined."""

HUB_ACTOR = Actor("system", HUB_NAME)
"""The hub itself: its background services act under this name."""


class ActorRecord(Struct, frozen=True, omit_defaults=True):
    """Rate-limit record of an actor: its refusals and no-op messages of the current minute."""

    minute: int = 0
    refusals: int = 0
    recent: tuple[str, ...] = ()
    received: int = 0


# --- record -----------------------------------------------------------------------------------


def record_refusal(
    record: ActorRecord,
    command: str,
    target: str,
    refusal: Refusal,
    now: int,
    original_text: bytes = b"",
) -> CommandRefused | None:
    """Entry for a refusal, or None for a repeat, a flood or an ordinary answer."""
    if refusal.code in UNRECORDED_REFUSALS:
        return None
    event = CommandRefused(
        command,
        safe_name(target),
        refusal.code,
        refusal.detail,
        safe_name(refusal.kind),
        blake2b(original_text, digest_size=8).hexdigest() if original_text and refusal.kind else "",
    )
    if record.minute == now // _MINUTE_MS and (
        record.refusals >= REFUSALS_PER_MINUTE or _fingerprint(event) in record.recent
    ):
        return None
    return event


def record_received_message(
    record: ActorRecord, event: MessageReceived, now: int
) -> MessageReceived | None:
    """Entry for a message that changed nothing, or None in a flood of them."""
    is_flood = record.minute == now // _MINUTE_MS and record.received >= RECEIVED_PER_MINUTE
    return None if is_flood else event


# --- fold -------------------------------------------------------------------------------------


def fold_refused(record: ActorRecord | None, event: CommandRefused, at: int) -> ActorRecord:
    """Count one more refusal."""
    record = _of_current_minute(record, at)
    recent = (*record.recent, _fingerprint(event))[-REMEMBERED_REFUSALS:]
    return replace(record, refusals=record.refusals + 1, recent=recent)


def fold_received(record: ActorRecord | None, _: MessageReceived, at: int) -> ActorRecord:
    """Count one more message that changed nothing."""
    record = _of_current_minute(record, at)
    return replace(record, received=record.received + 1)


ACTOR_FOLDS: dict[type[Event], Callable[[Any, Any, int], ActorRecord]] = {
    CommandRefused: fold_refused,
    MessageReceived: fold_received,
}
"""Event -> fold: the record after it, from the record before it (None at first) and its time."""


def _of_current_minute(record: ActorRecord | None, at: int) -> ActorRecord:
    minute = at // _MINUTE_MS
    return ActorRecord(minute) if record is None or record.minute != minute else record


def _fingerprint(event: CommandRefused) -> str:
    """Digest by which two refusals count as equal; short, because a record keeps several.

    Sentences that differ in a time or a count are different: the limit per minute bounds those.
    """
    text = f"{event.kind} {event.detail}{event.words}".encode()
    digest = blake2b(text, digest_size=8).hexdigest()
    return f"{event.command} {event.target} {event.code} {digest}"
