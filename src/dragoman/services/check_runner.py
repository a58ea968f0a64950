"""Runs the checks of work that was reported done, and records their results.

A check that a stop of the hub breaks off is run again at the next start: what is to be run stands
in the ledger.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event
from typing import Final

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.backoff import Backoff
from dragoman.core.base import CHECKS_LIST
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.task_state import Task
from dragoman.engine.hub import Hub
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.entries import LIST_PAGE, stream_state, walk_list

_MAX_TASKS: Final = 100
"""Tasks that are looked at together."""

_LOOK_SECONDS: Final = 1.0
"""Time between two looks for further tasks while checks run."""

RunCheck = Callable[[Task, int, Callable[[], bool]], CheckResult]
"""Runs the n-th check of a task, counted from 1, until it ends or is not needed any more; then it
raises InterruptedError."""


class CheckRunner:
    """Runs checks, those of several tasks at the same time."""

    name = "checks"

    def __init__(
        self,
        hub: Hub,
        run_check: RunCheck,
        concurrency: int,
        is_running: Callable[[str], bool],
        backoff: Backoff,
    ) -> None:
        """`is_running`: whether the program of a session, which has reported, still works on."""
        self._hub = hub
        self._is_running = is_running
        self._run_check = run_check
        self._concurrency = concurrency
        self._backoff = backoff
        self._stopped = Event()
        self._unrecorded: dict[tuple[str, int, tuple[str, ...]], list[CheckResult]] = {}
        """Results of tasks, attempts and checks that are not recorded yet."""

    def stop(self) -> None:
        """Break off the checks that run."""
        self._stopped.set()

    def run_once(self, now: int) -> int:
        """Run the checks of all tasks that wait for them; the number of tasks.

        Those that come meanwhile do not wait for the slowest check of a round.
        """
        del now
        running: dict[Future[bool], str] = {}
        done = 0
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="checks") as pool:
            while True:
                waiting = [] if self._stopped.is_set() else self._list_waiting()
                for task in waiting:
                    if task.id not in running.values():
                        running[pool.submit(self._check_task, task)] = task.id
                if not running:
                    return done
                ended, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
                for future in ended:
                    del running[future]
                    done += future.result()

    def _list_waiting(self) -> list[Task]:
        """List tasks that wait for their checks, and whose program has ended."""
        store = self._hub.store
        listed = islice(walk_list(store, ListQuery(CHECKS_LIST, limit=LIST_PAGE)), _MAX_TASKS)
        states = (stream_state(store, item.row) for item in listed)
        return [
            state
            for state in states
            if isinstance(state, Task) and not (state.session and self._is_running(state.session))
        ]

    def _check_task(self, task: Task) -> bool:
        """Run the checks of a task up to the first that fails, and record them.

        Results that the store could not take, as on a full disk, are recorded later: the checks are
        not run again and again.
        """
        key = task.id, task.attempts, task.required_checks
        results = self._unrecorded.setdefault(key, [])
        for number in range(len(results) + 1, len(task.required_checks) + 1):
            if results and not results[-1].has_passed:
                break
            try:
                results.append(self._run_check(task, number, self._stopped.is_set))
            except InterruptedError:
                return False
        found = RecordChecks(task.id, task.attempts, tuple(results), self._backoff)
        self._hub.submit(HUB_ACTOR, found)
        del self._unrecorded[key]
        return True
