"""What travels from a process beside the hub to the hub, and the answer to it."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal
from dragoman.core.events import MessageReceived
from dragoman.core.reading import Receipt
from dragoman.engine.plan import Taken, Turned


class Do(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Commands that succeed together or not at all, and in whose name."""

    actor: Actor
    commands: Annotated[tuple[AnyCommand, ...], Meta(min_length=1, max_length=1_000)]
    key: str = ""
    said: Any = UNSET
    """The original words, which stay as they are."""
    per_attempt: bool = False
    """Whether the key is made of the content and counts within the task's present attempt."""
    sent_at: int | None = None
    """When such a message was sent, by its own word."""
    heard: MessageReceived | None = None
    """What is recorded of a message that changes nothing."""
    effect: Annotated[tuple[AnyCommand, ...], Meta(max_length=1_000)] = ()
    """What is to follow, all or none: if it is refused, the commands stand all the same."""


class Done(Struct, frozen=True):
    """A receipt for each command."""

    receipts: tuple[Receipt, ...]
    repeated: bool
    declined: Refusal | None = None
    """Why the effect was refused."""
    masked: tuple[str, ...] = ()
    """What the sender is told about secrets that only the hub has seen in it."""


class Say(Struct, frozen=True):
    """An operation that the hub has to look through itself, by its name and words (JSON)."""

    actor: Actor
    operation: str
    words: bytes
    key: str = ""


class Told(Struct, frozen=True, omit_defaults=True):
    """What came of it: one of both."""

    taken: Taken | None = None
    turned: Turned | None = None
