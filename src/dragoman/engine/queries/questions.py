"""One question of a task: open, answered, withdrawn, or closed without an answer."""

from typing import Literal

from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.question_state import Question, QuestionWithdrawn
from dragoman.core.task_state import Task
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.tasks import find_task
from dragoman.ledger.entry import read_line
from dragoman.ledger.stream_state import State, fold

QuestionState = Literal["open", "answered", "withdrawn", "closed"]
"""Closed: its task has gone on or ended without an answer."""


class QuestionView(Struct, frozen=True):
    """A question, the task that it is about, and its state."""

    task: Task
    question: Question
    state: QuestionState
    closed_by: str = ""
    """The caller that withdrew it."""


def find_question(store: Store, task_name: str, id: str) -> QuestionView | Refusal:
    """The question of a task with this id, however it has ended."""
    found = find_task(store, task_name)
    if isinstance(found, Refusal):
        return found
    task = found.task
    question = _question_of(task, id)
    if question is not None:
        return QuestionView(task, question, "answered" if question.answered_at else "open")
    return _find_in_history(store, task, id) or not_found.question(task.id, id)


def _question_of(task: Task, id: str) -> Question | None:
    return next((one for one in (*task.questions, *task.answers) if one.id == id), None)


def _find_in_history(store: Store, task: Task, id: str) -> QuestionView | None:
    """A question that the task does not keep any more, as it was last."""
    state: State | None = None
    last: Question | None = None
    withdrawn_by = ""
    for entry in stream_entries(store, task_stream(task.id)):
        event = decode_event(entry)
        state = fold(state, event, read_line(entry.line).at)
        if isinstance(event, QuestionWithdrawn) and event.id == id:
            withdrawn_by = event.by
        last = (_question_of(state, id) if isinstance(state, Task) else None) or last
    if last is None:
        return None
    if last.answered_at:
        return QuestionView(task, last, "answered")
    return QuestionView(task, last, "withdrawn" if withdrawn_by else "closed", withdrawn_by)
