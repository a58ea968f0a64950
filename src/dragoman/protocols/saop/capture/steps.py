"""The steps of an agent's work, whatever its record looks like: what readers of formats give."""

from typing import Any, Literal

from msgspec import Struct

Status = Literal["success", "failure", "timeout"]


class Step(Struct, frozen=True, kw_only=True):
    """One thing that happened."""

    at: int | None = None
    """When, in milliseconds; None: the record does not say."""


class ModelStep(Step, frozen=True, kw_only=True):
    """One thing that the model gave: all of one answer belong to one turn."""

    answer: str = ""
    """What the record calls the answer; empty: it ends where something is observed."""


class Thought(ModelStep, frozen=True):
    """Reasoning."""

    text: str


class Spoke(ModelStep, frozen=True):
    """Words for whoever listens."""

    text: str


class Planned(ModelStep, frozen=True):
    """The wish to use a tool."""

    tool: str
    arguments: Any


class Ended(Step, frozen=True):
    """The record says that the model's answer is over."""


class Called(Step, frozen=True):
    """A tool began."""

    call: str
    tool: str
    arguments: Any


class Returned(Step, frozen=True):
    """A tool ended."""

    call: str
    status: Status
    output: str
    tool: str = ""
    """Empty: the one of its call."""
    duration_ms: int | None = None
    """None: what lies between its call and its end."""
    has_run: bool = True
    """Whether the output is the tool's own, and not why it did not run."""


class Observed(Step, frozen=True):
    """Something that the model was told otherwise: what a person asked for, for example."""

    text: str
