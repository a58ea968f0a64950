"""Roots of all commands and events, and the words that several of them use."""

from typing import ClassVar, Final, Literal

from msgspec import Struct

# --- words ------------------------------------------------------------------------------------

ATTENTION_LIST: Final = "attention"
"""List of the streams that a person may have to look at, as far as their own state tells:
questions of agents, late delegations, unanswered letters, gates and overdue handoffs."""

CHECKS_LIST: Final = "checks"
"""List of the tasks whose work was reported done, and whose checks the hub has to run."""

Status = Literal[
    "backlog", "ready", "in-progress", "blocked", "review", "done", "deadletter", "cancelled"
]

AttentionKind = Literal[
    "waits_for_input",
    "question",
    "help",
    "gate",
    "review",
    "paused",
    "no_progress",
    "deadletter",
    "unknown_assignee",
    "escalation",
]
"""Needs of a person, the most urgent first: a program waits in its terminal, somebody waits for an
answer, a handoff for approval, work for a review, tasks for a paused agent; an agent is alive and
shows no progress; a task was given up, is assigned to nobody who exists; something is late."""

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

    original_kept_in: ClassVar[tuple[str, ...]] = ()
    """Beginnings of the streams in which the first entry of its request keeps the sender's message;
    none: in any. What everybody reads of a task must not hold what a handoff says."""

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


OTHER_TEXT_FIELDS: Final = frozenset({"digest", "envelope", "event_id", "package", "results"})
"""Fields of commands that are neither name nor free text: hashes, UUIDs, what its dialect has
redacted, results of checks, which are redacted before they are hashed, and packages, which are
hashed, and refused if they have a secret."""


class TaskCommand(Command, frozen=True):
    """A command about one existing task, by any of its names."""

    task: str

    @property
    def target_task(self) -> str:
        return self.task

    @property
    def heartbeat_task(self) -> str:
        return self.task
