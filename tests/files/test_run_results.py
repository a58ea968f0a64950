"""run_result.json: files that no report made are set aside; those of reports are not."""

from pathlib import Path

import pytest

from dragoman.core.attempt import EndAttempt, ReportOutcome
from dragoman.core.base import Outcome
from dragoman.core.task_state import MoveTask
from dragoman.files.task_snapshot import format_json
from tests.engine.lab import ALICE, HUMAN
from tests.files.lab import FilesLab, read_tree
from tests.files.spec_examples import RESULT
from tests.requirements import proves

SPEC_RESULT = RESULT.replace("TASK-2026-02-09-057", "TASK-2026-02-09-001")


def claim_task(data: Path) -> tuple[FilesLab, str, Path]:
    """Make a task that alice works on; returns the path of its result, too."""
    lab = FilesLab(data)
    task = lab.create()
    lab.claim(task)
    return lab, task, data / "runs" / task / "run_result.json"


def report(lab: FilesLab, task: str, outcome: Outcome, notes: str) -> None:
    """Report an outcome as alice."""
    lab.clock.advance(1_000)
    lab.do(ALICE, ReportOutcome(task, outcome, notes))


@proves("FILES-RESULT-KEPT")
@pytest.mark.parametrize(
    "content", [SPEC_RESULT, "{}\n", format_json({"outcome": "done"}).decode()]
)
def test_unreported_result_file_is_set_aside(tmp_path: Path, content: str) -> None:
    lab, task, path = claim_task(tmp_path)
    path.write_text(content)
    lab.scan()
    assert not path.exists()
    assert path.with_name("run_result.rejected.json").read_text() == content
    assert lab.task(task).status == "in-progress"
    last = lab.store.entries(0, 100)[-1]
    assert last.event == "command.refused"
    assert f"runs/{task}/run_result.json is not a result that was reported".encode() in last.line


@proves("FILES-RESULT-KEPT")
def test_edited_result_file_is_set_aside(tmp_path: Path) -> None:
    lab, task, path = claim_task(tmp_path)
    report(lab, task, "partial", "half of it")
    lab.catch_up()
    written = path.read_text()
    path.write_text(written.replace("half of it", "all of it"))
    lab.scan()
    assert path.read_text() == written
    assert "all of it" in path.with_name("run_result.rejected.json").read_text()
    assert lab.differences() == []


@proves("FILES-RESULT-KEPT")
def test_results_of_earlier_reports_are_not_set_aside(
    tmp_path: Path,
) -> None:
    lab, task, path = claim_task(tmp_path)
    for notes in ("first", "second", "third"):
        report(lab, task, "partial", notes)
        if notes != "second":
            lab.catch_up()
    third = path.read_text()
    assert "third" in third
    # An earlier one comes back, as from a copy of the folder.
    path.write_text(third.replace("third", "first").replace(":03.000Z", ":01.000Z"))
    lab.scan()
    assert path.read_text() == third
    lab.do(ALICE, EndAttempt(task))
    lab.do(HUMAN, MoveTask(task, "ready"))
    lab.claim(task)
    assert not path.exists()
    path.write_text(third)
    lab.scan()
    assert not path.exists()
    assert not any("rejected" in name for name in read_tree(tmp_path / "runs"))
    assert lab.differences() == []
