"""The steps of an agent's work, whatever its record looks like: what readers of formats give."""

from typing import Any, Literal

from msgspec import Struct

Status = Literal["success", "failure", "timeout"]


class Step(Struct, frozen=True, kw_only=True):
    """One step of an agent's work."""

    at: int | None = None
    """Time in milliseconds; None: the record does not state it."""


class ModelStep(Step, frozen=True, kw_only=True):
    """A step of the model's answer; all steps of one answer belong to one turn."""

    answer: str = ""
    """Id of the answer; empty: an answer ends where something is observed."""


class Thought(ModelStep, frozen=True):
    """Reasoning of the model."""

    text: str


class Spoke(ModelStep, frozen=True):
    """Text of an answer."""

    text: str


class Planned(ModelStep, frozen=True):
    """Request of the model to call a tool."""

    tool: str
    arguments: Any


class Ended(Step, frozen=True):
    """The record states that the model's answer is complete."""


class Called(Step, frozen=True):
    """Start of a tool call."""

    call: str
    tool: str
    arguments: Any


class Returned(Step, frozen=True):
    """End of a tool call."""

    call: str
    status: Status
    output: str
    tool: str = ""
    """Empty: the tool of its call."""
    duration_ms: int | None = None
    """None: the time since the start of its call."""
    has_run: bool = True
    """The output is the tool's own, not the reason why it did not run."""


class Observed(Step, frozen=True):
    """Anything else that the model was told, such as a person's request."""

    text: str
