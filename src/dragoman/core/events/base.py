"""What all events have in common: their root, and the words that several of them use."""

from typing import Literal

from msgspec import Struct

Status = Literal[
    "backlog", "ready", "in-progress", "blocked", "review", "done", "deadletter", "cancelled"
]
Priority = Literal["critical", "high", "normal", "low"]
LinkKind = Literal["blocked-by", "parent", "discovered-from"]
Outcome = Literal["done", "blocked", "needs_review", "partial", "failed"]
Importance = Literal["low", "normal", "high", "urgent"]
Role = Literal[
    "agent",
    "orchestrator",
    "coordinator",
    "human",
    "observer",
    "file",
    "trusted-file",
    "system",
]


class Event(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}):
    """Root of all events: one fact about one stream."""
