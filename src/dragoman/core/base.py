"""Roots of all commands and events, and the words that several of them use."""

from typing import ClassVar, Final, Literal

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

    free_text: ClassVar[tuple[str, ...]] = ()
    """Fields of free text: texts, lists of them, or JSON. Free text is what people and agents write
    as they like: it is redacted before all else. Every other field is a name, a number or a choice,
    and stays as it is: a name that holds a secret is refused. Turns and traces arrive redacted by
    the dialect that understands their parts."""

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


def command_name(command: Command) -> str:
    """Stable name of a command, as refusals record it."""
    return str(type(command).__struct_config__.tag)


OTHER_TEXT_FIELDS: Final = frozenset({"digest", "envelope", "event_id", "package"})
"""Fields of commands that are neither name nor free text: hashes, UUIDs, what its dialect has
redacted, and packages, which are hashed, and refused if they have a secret."""


class TaskCommand(Command, frozen=True):
    """A command about one existing task, by any of its names."""

    task: str

    @property
    def target_task(self) -> str:
        return self.task

    @property
    def heartbeat_task(self) -> str:
        return self.task
