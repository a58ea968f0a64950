"""One question of a task by its id, however it has ended."""

import pytest

from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.core.question_state import (
    KEPT_ANSWERS,
    AnswerQuestion,
    AskQuestion,
    WithdrawQuestion,
)
from dragoman.core.task_state import CreateTask, MoveTask, UpdateTask
from dragoman.engine.queries.questions import QuestionView, find_question
from dragoman.engine.schemas.tasks import question_detail
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("QUESTION-WAIT")


@pytest.fixture
def lab() -> Lab:
    """Give a hub where alice works on T and has asked q1."""
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, AskQuestion("T", "red or blue?"))
    return lab


def find(lab: Lab, id: str) -> QuestionView:
    """Find a question of T."""
    found = find_question(lab.store, "T", id)
    assert isinstance(found, QuestionView), found
    return found


def test_open_question_becomes_answered(lab: Lab) -> None:
    shown = question_detail(find(lab, "q1"))
    assert (shown.state, shown.text, shown.answer) == ("open", "red or blue?", None)
    lab.do(HUMAN, AnswerQuestion("T", "blue"))
    shown = question_detail(find(lab, "q1"))
    assert (shown.task, shown.state, shown.answer) == ("T", "answered", "blue")
    assert (shown.answered_by, shown.closed_by) == ("hera", None)


def test_withdrawn_question_names_who_withdrew_it(lab: Lab) -> None:
    lab.do(ALICE, WithdrawQuestion("T", "q1"))
    shown = question_detail(find(lab, "q1"))
    assert (shown.state, shown.closed_by, shown.asked_by) == ("withdrawn", "alice", "alice")
    assert shown.answer is None


def test_question_is_closed_when_its_task_goes_on_without_an_answer(lab: Lab) -> None:
    lab.do(ALICE, UpdateTask("T", "blocked", blockers=("the paint is out",)))
    assert find(lab, "q2").state == "open"
    lab.do(HUMAN, MoveTask("T", "ready"))
    view = find(lab, "q2")
    assert (view.state, view.question.kind, view.question.text) == (
        "closed",
        "blocked",
        "the paint is out",
    )
    lab.do(HUMAN, MoveTask("T", "cancelled"))
    assert find(lab, "q1").state == "closed"


def test_answer_that_the_task_does_not_keep_any_more_is_found(lab: Lab) -> None:
    lab.do(HUMAN, AnswerQuestion("T", "blue"))
    for number in range(KEPT_ANSWERS):
        lab.do(ALICE, AskQuestion("T", f"another {number}?"))
        lab.do(HUMAN, AnswerQuestion("T", "yes"))
    assert "q1" not in {one.id for one in lab.task("T").answers}
    view = find(lab, "q1")
    assert (view.state, view.question.answer) == ("answered", "blue")


def test_unknown_question_and_unknown_task_are_refused(lab: Lab) -> None:
    missing = find_question(lab.store, "T", "q7")
    assert isinstance(missing, Refusal)
    assert missing.code == "question_not_found"
    unknown = find_question(lab.store, "U", "q1")
    assert isinstance(unknown, Refusal)
    assert unknown.code == "task_not_found"
