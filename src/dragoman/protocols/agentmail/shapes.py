"""What a letter is once it has been read: the message, its fields, and what could not be read."""

from msgspec import Struct

from dragoman.protocols.agentmail.words import MessageType


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
