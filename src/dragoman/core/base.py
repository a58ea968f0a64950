"""Roots of all commands and events, and the words that several of them use."""

from typing import Literal

from msgspec import Struct

# --- words ------------------------------------------------------------------------------------

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


# --- events -----------------------------------------------------------------------------------


class Event(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}):
    """Root of all events: one fact about one stream."""


# --- commands ---------------------------------------------------------------------------------

DEFAULT_LEASE_MS = 300_000
"""A lease without a heartbeat expires after five minutes (S-RUN)."""

DEFAULT_MAX_ATTEMPTS = 5
"""After this many failures in a row a task goes to the deadletter (S-RUN)."""


class Command(Struct, frozen=True, omit_defaults=True):
    """Root of all commands. A request is a tuple of them, all or none. The tag is the name."""

    @property
    def target_task(self) -> str:
        """Task that it is about, by any of its names; empty when there is none yet."""
        return ""

    @property
    def heartbeat_task(self) -> str:
        """Task whose lease is renewed if its holder sends this; empty: none."""
        return ""

    @property
    def named_fence(self) -> int | None:
        """Fencing token that it names; None: whichever its sender holds."""
        return getattr(self, "fence", None)


class TaskCommand(Command, frozen=True):
    """A command about one existing task, by any of its names."""

    task: str

    @property
    def target_task(self) -> str:
        return self.task

    @property
    def heartbeat_task(self) -> str:
        return self.task
