"""Rewind: transitions of a task, and the preview of going back to one."""

import pytest

from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, NoteTask, RewindTask
from dragoman.core.trace import RequestTransition
from dragoman.engine.queries.tasks import RewindPreview, list_transitions, preview_rewind
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("REWIND-STATE")

REQUESTED_EVENT = "8B1F3C52-6A4A-4C9E-9D0E-1F1D6F2B7A10"


@pytest.fixture
def moved_task(lab: Lab) -> Lab:
    """Lab with a task that was claimed, edited, moved to review, and done."""
    lab.do(HUMAN, CreateTask("Write it", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(HUMAN, EditTask("T", "Write it well"))
    lab.do(HUMAN, MoveTask("T", "review"))
    lab.do(HUMAN, NoteTask("T", "well done"))
    lab.do(HUMAN, MoveTask("T", "done"))
    return lab


def test_creation_and_all_moves_are_transitions(moved_task: Lab) -> None:
    found = list(list_transitions(moved_task.store, moved_task.task("T")))
    assert [(one.position, one.version, one.from_, one.to) for one in found] == [
        (1, 1, None, "ready"),
        (2, 2, "ready", "in-progress"),
        (4, 4, "in-progress", "review"),
        (6, 6, "review", "done"),
    ]
    assert len({one.id for one in found}) == 4


def test_transition_is_found_by_event_id_or_position(moved_task: Lab) -> None:
    task = moved_task.task("T")
    claimed = list(list_transitions(moved_task.store, task))[1]
    for name in (claimed.id, claimed.id.upper(), "2", "002"):
        found = preview_rewind(moved_task.store, task, name)
        assert isinstance(found, RewindPreview)
        assert found.transition == claimed
        assert found.task_then.status == "in-progress"
        assert found.changes == {
            "status": ("done", "ready"),
            "title": ("Write it well", "Write it"),
            "assignee": ("alice", ""),
        }


@pytest.mark.parametrize("name", ["3", "5", "7", "", "x", "-1", "0" * 36])
def test_unknown_transition_is_refused_with_the_known_ones(moved_task: Lab, name: str) -> None:
    answer = preview_rewind(moved_task.store, moved_task.task("T"), name)
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_field"
    assert answer.detail.endswith("at 1 (ready), 2 (in-progress), 4 (review), 6 (done)")


def test_requested_move_is_found_by_its_event_id(moved_task: Lab) -> None:
    moved_task.do(HUMAN, RewindTask("T", 1))
    moved_task.do(HUMAN, RequestTransition("T", "blocked", REQUESTED_EVENT.lower()))
    found = preview_rewind(moved_task.store, moved_task.task("T"), REQUESTED_EVENT)
    assert isinstance(found, RewindPreview)
    assert (found.transition.to, found.changes) == ("blocked", {})


def test_rewind_restores_the_state_from_the_ledger(moved_task: Lab) -> None:
    assert moved_task.do(HUMAN, RewindTask("T", 2, reason="again")).status == "ready"
    assert (moved_task.task("T").title, moved_task.task("T").attempts) == ("Write it", 1)
    for version in (-1, 8):
        assert moved_task.code(HUMAN, RewindTask("T", version)) == "invalid_field"
    # The state before the rewind can be restored as well.
    moved_task.do(HUMAN, RewindTask("T", 6))
    assert (moved_task.task("T").status, moved_task.task("T").title) == ("done", "Write it well")
