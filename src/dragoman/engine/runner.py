"""How work reaches an agent: the small contract between the dispatcher and whoever starts agents.

A runner raises OSError, with words for a person, when it cannot start an agent. Whatever the agent
says as a message of a dialect goes through `Hear`, in order; nothing else of a run touches the hub.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

SESSION_VARIABLE: Final = "DRAGOMAN_SESSION"
"""What every program that is started for an attempt has among its variables."""

Hear = Callable[[bytes], Awaitable[str]]
"""Takes a message that the agent said; what is to be noted beside it, if anything."""


class Assignment(Struct, frozen=True):
    """One attempt of one agent on one task."""

    agent: str
    task: str
    """The task's own id; its AOF id is what messages and files call it."""
    aof_id: str
    title: str
    attempt: int
    fence: int
    session: str
    """Unique and stable: whoever gets the same one twice drops the repeat."""
    ttl_ms: int
    """How long it may be silent."""
    prompt: str
    must_report: bool = False
    """Whether an end without a report is a failure, however well it looks."""
    resume_from: str = ""
    """The commit at which an earlier attempt stopped, by its own word; empty: none did."""


class Ended(Struct, frozen=True):
    """How a run ended."""

    problem: str = ""
    """What went wrong, for a person; empty: nothing."""


class Running(Protocol):
    """An agent at work."""

    @property
    def is_beating(self) -> bool:
        """Whether its being there is a sign of life; if not, it has to send its own."""
        ...

    @property
    def said(self) -> int:
        """How many bytes of output it has made."""
        ...

    async def wait(self) -> Ended:
        """Until it has ended, by itself or by `stop`, and everything that it said was heard."""
        ...

    async def stop(self, grace: float, why: str = "") -> None:
        """Ask it and all it has started to end, and end them after so many seconds.

        `why` is for whoever reads what there is to read of the run.
        """
        ...

    def forget(self) -> None:
        """The attempt is settled: nobody has to look for it after a crash."""
        ...


class Runner(Protocol):
    """Starts agents of one kind."""

    async def start(self, assignment: Assignment, hear: Hear) -> Running:
        """Let the agent begin."""
        ...
