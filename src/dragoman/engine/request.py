"""A request to the engine (who asks, for which commands, under which key), and the replies to it.

The engine answers with an `Outcome`; a dialect turns that into a `Reply` for its caller.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor, MessageReceived
from dragoman.core.deciders import AnyCommand
from dragoman.core.errors import Refusal, Refused
from dragoman.core.read import Receipt
from dragoman.engine.redaction_carry_over import CarryOver

# --- request ----------------------------------------------------------------------------------


class Request(Struct, frozen=True):
    """Commands that succeed together or not at all."""

    actor: Actor
    commands: tuple[AnyCommand, ...]
    id: str
    """Made by the hub, unique; the `cause` of every entry that follows."""
    key: str = ""
    """The caller's idempotency key, if it has one."""
    original_text: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The sender's message, for the ledger."""
    per_attempt: bool = False
    """True if the key is made of the content and valid for the task's present attempt only: in a
    later one the same content is a new message (S-IDEM), unless `sent_at` says otherwise."""
    sent_at: int | None = None
    """Time of sending, as the sender states it: what was applied to one attempt is not
    applied again to a later one."""
    receipt_event: MessageReceived | None = None
    """Recorded for a message that changes nothing."""
    effect: tuple[AnyCommand, ...] = ()
    """Commands to run afterwards, all or none: if they are refused, the others stand."""
    redaction_warnings: tuple[str, ...] = ()
    """Warnings for the sender about secrets that were masked."""
    carry_over: CarryOver | None = None
    """The chunk that its only command records, if that is one of a text in chunks."""

    def __post_init__(self) -> None:
        if not self.commands:
            raise ValueError("A request asks for at least one command.")


SIGNED_KEY_PREFIX: Final = "signed:"
"""Prefix of every key of a signed message, so that it differs from that of a message with a token.
"""

Commands = tuple[AnyCommand, ...]


# --- outcome: the engine's answer -------------------------------------------------------------


class Committed(Struct, frozen=True):
    """The outcome of a request that was committed: a receipt for each command."""

    receipts: tuple[Receipt, ...]
    repeated: bool = False
    """Answered before: nothing was recorded this time."""
    declined: Refusal | None = None
    """The reason why the effect was refused; without one, its receipts are the last ones."""
    redaction_warnings: tuple[str, ...] = ()
    """Warnings for the sender about secrets that were masked."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about a message, the first time it was received."""
        unrecorded = (one for one in self.receipts if not one.record_key)
        return tuple(one.warning for one in unrecorded if one.warning)

    @property
    def subject_id(self) -> str:
        """The id of the last command's subject, where that is no task."""
        return self.receipts[-1].stream.partition(":")[2]


Outcome = Committed | Refusal


def committed_or_raise(outcome: Outcome) -> Committed:
    """The committed outcome; a refusal is raised as Refused."""
    if isinstance(outcome, Refusal):
        raise Refused(outcome)
    return outcome


# --- reply: the dialect's answer --------------------------------------------------------------

MAX_KIND_SHOWN = 64
"""A message type is shown up to this length."""


class Accepted(Struct, frozen=True):
    """An accepted message or call: receipts, reply and warnings."""

    dialect: str
    kind: str
    """The type of the message, or the name of the operation."""
    actor: str
    receipts: tuple[Receipt, ...]
    reply: Any
    """In the dialect's own form."""
    warnings: tuple[str, ...] = ()
    repeated: bool = False
    """Answered before: nothing was recorded this time."""
    commands: Commands = ()
    """The submitted commands: a receipt for each."""


class Rejected(Struct, frozen=True):
    """A rejected message or call, with the dialect's own error code."""

    dialect: str
    kind: str
    code: str
    detail: str
    path: str = ""
    """The field of the message that it is about, if any."""
    actor: str = ""
    reply: Any = None
    """The same in the dialect's own form, if it has one."""
    ours: str = ""
    """The hub's refusal code: a dialect may map several to one; empty: the same as `code`."""

    @property
    def refusal(self) -> Refusal:
        """The refusal under the hub's code, for a surface that knows no dialect."""
        return Refusal(self.ours or self.code, self.detail)


Reply = Accepted | Rejected
