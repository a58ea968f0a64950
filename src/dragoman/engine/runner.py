"""How work reaches an agent: the small contract between the dispatcher and whoever starts agents.

A runner raises OSError, with words for a person, when it cannot start an agent. Whatever the agent
says as a message of a dialect goes through `Hear`, in order; nothing else of a run touches the hub.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

SESSION_VARIABLE: Final = "DRAGOMAN_SESSION"
"""The environment variable with the session of the attempt, for every program that is started."""

OnMessage = Callable[[bytes], Awaitable[str]]
"""Takes a message of the agent; returns a note about it, or an empty text."""


class Assignment(Struct, frozen=True):
    """One attempt of one agent on one task."""

    agent: str
    task: str
    """The task's own id; messages and files use its AOF id."""
    aof_id: str
    title: str
    attempt: int
    fence: int
    session: str
    """Unique and stable: a runner that gets the same one twice drops the repeat."""
    ttl_ms: int
    """The longest time without a heartbeat."""
    prompt: str
    must_report: bool = False
    """True if an end without a report is a failure, even with a good exit status."""
    resume_commit: str = ""
    """The commit at which an earlier attempt stopped, as that one stated; empty: none."""


class RunExit(Struct, frozen=True):
    """The end of a run."""

    problem: str = ""
    """The error, for a person; empty: none."""


class Run(Protocol):
    """An agent that is running."""

    @property
    def renews_lease(self) -> bool:
        """True if its being alive renews the lease; if not, it has to send heartbeats."""
        ...

    @property
    def output_bytes(self) -> int:
        """Size of its output so far, in bytes."""
        ...

    async def wait(self) -> RunExit:
        """Wait until it has ended, by itself or by `stop`, and all its messages were handled."""
        ...

    async def stop(self, grace: float, reason: str = "") -> None:
        """Ask it and all it has started to end, and kill them after so many seconds.

        `reason` goes to the log of the run.
        """
        ...

    def forget(self) -> None:
        """Forget the run: its attempt is settled, and needs no recovery after a crash."""
        ...


class Runner(Protocol):
    """Starts agents of one kind."""

    async def start(self, assignment: Assignment, on_message: OnMessage) -> Run:
        """Start the agent."""
        ...
