"""Agents that can be started, their slots, and the fair choice of who gets the next task."""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from dragoman.core.backoff import Backoff, backoff_delay
from dragoman.core.ids import task_stream
from dragoman.core.task_state import Task
from dragoman.engine.ports import ReadyKey, Runner, Store, Transaction
from dragoman.services.dispatch.agent_run import AgentRun
from dragoman.services.dispatch.budget_enforcer import Budget, Usage, add_usage

# --- agents and their slots -------------------------------------------------------------------

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
    checks: tuple[str, ...] = ()
    """Commands that the hub runs before a completion of it counts."""
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
        self.last_dispatch = 0
        """Increases with each dispatch; 0: never dispatched."""
        self.is_removed = False
        """True if the settings have it no more: its runs go on, and it gets no others."""
        self.recent_failures = 0
        """Failed attempts since the last one that did not fail."""
        self._start_failures = 0
        """Consecutive failures to start."""

    @property
    def is_starting(self) -> bool:
        """True while a run is being started, which may fail."""
        return not all(run.has_started for run in self.runs.values())

    def total_usage(self, recorded: Usage) -> Usage:
        """Recorded usage plus that of the runs in progress."""
        runs = self.runs.values()
        return add_usage(
            recorded,
            ms=sum(run.elapsed_ms for run in runs),
            output=sum(run.output_bytes for run in runs),
        )

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


# --- fair choice, pure ------------------------------------------------------------------------


class NextTask(Struct, frozen=True):
    """The next task to dispatch."""

    task: str
    queue: str
    candidates: Sequence[AgentSlots]
    """Free agents that may have it, in fair order."""


def find_next_task(free: Sequence[AgentSlots], first: Mapping[str, ReadyKey]) -> NextTask | None:
    """Find the next task to dispatch among the first of each queue.

    Agents with fewer recent failures come first, then those with less to do, then those that have
    waited longer.
    """
    wanted = {queue for slots in free for queue in slots.agent.queues}
    keys = [(key, queue) for queue, key in first.items() if queue in wanted]
    if not keys:
        return None
    key, queue = min(keys)
    candidates = [slots for slots in free if queue in slots.agent.queues]
    return NextTask(task_id_of(key), queue, sorted(candidates, key=_fair_order))


def _fair_order(slots: AgentSlots) -> tuple[int, float, int]:
    return slots.recent_failures, len(slots.runs) / slots.agent.concurrency, slots.last_dispatch


def choose_agent(
    task: Task, candidates: Sequence[AgentSlots], available: Sequence[AgentSlots]
) -> AgentSlots | None:
    """Choose the agent for a task; None: wait for a capable one that is busy now.

    A failed attempt is not repeated by the same agent while another may have the task, so that one
    broken agent takes no task to the deadletter.
    """
    fresh = [slots for slots in candidates if not _has_failed_task(task, slots)]
    if fresh:
        return fresh[0]
    may_come_later = any(
        task.reserved_for in agent_slots.agent.queues and not _has_failed_task(task, agent_slots)
        for agent_slots in available
    )
    return None if may_come_later else candidates[0]


def task_id_of(key: ReadyKey) -> str:
    """Task of an entry in the ready queue."""
    return key.name.removeprefix(task_stream(""))


def _has_failed_task(task: Task, slots: AgentSlots) -> bool:
    return task.failures > 0 and slots.agent.name in task.agents


# --- ready tasks ------------------------------------------------------------------------------

_PROMOTE_BATCH = 100


def first_ready(
    store: Store, now: int, queues: Sequence[str], excluded: Collection[str]
) -> Mapping[str, ReadyKey]:
    """First task of each queue, except excluded ones."""

    def work(session: Transaction) -> dict[str, ReadyKey]:
        session.promote_due(now, _PROMOTE_BATCH)
        found = dict[str, ReadyKey]()
        for queue in queues:
            keys = session.ready_page(queue, None, len(excluded) + 1)
            wanted = next((key for key in keys if task_id_of(key) not in excluded), None)
            if wanted is not None:
                found[queue] = wanted
        return found

    return store.transact(work)
