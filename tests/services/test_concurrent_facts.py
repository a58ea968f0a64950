"""Concurrent lookups of facts by many threads while files are written."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.engine.request import Accepted
from tests.requirements import proves

ADA = Actor("agent", "ada")


@proves("AOF-WARNINGS")
def test_concurrent_lookups_find_the_same_files(tmp_path: Path) -> None:
    place = open_directory(tmp_path / "hub", "", None, create=True)
    task = place.hub.submit(Actor("human", "mia"), CreateTask("t", ready=True)).receipts[0].task
    place.hub.submit(ADA, ClaimTask(task, "ada", "s-1"))
    list(place.catch_up())
    (tmp_path / "hub" / "tasks" / "in-progress" / task / "outputs" / "a.md").write_text("x")

    def count_warnings(number: int) -> int:
        # session_end looks at run files, and releases every folder afterwards.
        place.router.call("session_end", {"sessionId": "another"}, ADA)
        report = {
            "taskId": task,
            "outcome": "done",
            "summaryRef": "outputs/a.md" if number % 2 else "outputs/b.md",
            "tests": {"total": 0, "passed": 0, "failed": 0},
            "notes": f"{number}",
        }
        answer = place.router.call("aof_task_complete", report, ADA)
        assert isinstance(answer, Accepted), answer
        return len(answer.warnings)

    with ThreadPoolExecutor(8) as pool:
        warnings = pool.map(count_warnings, range(1, 200))
        for _ in range(20):
            place.projector.catch_up()
        counts = list(warnings)
    place.hub.close()
    assert counts == [0 if number % 2 else 1 for number in range(1, 200)]
