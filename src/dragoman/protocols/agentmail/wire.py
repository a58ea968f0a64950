"""Agent Mail on the wire: message types, parsed letters, and the arguments of mail operations."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from dragoman.core.base import Role
from dragoman.core.ids import AGENT_PATTERN, ID_PATTERN
from dragoman.core.limits import MAX_PAGE

# --- message types and enumerations -----------------------------------------------------------


class MessageType(StrEnum):
    """Type of a message; UNKNOWN if its subject names none."""

    BEAD_ACCEPTED = "BEAD_ACCEPTED"
    PROGRESS = "PROGRESS"
    HELP_REQUEST = "HELP_REQUEST"
    HELP_RESPONSE = "HELP_RESPONSE"
    OFFERING_READY = "OFFERING_READY"
    DONE = "DONE"
    FAILED = "FAILED"
    CHECKPOINT = "CHECKPOINT"
    SPAWN_REQUEST = "SPAWN_REQUEST"
    SPAWN_ACK = "SPAWN_ACK"
    UNKNOWN = "UNKNOWN"


MESSAGE_TYPES: Final[Mapping[str, MessageType]] = {
    type.value: type for type in MessageType if type is not MessageType.UNKNOWN
}
"""Word in a subject -> type."""

ISSUE_TYPES: Final = ("STUCK", "SPEC_UNCLEAR", "BLOCKED", "TECHNICAL")

FAILURE_TYPES: Final = ("TESTS_FAIL", "BUILD_FAIL", "SPEC_IMPOSSIBLE", "CONTEXT_HIGH", "ERROR")

CHECKPOINT_REASONS: Final = ("CONTEXT_HIGH", "MANUAL", "TIMEOUT")

COMPLETED_STATUSES: Final = ("DONE",)

FAILED_STATUSES: Final = ("FAILED",)

SPAWN_STATUSES: Final = ("spawned", "failed")

SPAWNED: Final = "spawned"

VERDICTS: Final[Mapping[str, bool]] = {
    "pass": True,
    "passed": True,
    "true": True,
    "yes": True,
    "ok": True,
    "fail": False,
    "failed": False,
    "false": False,
    "no": False,
}
"""Word for the result of a check, or for `resume` -> its value; other words have none."""

ACK_REQUIRED: Final[Mapping[MessageType, bool]] = {
    MessageType.BEAD_ACCEPTED: False,
    MessageType.PROGRESS: False,
    MessageType.HELP_REQUEST: True,
    MessageType.HELP_RESPONSE: False,
    MessageType.OFFERING_READY: True,
    MessageType.DONE: False,
    MessageType.FAILED: False,
    MessageType.CHECKPOINT: False,
    MessageType.SPAWN_REQUEST: True,
    MessageType.SPAWN_ACK: False,
    MessageType.UNKNOWN: False,
}
"""Default of a type for requesting an acknowledgement (S-MAIL-7)."""

ANSWERS: Final[Mapping[MessageType, MessageType]] = {
    MessageType.HELP_RESPONSE: MessageType.HELP_REQUEST,
    MessageType.SPAWN_ACK: MessageType.SPAWN_REQUEST,
}
"""Type of an answer -> the type that it answers and thereby acknowledges (S-MAIL-7)."""

ANSWER_ROLES: Final[Mapping[MessageType, tuple[Role, ...]]] = {
    MessageType.HELP_RESPONSE: ("human", "orchestrator", "coordinator", "system"),
    MessageType.SPAWN_ACK: ("system",),
}
"""Type of an answer -> roles that may answer a letter that is not in their own box."""


# --- parsed letters ---------------------------------------------------------------------------


class Problem(Struct, frozen=True, gc=False):
    """A problem of a letter."""

    name: str
    """Stable name, one of `errors.PROBLEM_NAMES`."""
    field: str
    """Field of the message or of `parsed` at fault; empty: the message as a whole."""
    line: int
    """Line of the body, counted from 1; 0: no line of the body."""
    text: str
    """Sentence for people: the fault, and a correct value."""


class Parsed(Struct, frozen=True, kw_only=True, gc=False):
    """Every field that a body can have. Absent texts are empty, other absent values None."""

    bead_id: str = ""
    title: str = ""
    started_at: str = ""
    step: str = ""
    status: str = ""
    context_usage: int | None = None
    files_touched: tuple[str, ...] = ()
    issue_type: str = ""
    problem: str = ""
    what_tried: str = ""
    question: str = ""
    guidance: str = ""
    commit_sha: str = ""
    files: tuple[str, ...] = ()
    tests_pass: bool | None = None
    lint_pass: bool | None = None
    build_pass: bool | None = None
    summary: str = ""
    failure_type: str = ""
    reason: str = ""
    internal_attempts: int | None = None
    partial_commit_sha: str = ""
    recommendation: str = ""
    checkpoint_reason: str = ""
    progress: str = ""
    next_steps: str = ""
    issue_id: str = ""
    resume: bool | None = None
    orchestrator: str = ""
    session: str = ""


class Message(
    Struct, frozen=True, kw_only=True, gc=False, rename={"sender": "from", "body": "body_md"}.get
):
    """A parsed letter: its envelope, its fields, and its problems."""

    type: MessageType = MessageType.UNKNOWN
    id: str | int | None = None
    """Id as in the row; a server that numbers its letters wants the number back."""
    thread_id: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    subject: str = ""
    body: str = ""
    timestamp: str = ""
    importance: str = "normal"
    ack_required: bool = False
    acknowledged: bool | None = None
    """None if the row does not state it."""
    read: bool | None = None
    """None if the row does not state it."""
    parsed: Parsed = Parsed()
    problems: tuple[Problem, ...] = ()

    @property
    def bead_id(self) -> str:
        """Bead that the letter is about; empty if it names none."""
        return self.parsed.bead_id


# --- arguments and answers of operations ------------------------------------------------------

Importance = Literal["low", "normal", "high", "urgent"]

LetterId = Annotated[str, Meta(extra_json_schema={"pattern": f"^{ID_PATTERN}$"})]
"""Id of a letter or a thread."""

OptionalAgent = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{AGENT_PATTERN})?$"})]

PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]

Position = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class SendMail(Struct, frozen=True, rename={"from_": "from"}.get):
    """A letter to send: a message row as agents of this dialect write it."""

    subject: str
    body_md: str
    to: tuple[str, ...] | str = ()
    """Names, @agents, @orchestrators, @humans, or a configured group; none: the type's defaults."""
    cc: tuple[str, ...] | str = ()
    from_: str = ""
    """Sender, who must be the caller."""
    id: str | int | None = None
    """Id chosen by the sender; a letter sent again under it is the same letter."""
    thread_id: str = ""
    reply_to: str = ""
    """The letter that it replies to, whose thread it continues."""
    importance: Importance = "normal"
    ack_required: bool | None = None
    """None: the default of its type."""
    ack_within_ms: int | None = None
    """Time after which a missing ack counts as late, from a second to 30 days; None: the setting.
    """
    attachments: tuple[str, ...] = ()
    """Paths or addresses of the attachments."""
    timestamp: str = ""


