"""The steps of an agent's work, whatever its record looks like: what readers of formats give."""

from typing import Any, Literal

from msgspec import Struct

ToolStatus = Literal["success", "failure", "timeout"]


class AgentStep(Struct, frozen=True, kw_only=True):
    """One step of an agent's work."""

    at: int | None = None
    """Time in milliseconds; None: the record does not state it."""


class ModelStep(AgentStep, frozen=True, kw_only=True):
    """A step of the model's answer; all steps of one answer belong to one turn."""

    answer: str = ""
    """Id of the answer; empty: an answer ends where something is observed."""


class Thought(ModelStep, frozen=True):
    """Reasoning of the model."""

    text: str


class AnswerText(ModelStep, frozen=True):
    """Text of an answer."""

    text: str


class ToolRequest(ModelStep, frozen=True):
    """Request of the model to call a tool."""

    tool: str
    arguments: Any


class AnswerEnd(AgentStep, frozen=True):
    """The record states that the model's answer is complete."""


class ToolStart(AgentStep, frozen=True):
    """Start of a tool call."""

    call_id: str
    tool: str
    arguments: Any


class ToolEnd(AgentStep, frozen=True):
    """End of a tool call."""

    call_id: str
    status: ToolStatus
    output: str
    tool: str = ""
    """Empty: the tool of its call."""
    duration_ms: int | None = None
    """None: the time since the start of its call."""
    has_run: bool = True
    """The output is the tool's own, not the reason why it did not run."""


class Observation(AgentStep, frozen=True):
    """Anything else that the model was told, such as a person's request."""

    text: str
