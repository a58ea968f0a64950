"""run_result.json: what no report made is kept aside, whatever its form; a report's own is not."""

from pathlib import Path

import pytest

from dragoman.core.commands import EndAttempt, MoveTask, ReportOutcome
from dragoman.core.events import Outcome
from dragoman.files.tasks.documents import write_json
from tests.engine.lab import ALICE, HUMAN
from tests.files.lab import FilesLab, tree
from tests.files.specified_bytes import RESULT
from tests.requirements import proves

SEED = RESULT.replace("TASK-2026-02-09-057", "TASK-2026-02-09-001")


def claimed(data: Path) -> tuple[FilesLab, str, Path]:
    """A lab, a task that alice works on, and where its result stands."""
    lab = FilesLab(data)
    task = lab.create()
    lab.claim(task)
    return lab, task, data / "runs" / task / "run_result.json"


def report(lab: FilesLab, task: str, outcome: Outcome, notes: str) -> None:
    """Alice says what came of it."""
    lab.clock.advance(1_000)
    lab.do(ALICE, ReportOutcome(task, outcome, notes))


@proves("FILES-RESULT-KEPT")
@pytest.mark.parametrize("content", [SEED, "{}\n", write_json({"outcome": "done"}).decode()])
def test_a_result_in_the_form_that_is_written_here_is_kept_too(
    tmp_path: Path, content: str
) -> None:
    lab, task, path = claimed(tmp_path)
    path.write_text(content)
    lab.sweep()
    assert not path.exists()
    assert path.with_name("run_result.rejected.json").read_text() == content
    assert lab.task(task).status == "in-progress"
    last = lab.store.entries(0, 100)[-1]
    assert last.event == "command.refused"
    assert f"runs/{task}/run_result.json is not a result that was reported".encode() in last.line


@proves("FILES-RESULT-KEPT")
def test_a_result_that_somebody_edited_in_its_own_form_is_kept(tmp_path: Path) -> None:
    lab, task, path = claimed(tmp_path)
    report(lab, task, "partial", "half of it")
    lab.level()
    written = path.read_text()
    path.write_text(written.replace("half of it", "all of it"))
    lab.sweep()
    assert path.read_text() == written
    assert "all of it" in path.with_name("run_result.rejected.json").read_text()
    assert lab.differences() == []


@proves("FILES-RESULT-KEPT")
def test_results_of_reports_that_were_replaced_and_of_earlier_attempts_are_not_put_aside(
    tmp_path: Path,
) -> None:
    lab, task, path = claimed(tmp_path)
    for notes in ("first", "second", "third"):
        report(lab, task, "partial", notes)
        if notes != "second":
            lab.level()
    third = path.read_text()
    assert "third" in third
    # An earlier one comes back, as from a copy of the folder.
    path.write_text(third.replace("third", "first").replace(":03.000Z", ":01.000Z"))
    lab.sweep()
    assert path.read_text() == third
    lab.do(ALICE, EndAttempt(task))
    lab.do(HUMAN, MoveTask(task, "ready"))
    lab.claim(task)
    assert not path.exists()
    path.write_text(third)
    lab.sweep()
    assert not path.exists()
    assert not any("rejected" in name for name in tree(tmp_path / "runs"))
    assert lab.differences() == []
