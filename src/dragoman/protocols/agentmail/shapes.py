"""What a letter is once it has been read: the message, its fields, and what could not be read."""

from msgspec import Struct

from dragoman.protocols.agentmail.words import MessageType


class Problem(Struct, frozen=True, gc=False):
    """One thing that is wrong with a message."""

    name: str
    """Stable, for programs: one of `problems.NAMES`."""
    field: str
    """The field of the message or of `parsed` that it is about; empty: the message as a whole."""
    line: int
    """The line of the body, counted from 1; 0 when it is about no line of the body."""
    text: str
    """For people: what is wrong, and what would be right."""


class Parsed(Struct, frozen=True, kw_only=True, gc=False):
    """Every field that a body can have. Missing texts are empty, missing values None."""

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
    """A letter: what stands on the envelope, what it says, and what could not be read of it."""

    type: MessageType = MessageType.UNKNOWN
    id: str | int | None = None
    """As the row has it: a server that numbers its letters wants the number back."""
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
    """None: the row does not say."""
    read: bool | None = None
    """None: the row does not say."""
    parsed: Parsed = Parsed()
    problems: tuple[Problem, ...] = ()

    @property
    def bead_id(self) -> str:
        """The bead that it is about; empty when it names none."""
        return self.parsed.bead_id
