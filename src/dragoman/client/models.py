"""Models of the hub's responses. A field that this client does not know is ignored."""

from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.engine.schemas.briefing import BriefingResource, ClaimedTask
from dragoman.engine.schemas.status import StatusResource
from dragoman.engine.schemas.tasks import QuestionedTask, TaskDetail

Claim: TypeAlias = ClaimedTask
"""A task that an agent has claimed."""


AskedQuestion: TypeAlias = QuestionedTask
"""A task about which a question was asked, and the id of that."""


Task: TypeAlias = TaskDetail
"""A task with everything about it."""


Briefing: TypeAlias = BriefingResource
"""All that earlier attempts, answers and reviews left for whoever works on a task next."""


HubStatus: TypeAlias = StatusResource
"""The whole hub at one moment."""


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
    original_text: Any = None
    """The original text of the message that caused it."""
    withheld: bool = False
    """True if only others may read what it says; its type is `withheld` then, its body empty."""

    @property
    def task(self) -> str:
        """The task that it happened to; empty: none."""
        kind, _, name = self.stream.partition(":")
        return name if kind == "task" else ""


class Problem(Struct, frozen=True):
    """A refusal of the hub (RFC 9457): `code` is for programs, `detail` for people."""

    code: str
    detail: str
    status: int = 0
    path: str = ""
    """Path in the message, if it is about one field."""


class RejectedMessage(Struct, frozen=True):
    """The outcome of a message of a batch that was refused."""

    problem: Problem


class EventPage(Struct, frozen=True):
    """A page of events, and the position after which the next one begins."""

    events: tuple[Event, ...]
    next: int
