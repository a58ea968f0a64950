"""Notices: what is said about a task, in no dialect's words (S-NOTICE).

Each dialect turns its messages into notices and notices into its messages. A translation never
invents: what the target cannot say is a listed loss and stands in its free text; a required field
that the source lacks takes the neutral value of one table, and is listed as filled.
"""

from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import fields

# --- notice -----------------------------------------------------------------------------------

NoticeKind = Literal[
    "offer",
    "withdrawn",
    "accepted",
    "rejected",
    "progress",
    "help_asked",
    "help_answered",
    "result",
    "failed",
    "checkpoint",
    "escalated",
    "message",
]
"""`checkpoint`: partly done, for a successor; `message`: words that mean nothing to a task."""


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Message of one party to another about a task. Empty fields say nothing."""

    kind: NoticeKind
    task: str = ""
    aof_id: str = ""
    """The AOF id of the task, where that is not its name."""
    sender: str = ""
    recipient: str = ""
    at: str = ""
    """Time of sending, as RFC 3339."""
    thread: str = ""
    session: str = ""
    title: str = ""
    text: str = ""
    """The main words."""
    notes: str = ""
    # Progress
    status: str = ""
    """Status of the task that the sender states."""
    step: str = ""
    percent: float | None = None
    context_usage: int | None = None
    # Results
    outcome: str = ""
    """`done`, `needs_review` or `partial`."""
    reason: str = ""
    """Code of a failure, a rejection or a kind of question, in its dialect's words."""
    blockers: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commit: str = ""
    tests: tuple[int, int, int] | None = None
    """Number of tests: all, passed, failed."""
    tests_pass: bool | None = None
    lint_pass: bool | None = None
    build_pass: bool | None = None
    summary_ref: str = ""
    handoff_ref: str = ""
    attempts: int | None = None
    recommendation: str = ""
    next_steps: str = ""
    output: Any = None
    # Questions
    question: str = ""
    question_id: str = ""
    """Id of the question, by which an answer names it."""
    tried: str = ""
    # Offers
    objective: str = ""
    parent: str = ""
    due_by: str = ""
    priority: str = ""
    criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """Expected outputs."""
    refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    params: dict[str, Any] = {}
    resume: bool | None = None
    orchestrator: str = ""
    handoff: str = ""
    """Id of the handoff that it is about."""
    package_hash: str = ""
    request: str = ""
    """Id of the request that it is about."""
    details: dict[str, Any] = {}
    """Fields that only its own dialect knows."""


FIELDS: Final = tuple(field.name for field in fields(Notice))

_EMPTY: Final[tuple[Any, ...]] = ("", None, (), {}, [])


def read_notice(kind: str, stated: dict[str, Any], **own: Any) -> Notice:
    """Read a notice from a free object, as messages carry one; what does not fit is left out."""
    known = {name: value for name, value in stated.items() if name in FIELDS and name != "kind"}
    given = {name: value for name, value in own.items() if value not in _EMPTY}
    try:
        return msgspec.convert({"kind": kind, **known, **given}, Notice)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert({"kind": kind, **given}, Notice)
    except msgspec.ValidationError:
        return msgspec.convert({**given, "kind": "message"}, Notice)


# --- translation ------------------------------------------------------------------------------


class Loss(Struct, frozen=True):
    """A field that the target cannot say; its value stands in the free text."""

    field: str
    value: Any


class Filled(Struct, frozen=True):
    """A required field of the target that the source lacks, with its neutral value."""

    field: str
    value: Any


class Translation(Struct, frozen=True):
    """A message in the target's form, and what it does not say as the source did."""

    message: dict[str, Any] | None
    """None: the target cannot even carry it as a notice; `reason` says why."""
    losses: tuple[Loss, ...] = ()
    filled: tuple[Filled, ...] = ()
    is_notice: bool = False
    """True if the target has no such message, and it travels in the dialect's form of a notice."""
    reason: str = ""


NEUTRAL_VALUES: Final[dict[str, Any]] = {
    "aof.fromAgent": "unknown",
    "aof.toAgent": "dispatcher",
    "aof.sentAt": "1970-01-01T00:00:00.000Z",
    "aof.tests": {"total": 0, "passed": 0, "failed": 0},
    "aof.notes": "",
    "aof.summaryRef": "outputs/summary.md",
    "aof.blockers": ["not stated"],
    "aof.reason": "not stated",
    "acp.to": ["coordinator"],
    "acp.context.summary": "not stated",
    "acp.work_state.status": "not_started",
    "acp.work_state.next_step": "not stated",
    "acp.priority": "normal",
    "ccos.agent_id": "unknown",
    "ccos.goal": "not stated",
    "ccos.error": "not stated",
    "saop.timestamp": "1970-01-01T00:00:00.000Z",
}
"""Required field of a dialect -> the value that says nothing. Letters leave such fields out."""


class NoticeReader:
    """Reads the fields of a notice, and remembers which were said."""

    def __init__(self, notice: Notice) -> None:
        self.notice = notice
        self._left: dict[str, Any] = msgspec.to_builtins(notice)
        """Stated fields that the message has not said, as plain values."""
        del self._left["kind"]
        self._details: dict[str, Any] = self._left.pop("details", {})
        self._losses: list[Loss] = []
        self._filled: list[Filled] = []

    def take(self, name: str) -> Any:
        """The value of a field, which the message says."""
        self._left.pop(name, None)
        return getattr(self.notice, name)

    def take_detail(self, name: str) -> Any:
        """Fields that only this dialect knows, if the notice has them."""
        return self._details.pop(name, None)

    def fill(self, name: str, neutral: Any = None) -> Any:
        """The neutral value of a field of the target; by default that of the table."""
        value = NEUTRAL_VALUES[name] if neutral is None else neutral
        self._filled.append(Filled(name.partition(".")[2], value))
        return value

    def take_or_fill(self, name: str, target: str, neutral: Any = None) -> Any:
        """The value of a field, or its neutral value if the notice lacks it."""
        value = self.take(name)
        is_blank = isinstance(value, str) and not value.strip()
        return self.fill(target, neutral) if is_blank or value in _EMPTY else value

    def lose(self, name: str, value: Any = None) -> None:
        """List a field, or a detail of this value, as lost, though a part of it may be said."""
        stated = getattr(self.notice, name) if value is None else value
        self._losses.append(Loss(name, _plain(stated)))
        self._left.pop(name, None)

    def rest(self) -> dict[str, Any]:
        """Take all fields that the message has not said: its free object says them."""
        said = {name: value for name, value in self._left.items() if value not in _EMPTY}
        if self._details:
            said["details"] = self._details
        self._left, self._details = {}, {}
        return said

    def lost_lines(self) -> list[str]:
        """List what the message has not said as lost; the lines that its free text says instead."""
        stated = [Loss(name, value) for name, value in self._left.items() if value not in _EMPTY]
        self._losses += stated
        self._losses += [Loss(name, value) for name, value in self._details.items()]
        self._left, self._details = {}, {}
        return [f"{loss.field}: {_format(loss.value)}" for loss in self._losses]

    def finish(self, message: dict[str, Any], *, is_notice: bool = False) -> Translation:
        """The translation; what was neither said nor listed is listed as lost."""
        self.lost_lines()
        return Translation(message, tuple(self._losses), tuple(self._filled), is_notice)


def present(**values: Any) -> dict[str, Any]:
    """The fields of a message that are not empty."""
    return {name: _plain(value) for name, value in values.items() if value not in _EMPTY}


def _plain(value: Any) -> Any:
    return list(cast(tuple[Any, ...], value)) if isinstance(value, tuple) else value


def _format(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
