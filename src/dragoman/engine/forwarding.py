"""Wire types for what another process forwards to the running hub: commands, operations, calls of
the command line."""

from typing import Annotated, Any, Protocol

from msgspec import UNSET, Meta, Struct

from dragoman.core.actor import Actor, MessageReceived
from dragoman.core.deciders import AnyCommand
from dragoman.core.errors import Refusal
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.core.read import Receipt
from dragoman.engine.request import Accepted, Rejected


class ForwardedCommands(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Commands that succeed together or not at all, and their actor."""

    actor: Actor
    commands: Annotated[tuple[AnyCommand, ...], Meta(min_length=1, max_length=2_000)]
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


class LocalCaller(Struct, frozen=True, forbid_unknown_fields=True):
    """The process of a caller who owns the data directory, and works beside it."""

    data: str
    """The data directory, as the command will find it."""
    names_data: bool
    """True if the caller has named it, rather than found it."""
    folder: str
    """Working directory."""
    user: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
    """User id."""


class ForwardedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call of the command line, and what it takes from its process."""

    args: tuple[str, ...]
    terminals: tuple[bool, bool]
    """Standard output and error output: whether they are terminals."""
    encoding: str
    environ: dict[str, str]
    """Variables that decide how a terminal is written to."""
    inputs: dict[str, str]
    """Files that the command wanted to read, one character for each byte; `-`: standard input."""
    local: LocalCaller | None = None
    """Only the owner has one; without one the command runs as the bearer of the token."""
    url: str = ""
    """The hub's address, where the command names it."""


class WantedInput(Struct, frozen=True):
    """A file that a command wants to read, or `-`, and how much of it."""

    source: str
    max_bytes: int


class ForwardedOutput(Struct, frozen=True, omit_defaults=True):
    """A part of the output of a call; or what it wants before it can run; or that it needs its own
    process."""

    code: int | None = None
    """Exit code, in the last part of the output."""
    output: tuple[tuple[int, str], ...] = ()
    """File descriptor and text, in the order of writing."""
    wanted: WantedInput | None = None
    runs_here: bool = True

    @property
    def is_last(self) -> bool:
        """True if nothing follows."""
        return self.code is not None or self.wanted is not None or not self.runs_here


class CommandRun(Protocol):
    """A command that runs for a caller."""

    async def next_part(self) -> ForwardedOutput:
        """Wait for the next part of its output."""
        ...

    def close(self) -> None:
        """End its wait for more entries: nobody reads its output any more."""
        ...
