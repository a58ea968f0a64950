"""Results of checks, which outlive a store that is away."""

from collections.abc import Callable

import pytest

from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.check_state import CheckResult
from dragoman.core.errors import StoreUnavailable
from dragoman.core.task_state import CreateTask, Task
from dragoman.services.check_runner import CheckRunner
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("EVIDENCE-CHECKS")


@pytest.mark.parametrize("passes", [True, False])
def test_results_that_the_store_could_not_take_are_recorded_later(passes: bool) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("One", id="t1", ready=True, checks=("make lint", "make test")))
    lab.do(ALICE, ClaimTask("t1", "alice"))
    lab.do(ALICE, ReportOutcome("t1", "done", apply=True))
    ran: list[int] = []

    def run_check(task: Task, number: int, _: Callable[[], bool]) -> CheckResult:
        ran.append(number)
        return CheckResult(task.required_checks[number - 1], 0 if passes else 1)

    runner = CheckRunner(lab.hub, run_check, 1, lambda _: False, Backoff())
    lab.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        runner.run_once(0)
    assert runner.run_once(0) == 1
    assert ran == ([1, 2] if passes else [1]), "nothing is run twice"
    assert lab.task("t1").is_proven == passes
