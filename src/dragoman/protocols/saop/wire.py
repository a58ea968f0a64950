"""SAOP on the wire: turn envelopes and events (S-SAOP-1).

To add an event type, write one class here and add it to `parse.TYPES`.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.agent import SAOP_ROLES
from dragoman.core.ids import EVENT_ID_PATTERN, ID_PATTERN, SESSION_PATTERN
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.core.trace import MAX_CALL_ID_LENGTH

_DAY: Final = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
"""A calendar date; the rare cases come last."""
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?Z"
_TIMESTAMP: Final = f"{_DAY}T{_TIME}"
"""Published patterns end with `$`, and these do not match before a line break."""

SaopRole = Literal["researcher", "architect", "developer", "reviewer"]
Timestamp = Annotated[
    str,
    Meta(
        pattern=rf"^{_TIMESTAMP}$(?!\n)",
        extra={"reason": "a moment in UTC as RFC 3339 writes it, such as 2026-02-21T10:00:00.000Z"},
    ),
]
EventId = Annotated[
    str,
    Meta(
        pattern=rf"^{EVENT_ID_PATTERN}$(?!\n)",
        extra={"reason": "a UUID"},
    ),
]
TaskId = Annotated[str, Meta(extra_json_schema={"pattern": f"^{ID_PATTERN}$"})]
SessionId = Annotated[str, Meta(extra_json_schema={"pattern": f"^{SESSION_PATTERN}$"})]
CallId = Annotated[str, Meta(extra_json_schema={"maxLength": MAX_CALL_ID_LENGTH})]
"""Every text fits the schema; the published limit is the hub's."""
_WHOLE: Final = {"reason": f"a whole number from 0 to {MAX_SAFE_INTEGER}"}
TurnIndex = (
    Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER, extra=_WHOLE)]
    | Annotated[float, Meta(ge=0, le=MAX_SAFE_INTEGER, multiple_of=1, extra=_WHOLE)]
)
"""A whole number, also written as 1.0."""
Confidence = Annotated[float, Meta(ge=0, le=1, extra={"reason": "a number from 0 to 1"})]
Duration = Annotated[float, Meta(ge=0, extra={"reason": "a number of milliseconds, 0 or more"})]

assert SaopRole.__args__ == SAOP_ROLES, "registered parts and those of the schema are equal"


class Content(Struct, frozen=True, gc=False):
    """Thought, action and observation of a turn."""

    thought: str
    action: str
    observation: str


class Metadata(Struct, frozen=True, gc=False):
    """Task, time, confidence and complexity of a turn."""

    version: Literal["1.0.0"]
    task_id: TaskId
    timestamp: Timestamp
    confidence: Confidence
    estimated_complexity: Literal["low", "medium", "high"]


class TurnEnvelope(Struct, frozen=True, gc=False):
    """One turn of an agent."""

    turn_index: TurnIndex
    agent_id: SaopRole
    role: SaopRole
    content: Content
    metadata: Metadata


class EventContext(Struct, frozen=True, gc=False):
    """Task, tool call, turn and transition that an event refers to; empty for most types."""

    task: str = ""
    """Task that the event names."""
    agent: str = ""
    call: str = ""
    ends_call: bool = False
    turn: int | None = None
    is_final: bool = False
    to_state: str = ""
    commit: str = ""


class Payload(Struct, frozen=True, gc=False, tag_field="type"):
    """Payload of an event; its type is its tag."""

    def context(self) -> EventContext:
        """Extract the task, tool call, turn and transition it refers to."""
        return _NO_CONTEXT


_NO_CONTEXT: Final = EventContext()


class ThoughtStream(Payload, frozen=True, gc=False, tag="THOUGHT_STREAM"):
    """A part of what an agent is thinking."""

    agent_id: SaopRole
    turn_index: TurnIndex
    chunk: str
    is_final: bool

    def context(self) -> EventContext:
        return EventContext(agent=self.agent_id, turn=int(self.turn_index), is_final=self.is_final)


class ToolInvoked(Payload, frozen=True, gc=False, tag="TOOL_LIFECYCLE_INVOKED"):
    """An agent has called a tool."""

    call_id: CallId
    tool: str
    arguments: dict[str, Any]
    timestamp: Timestamp

    def context(self) -> EventContext:
        return EventContext(call=self.call_id)


class ToolCompleted(Payload, frozen=True, gc=False, tag="TOOL_LIFECYCLE_COMPLETED"):
    """The call of a tool has ended."""

    call_id: CallId
    tool: str
    status: Literal["success", "failure", "timeout"]
    duration_ms: Duration
    timestamp: Timestamp

    def context(self) -> EventContext:
        return EventContext(call=self.call_id, ends_call=True)


class TaskTransition(Payload, frozen=True, gc=False, tag="TASK_TRANSITION"):
    """A task has moved, or is to move."""

    task_id: str
    from_state: str
    to_state: str
    timestamp: Timestamp
    git_hash: str | UnsetType = UNSET

    def context(self) -> EventContext:
        commit = "" if isinstance(self.git_hash, UnsetType) else self.git_hash
        return EventContext(task=self.task_id, to_state=self.to_state, commit=commit)


class SandboxPulse(Payload, frozen=True, gc=False, tag="SANDBOX_PULSE"):
    """A line of terminal output."""

    line: str
    masked: bool
    timestamp: Timestamp


class NoticePayload(Payload, frozen=True, gc=False, tag="NOTICE"):
    """Message of another agent about a task, in no words of its own (S-NOTICE)."""

    task_id: str
    kind: str
    text: str
    timestamp: Timestamp
    from_agent: str = ""
    to_agent: str = ""
    details: dict[str, Any] = {}

    def context(self) -> EventContext:
        return EventContext(task=self.task_id)


class Event(Struct, frozen=True, gc=False):
    """Something that happened in a session; `payload` is of one of the registered types."""

    event_id: EventId
    session_id: SessionId
    payload: Payload