class OutgoingLetter(Struct, frozen=True):
    """A letter to send, and its parsed message."""

    row: SendMail
    message: Message


class InboxQuery(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}.get):
    """Filters of a mailbox."""

    agent: OptionalAgent = ""
    """Owner of the box; empty: the caller. Listing marks no letter as read."""
    box: Literal["in", "sent", "overdue", "waiting"] = "in"
    """Received; sent; all with a late ack or answer; all that wait for somebody unknown."""
    unread: bool = False
    pending: bool = False
    """Only letters that the box's owner has still to ack."""
    type: str = ""
    bead_id: str = ""
    thread_id: str = ""
    from_: str = ""
    only: Literal["all", "completions", "successes", "checked"] = "all"
    """All; those that end an attempt; those that end it successfully; of these, all checks passing.
    """
    after: Position = 0
    before: Position | None = None
    """Newest first, from this position back; 0: from the newest one."""
    limit: PageSize = 50


class LetterRef(Struct, frozen=True, forbid_unknown_fields=True):
    """A letter, by its id."""

    id: LetterId


class ThreadQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A page of a thread, oldest first, by the thread's id."""

    thread_id: LetterId
    after: Position = 0
    limit: PageSize = 50


class SummaryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A thread to summarize, by its id."""

    thread_id: LetterId
    before: Position | None = None
    """Only letters before this position: the `cursor` of a summary that left older letters out."""


class SearchQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Words to find in letters."""

    query: Annotated[str, Meta(max_length=1_000)]
    before: Position | None = None
    limit: PageSize = 50


ShownLetter = Mapping[str, Any]
"""A letter as its reader gets it."""
