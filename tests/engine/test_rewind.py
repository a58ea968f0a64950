"""Before a rewind: which transition is meant, and what going back to it would change."""

import pytest

from dragoman.core.commands import (
    ClaimTask,
    CreateTask,
    EditTask,
    MoveTask,
    NoteTask,
    RequestTransition,
    RewindTask,
)
from dragoman.core.errors import Refusal
from dragoman.engine.reads.rewind import Preview, preview, transitions
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("REWIND-STATE")

ASKED = "8B1F3C52-6A4A-4C9E-9D0E-1F1D6F2B7A10"


@pytest.fixture
def lived(lab: Lab) -> Lab:
    """Give a hub with a task that was claimed, sent to review and done, and edited on the way."""
    lab.do(HUMAN, CreateTask("Write it", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(HUMAN, EditTask("T", "Write it well"))
    lab.do(HUMAN, MoveTask("T", "review"))
    lab.do(HUMAN, NoteTask("T", "well done"))
    lab.do(HUMAN, MoveTask("T", "done"))
    return lab


def test_all_that_moved_a_task_and_its_beginning_are_transitions(lived: Lab) -> None:
    found = list(transitions(lived.store, lived.task("T")))
    assert [(one.position, one.version, one.from_, one.to) for one in found] == [
        (1, 1, None, "ready"),
        (2, 2, "ready", "in-progress"),
        (4, 4, "in-progress", "review"),
        (6, 6, "review", "done"),
    ]
    assert len({one.id for one in found}) == 4


def test_one_is_named_by_its_event_or_its_position(lived: Lab) -> None:
    task = lived.task("T")
    claimed = list(transitions(lived.store, task))[1]
    for name in (claimed.id, claimed.id.upper(), "2", "002"):
        seen = preview(lived.store, task, name)
        assert isinstance(seen, Preview)
        assert seen.transition == claimed
        assert seen.past.status == "in-progress"
        assert seen.changes == {
            "status": ("done", "ready"),
            "title": ("Write it well", "Write it"),
            "assignee": ("alice", ""),
        }


@pytest.mark.parametrize("name", ["3", "5", "7", "", "x", "-1", "0" * 36])
def test_what_is_no_transition_is_told_with_those_that_are(lived: Lab, name: str) -> None:
    answer = preview(lived.store, lived.task("T"), name)
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_field"
    assert answer.detail.endswith("at 1 (ready), 2 (in-progress), 4 (review), 6 (done)")


def test_a_move_that_an_event_asked_for_is_known_by_that_event(lived: Lab) -> None:
    lived.do(HUMAN, RewindTask("T", 1))
    lived.do(HUMAN, RequestTransition("T", "blocked", ASKED.lower()))
    seen = preview(lived.store, lived.task("T"), ASKED)
    assert isinstance(seen, Preview)
    assert (seen.transition.to, seen.changes) == ("blocked", {})


def test_going_back_is_done_from_what_the_ledger_says(lived: Lab) -> None:
    assert lived.do(HUMAN, RewindTask("T", 2, reason="again")).status == "ready"
    assert (lived.task("T").title, lived.task("T").attempts) == ("Write it", 1)
    for version in (0, -1, 8):
        assert lived.code(HUMAN, RewindTask("T", version)) == "invalid_field"
    # What it was rewound from can be gone back to as well.
    lived.do(HUMAN, RewindTask("T", 6))
    assert (lived.task("T").status, lived.task("T").title) == ("done", "Write it well")
