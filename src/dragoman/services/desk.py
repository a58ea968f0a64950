"""The desk of an agent that can be started: what runs for it, and how long it is left alone."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.states.task import Task
from dragoman.engine.runner import Runner
from dragoman.services.attempt import Attempt
from dragoman.services.budgets import Budget, Used, spend

_REST = Backoff(base_ms=1_000, cap_ms=300_000)
"""How long an agent is left alone that could not be started."""


class Agent(Struct, frozen=True):
    """An agent that can be started."""

    name: str
    runner: Runner
    queues: tuple[str, ...]
    """Whose tasks it takes: names that tasks are reserved for, and "" for those of anyone."""
    prompt: Callable[[Task, str], str]
    """What it is told about a task; it may look into the store."""
    speaks: tuple[str, ...] = ("aof",)
    """What it understands: its prompt is in these words."""
    must_report: bool = False
    """Whether an attempt has failed that ends without a word about how."""
    elsewhere: str = ""
    """What tells the place at which it works, if that goes on without the hub; empty: what it does
    ends with the hub."""
    concurrency: int = 1
    attempt_ms: int = 0
    budget: Budget = Budget()


class AgentState(Struct, frozen=True):
    """How an agent stands, for whoever looks."""

    name: str
    running: tuple[str, ...]
    """The tasks that it works on."""
    used: Used
    """Of its day, by what runs too."""
    paused: str = ""
    """Why it takes no work just now: it was paused, could not be started, or its work rests."""


class Desk:
    """What is known of one agent while the dispatcher runs."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.attempts: dict[str, Attempt] = {}
        """By the session: two of them may be on one task, while the first is being stopped."""
        self.problem = ""
        self.rests_until = 0.0
        self._failures = 0
        """How often in a row it could not be started."""

    def so_far(self) -> Used:
        """What the attempts that run have used."""
        attempts = self.attempts.values()
        return Used(
            ms=sum(attempt.ms for attempt in attempts),
            output=sum(attempt.said for attempt in attempts),
        )

    def used_beside(self, booked: Used) -> Used:
        """The same, and what is booked already."""
        running = self.so_far()
        return spend(booked, ms=running.ms, output=running.output)

    def note_start(self, fault: str, now: float, tell: Callable[[str], None]) -> None:
        """It was started, or could not be: then it is left alone, the longer the more often."""
        if not fault:
            self._failures, self.problem = 0, ""
            return
        self._failures += 1
        self.rests_until = now + rest_after(self._failures, _REST) / 1_000
        problem = f"{self.agent.name} could not be started: {fault}"
        if problem != self.problem:
            tell(problem)
        self.problem = problem
