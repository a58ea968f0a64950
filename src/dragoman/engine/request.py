"""A request to the hub: who asks, for what (all or none), under which key; and the answer."""

from typing import Final

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import MessageReceived
from dragoman.core.reading import Receipt
from dragoman.engine.rests import Rest


class Request(Struct, frozen=True):
    """Commands that succeed together or not at all."""

    actor: Actor
    commands: tuple[AnyCommand, ...]
    id: str
    """Made by the hub, unique; the `cause` of every entry that follows."""
    key: str = ""
    """The caller's idempotency key, if it has one."""
    said: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The original words, for the ledger."""
    per_attempt: bool = False
    """Whether the key is made of the content and counts for the task's present attempt only: in a
    later one the same words are said anew (S-IDEM), unless `sent_at` tells that they are not."""
    sent_at: int | None = None
    """When such a message was sent, by its own word: what counted in an attempt does not count
    again in one that began later."""
    heard: MessageReceived | None = None
    """What is recorded of a message that changes nothing."""
    effect: tuple[AnyCommand, ...] = ()
    """What is to follow, all or none: if it is refused, the commands stand all the same."""
    masked: tuple[str, ...] = ()
    """What the sender is told about secrets that were taken out of it."""
    rest: Rest | None = None
    """What its only command holds back of a text, if that is one that comes in parts."""

    def __post_init__(self) -> None:
        if not self.commands:
            raise ValueError("A request asks for at least one command.")


SIGNED_KEY: Final = "signed:"
"""Before every key of a signed message, so that none is that of a message with a token."""


class Accepted(Struct, frozen=True):
    """A yes: a receipt for each command."""

    receipts: tuple[Receipt, ...]
    repeated: bool = False
    """Answered before: nothing was recorded this time."""
    declined: Refusal | None = None
    """Why the effect was refused; else its receipts are the last ones."""
    masked: tuple[str, ...] = ()
    """What the sender is told about secrets that were taken out of the request."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was odd about a message about a task, the first time it was said."""
        about_tasks = (one for one in self.receipts if one.task and not one.log)
        return tuple(one.remark for one in about_tasks if one.remark)

    @property
    def name(self) -> str:
        """The id of what the last command was about, where that is no task."""
        return self.receipts[-1].stream.partition(":")[2]


Outcome = Accepted | Refusal


def accepted(outcome: Outcome) -> Accepted:
    """The yes, or the refusal as an exception."""
    if isinstance(outcome, Refusal):
        raise Refused(outcome)
    return outcome
