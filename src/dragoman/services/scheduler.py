"""The scheduler: runs background services, each group of them in a thread of its own.

A group runs all of its services at its own interval, and those that follow the ledger also after
every commit. A service that fails or hangs delays only its own group.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Protocol, runtime_checkable

from msgspec import Struct

from dragoman.core.errors import DragomanError
from dragoman.engine.service_health import HEALTHY, HealthProblem, problem_from_error

# --- services ---------------------------------------------------------------------------------


class Service(Protocol):
    """A background service."""

    @property
    def name(self) -> str:
        """Name, as shown by `tick` and in health reports."""
        ...

    def run_once(self, now: int) -> int:
        """Run once; the number of things done."""
        ...


@runtime_checkable
class ReportsProblem(Protocol):
    """A service that does what it can, and reports the rest."""

    @property
    def last_problem(self) -> HealthProblem:
        """Problem of the last run."""
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A service whose run may take long, and can be broken off."""

    def stop(self) -> None:
        """Break off what it does: the hub stops."""
        ...


class ServiceGroup(Struct, frozen=True):
    """Services that share a thread: they wait for one another, and for no others."""

    name: str
    periodic: tuple[Service, ...] = ()
    """Run at intervals only."""
    commit_driven: tuple[Service, ...] = ()
    """Run at intervals, and after every commit."""
    interval_seconds: float = 1.0
    """Shortest pause between two rounds."""
    idle_factor: int = 20
    """The pause is this many times as long as the round took, so that an idle hub stays idle."""
    hang_timeout_seconds: float = 300.0
    """A service that runs longer counts as hanging. It may only have much to do, like a first round
    over very many tasks; but then that is not done yet, either."""
    is_latency_sensitive: bool = False
    """True if somebody waits for the next round: then a long round does not lengthen the pause,
    because more work may have come meanwhile."""

    @property
    def all(self) -> tuple[Service, ...]:
        """All services of a round."""
        return (*self.periodic, *self.commit_driven)


# --- threads ----------------------------------------------------------------------------------

_BATCH_SECONDS = 0.05
"""Delay after a hint: commits of that time are followed in one go."""

_MAX_IDLE_SECONDS = 10.0
"""Longest pause after a slow round: the next one may have to recover somebody's work."""


class GroupWorker:
    """One group of services in a thread of its own."""

    def __init__(self, group: ServiceGroup, now: Callable[[], int]) -> None:
        self._group = group
        self._now = now
        self._wake_event = threading.Event()
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None
        self.name = group.name
        self._current: tuple[str, float] | None = None
        """The running service, and its start time."""
        self._problems: dict[str, HealthProblem] = {each.name: HEALTHY for each in group.all}

    def start(self) -> None:
        """Start the thread."""
        name = f"service-{self._group.name}"
        self._thread = threading.Thread(target=self._run_loop, name=name, daemon=True)
        self._thread.start()

    def hint(self, streams: Collection[str]) -> None:
        """Wake up after a commit. (An `OnCommit`.)"""
        del streams
        if self._group.commit_driven:
            self._wake_event.set()

    def stop(self, timeout_seconds: float) -> bool:
        """Run a last round and end; whether the thread ended in time."""
        self._stop_event.set()
        self._wake_event.set()
        for service in self._group.all:
            if isinstance(service, Stoppable):
                service.stop()
        if self._thread is None:
            return True
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def health(self) -> Mapping[str, HealthProblem]:
        """Problem of each service; one that hangs is reported for itself and those behind it."""
        current, hang_timeout = self._current, self._group.hang_timeout_seconds
        if current is None or monotonic() - current[1] < hang_timeout:
            return self._problems
        hang_message = f"at work for more than {hang_timeout:g} s: it hangs, or has very much to do"
        blocked = HealthProblem(f"waits for {current[0]}, which is {hang_message}")
        problems = {
            name: wrong if wrong.message else blocked for name, wrong in self._problems.items()
        }
        return {**problems, current[0]: HealthProblem(hang_message)}

    def _run_loop(self) -> None:
        next_round, group = 0.0, self._group
        while not self._stop_event.is_set():
            round_started_at = monotonic()
            if round_started_at >= next_round:
                processed = self._run_services(group.all)
                now = monotonic()
                next_round = now + idle_seconds(group, now - round_started_at, processed)
            else:
                self._run_services(group.commit_driven)
            self._stop_event.wait(_BATCH_SECONDS)
            self._wake_event.wait(max(0.0, next_round - monotonic()))
            self._wake_event.clear()
        # The last commits are followed before the hub is gone.
        self._run_services(group.commit_driven)

    def _run_services(self, services: Sequence[Service]) -> int | None:
        """Number of things done; None: a service failed."""
        processed = 0
        for service in services:
            self._current = service.name, monotonic()
            try:
                processed += service.run_once(self._now())
            except (DragomanError, OSError) as error:
                self._problems[service.name] = problem_from_error(error)
            except Exception as error:  # noqa: BLE001  one faulty service must not end the others
                self._problems[service.name] = HealthProblem(f"{type(error).__name__}: {error}")
            else:
                self._problems[service.name] = (
                    service.last_problem if isinstance(service, ReportsProblem) else HEALTHY
                )
        self._current = None
        return None if any(self._problems[each.name].message for each in services) else processed


def idle_seconds(group: ServiceGroup, round_seconds: float, processed: int | None) -> float:
    """Pause after a round. A failed one (`processed` is None) says nothing about the amount of
    work, and is retried at the usual interval.
    """
    may_idle_longer = processed is not None and not (processed and group.is_latency_sensitive)
    proportional = (
        min(group.idle_factor * round_seconds, _MAX_IDLE_SECONDS) if may_idle_longer else 0.0
    )
    return max(group.interval_seconds, proportional)


class Scheduler:
    """All groups together."""

    def __init__(self, workers: Sequence[GroupWorker]) -> None:
        self._workers = workers

    def add(self, worker: GroupWorker) -> None:
        """Add a group before the start."""
        self._workers = (*self._workers, worker)

    def start(self) -> None:
        """Start all threads."""
        for wheel in self._workers:
            wheel.start()

    def hint(self, streams: Collection[str]) -> None:
        """Wake up after a commit. (An `OnCommit`.)"""
        for wheel in self._workers:
            wheel.hint(streams)

    def stop(self, timeout_seconds: float) -> Sequence[str]:
        """Stop all groups; the names of those that did not end in time."""
        deadline = monotonic() + timeout_seconds
        for wheel in self._workers:  # all at once: none waits for one that hangs
            wheel.stop(0.0)
        stopped = (wheel.stop(max(0.0, deadline - monotonic())) for wheel in self._workers)
        return [
            wheel.name for wheel, ended in zip(self._workers, stopped, strict=True) if not ended
        ]

    def health(self) -> Mapping[str, HealthProblem]:
        """Problem of each service."""
        return {name: wrong for wheel in self._workers for name, wrong in wheel.health().items()}
