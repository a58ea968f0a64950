"""The desk of an agent that can be started: what runs for it, and how long it is left alone."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.states.task import Task
from dragoman.engine.runner import Runner
from dragoman.services.attempt import Attempt
from dragoman.services.budgets import Budget, Used, spend

_REST = Backoff(base_ms=1_000, cap_ms=300_000)
"""Pause before an agent that could not be started is tried again."""


class Agent(Struct, frozen=True):
    """An agent that can be started."""

    name: str
    runner: Runner
    queues: tuple[str, ...]
    """Queues of the agent: names that tasks are reserved for, and "" for tasks of anyone."""
    prompt: Callable[[Task, str], str]
    """Builds the prompt for a task; it may read the store."""
    speaks: tuple[str, ...] = ("aof",)
    """Dialects that it understands: its prompt is in them."""
    must_report: bool = False
    """True if an attempt that ends without a report has failed."""
    elsewhere: str = ""
    """Identifies the place of an agent that goes on without the hub; empty: its runs end with the
    hub."""
    concurrency: int = 1
    attempt_ms: int = 0
    budget: Budget = Budget()


class AgentState(Struct, frozen=True):
    """Status of an agent, for people."""

    name: str
    running: tuple[str, ...]
    """Tasks that it works on."""
    used: Used
    """Usage of the day, including runs in progress."""
    paused: str = ""
    """Reason why it takes no work now: paused, could not be started, or its tasks cool down."""


class Desk:
    """Runs and start failures of one agent while the dispatcher runs."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.attempts: dict[str, Attempt] = {}
        """By session: two runs may be on one task, while the first is being stopped."""
        self.problem = ""
        self.rests_until = 0.0
        self._failures = 0
        """Consecutive failures to start."""

    def so_far(self) -> Used:
        """Usage of the runs in progress."""
        attempts = self.attempts.values()
        return Used(
            ms=sum(attempt.ms for attempt in attempts),
            output=sum(attempt.said for attempt in attempts),
        )

    def used_beside(self, booked: Used) -> Used:
        """Recorded usage plus that of the runs in progress."""
        running = self.so_far()
        return spend(booked, ms=running.ms, output=running.output)

    def note_start(self, fault: str, now: float, tell: Callable[[str], None]) -> None:
        """Record a start; after a failed one the agent pauses, longer each time."""
        if not fault:
            self._failures, self.problem = 0, ""
            return
        self._failures += 1
        self.rests_until = now + rest_after(self._failures, _REST) / 1_000
        problem = f"{self.agent.name} could not be started: {fault}"
        if problem != self.problem:
            tell(problem)
        self.problem = problem
