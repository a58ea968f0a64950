"""Resource schemas of accepted messages: what the hub answers, and what the SDK reads."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from dragoman.core.base import Status


class TaskStatusAfter(Struct, frozen=True):
    """A task that a message was about, and its status after the message; of a repeat, after the
    first one."""

    id: str
    status: Status | None


class AcceptedMessage(Struct, frozen=True, kw_only=True):
    """The outcome of an accepted message."""

    line: int | UnsetType = UNSET
    """The number of its line in a batch, from 1."""
    ok: bool = True
    dialect: str
    type: str
    agent: str
    reply: Any
    """In the dialect's own form."""
    tasks: list[TaskStatusAfter]
    warnings: tuple[str, ...]
    repeated: bool
    """Sent before: nothing was added."""
