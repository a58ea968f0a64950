"""What the hub answers, as an agent sees it. A field that this client does not know is ignored."""

from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.engine.shown.tasks import TaskSummary, WholeTask

Task: TypeAlias = WholeTask
"""A task with everything about it."""


class Event(Struct, frozen=True, rename="camel"):
    """An entry of the ledger: something that happened."""

    position: int
    stream: str
    version: int
    type: str
    at: str
    actor: str
    cause: str
    body: dict[str, Any]
    hash: str
    via: str | None = None
    said: Any = None
    """The message that caused it, in its sender's own words."""

    @property
    def task(self) -> str:
        """The task that it happened to; empty: none."""
        kind, _, name = self.stream.partition(":")
        return name if kind == "task" else ""


class TaskNow(Struct, frozen=True):
    """A task that a message was about, and where it stood after it; of a repeat, the first time."""

    id: str
    status: Status | None


class Sent(Struct, frozen=True):
    """What came of a message that the hub took."""

    dialect: str
    type: str
    agent: str
    reply: Any
    """In the dialect's own form."""
    tasks: tuple[TaskNow, ...]
    warnings: tuple[str, ...]
    repeated: bool
    """Said before: nothing was added."""


class Problem(Struct, frozen=True):
    """Why the hub said no (RFC 9457): `code` is for programs, `detail` for people."""

    code: str
    detail: str
    status: int = 0
    path: str = ""
    """Where in the message, when it is about one field."""


class NotSent(Struct, frozen=True):
    """What came of a message of a batch that was refused."""

    problem: Problem


class Claim(Struct, frozen=True, rename="camel"):
    """A task that has come into an agent's hands."""

    agent: str
    attempt: int
    fence: int
    task: Task
    token: str | None = None
    """What its writes are signed with, where another than the agent has claimed it."""


class TaskPage(Struct, frozen=True):
    """Some tasks, and where the next ones begin."""

    tasks: tuple[TaskSummary, ...]
    next: int | None


class EventPage(Struct, frozen=True):
    """Some events, and where the next ones begin."""

    events: tuple[Event, ...]
    next: int
