"""Wire types for commands and operations that another process forwards to the running hub."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from dragoman.core.actor import Actor, MessageReceived
from dragoman.core.deciders import AnyCommand
from dragoman.core.errors import Refusal
from dragoman.core.read import Receipt
from dragoman.engine.request import Accepted, Rejected


class ForwardedCommands(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Commands that succeed together or not at all, and their actor."""

    actor: Actor
    commands: Annotated[tuple[AnyCommand, ...], Meta(min_length=1, max_length=1_000)]
    key: str = ""
    original_text: Any = UNSET
    """The sender's message; redaction does not change it."""
    per_attempt: bool = False
    """The key is made of the content and is valid within the task's present attempt."""
    sent_at: int | None = None
    """Time of sending, as the sender states it."""
    receipt_event: MessageReceived | None = None
    """The receipt that is recorded for a message that changes nothing."""
    effect: Annotated[tuple[AnyCommand, ...], Meta(max_length=1_000)] = ()
    """Commands to run afterwards, all or none: if they are refused, the others stand."""


class ForwardedResult(Struct, frozen=True):
    """A receipt for each command."""

    receipts: tuple[Receipt, ...]
    repeated: bool
    declined: Refusal | None = None
    """The reason why the effect was refused."""
    masked: tuple[str, ...] = ()
    """Warnings for the sender about secrets that only the hub recognised."""


class ForwardedOperation(Struct, frozen=True):
    """An operation that the hub itself has to redact, by its name and message (JSON)."""

    actor: Actor
    operation: str
    words: bytes
    key: str = ""


class ForwardedReply(Struct, frozen=True, omit_defaults=True):
    """The reply to a forwarded operation: one of the two."""

    accepted: Accepted | None = None
    rejected: Rejected | None = None
