"""The desk of an agent that can be started: what runs for it, and how long it is left alone."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.core.deadlines import Backoff, backoff_delay
from dragoman.core.states.task import Task
from dragoman.engine.runner import Runner
from dragoman.services.attempt import AgentRun
from dragoman.services.budgets import Budget, Usage, add_usage

_START_BACKOFF = Backoff(base_ms=1_000, cap_ms=300_000)
"""Pause before an agent that could not be started is tried again."""


class AgentSpec(Struct, frozen=True):
    """An agent that can be started."""

    name: str
    runner: Runner
    queues: tuple[str, ...]
    """Queues of the agent: names that tasks are reserved for, and "" for tasks of anyone."""
    build_prompt: Callable[[Task, str], str]
    """Builds the prompt for a task; it may read the store."""
    dialects: tuple[str, ...] = ("aof",)
    """Dialects that it understands: its prompt is in them."""
    must_report: bool = False
    """True if an attempt that ends without a report has failed."""
    location: str = ""
    """Identifies the place of an agent that goes on without the hub; empty: its runs end with the
    hub."""
    concurrency: int = 1
    attempt_ms: int = 0
    budget: Budget = Budget()


class AgentState(Struct, frozen=True):
    """Status of an agent, for people."""

    name: str
    running_tasks: tuple[str, ...]
    """Tasks that it works on."""
    usage: Usage
    """Usage of the day, including runs in progress."""
    idle_reason: str = ""
    """Reason why it takes no work now: paused, could not be started, or its tasks cool down."""


class AgentSlots:
    """Runs and start failures of one agent while the dispatcher runs."""

    def __init__(self, agent: AgentSpec) -> None:
        self.agent = agent
        self.runs: dict[str, AgentRun] = {}
        """By session: two runs may be on one task, while the first is being stopped."""
        self.start_problem = ""
        self.start_retry_at = 0.0
        self._start_failures = 0
        """Consecutive failures to start."""

    def running_usage(self) -> Usage:
        """Usage of the runs in progress."""
        runs = self.runs.values()
        return Usage(
            ms=sum(run.elapsed_ms for run in runs),
            output=sum(attempt.output_bytes for attempt in runs),
        )

    def total_usage(self, recorded: Usage) -> Usage:
        """Recorded usage plus that of the runs in progress."""
        running = self.running_usage()
        return add_usage(recorded, ms=running.ms, output=running.output)

    def record_start(self, problem: str, now: float, warn: Callable[[str], None]) -> None:
        """Record a start; after a failed one the agent pauses, longer each time."""
        if not problem:
            self._start_failures, self.start_problem = 0, ""
            return
        self._start_failures += 1
        self.start_retry_at = now + backoff_delay(self._start_failures, _START_BACKOFF) / 1_000
        message = f"{self.agent.name} could not be started: {problem}"
        if message != self.start_problem:
            warn(message)
        self.start_problem = message
