"""Questions of a task: commands, events, and the questions that are kept with it.

A question is asked by an agent at work (`ask`), by a letter HELP_REQUEST (`help`), or by a task
that becomes blocked (`blocked`): then its text is the reason. All three are answered alike.
"""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.base import Event, TaskCommand

QuestionKind = Literal["ask", "help", "blocked"]

MAX_OPEN_QUESTIONS: Final = 20
"""Questions of a task that may be open at a time."""

KEPT_ANSWERS: Final = 20
"""Answers that are kept with a task, the last ones; all are in its history."""


# --- commands ---------------------------------------------------------------------------------


class AskQuestion(TaskCommand, frozen=True, tag="task.ask"):
    """Ask a question about a task, which goes on meanwhile; the same one again is a repeat."""

    free_text = ("text",)

    text: str
    fence: int | None = None
    by_letter: bool = False
    """It is asked by the letter that this request posts."""
    mail: str = ""
    """Id of that letter, if it has one of its own."""


class AnswerQuestion(TaskCommand, frozen=True, tag="task.answer"):
    """Answer an open question of a task; a blocked task becomes ready by its last answer."""

    free_text = ("text",)

    text: str
    question: str = ""
    """Id of the question; it may be left out while only one is open."""
    by_letter: bool = False
    """The letter that this request posts has the answer, so that no other one is needed."""
    mail: str = ""
    """Id of that letter, if it has one of its own."""


class WithdrawQuestion(TaskCommand, frozen=True, tag="task.withdraw-question"):
    """Take a question back that needs no answer any more."""

    question: str
    fence: int | None = None


# --- events -----------------------------------------------------------------------------------


class QuestionAsked(Event, frozen=True):
    """A question about the task was asked, which needs an answer."""

    id: str
    text: str
    by: str
    attempt: int = 0
    """Attempt that it was asked in; 0: nobody worked on the task."""
    mail: str = ""
    """Letter that asks it, if it was asked by letter."""


class QuestionAnswered(Event, frozen=True):
    """A question was answered."""

    id: str
    text: str
    by: str


class QuestionWithdrawn(Event, frozen=True):
    """A question needs no answer any more."""

    id: str
    by: str


# --- state ------------------------------------------------------------------------------------


class Question(Struct, frozen=True, omit_defaults=True, gc=False):
    """A question about a task, and its answer if it has one."""

    id: str
    text: str
    asked_at: int
    asked_by: str = ""
    """Agent or person that asked; empty: the hub, or a move by somebody else than its holder."""
    kind: QuestionKind = "ask"
    attempt: int = 0
    """Attempt that it was asked in; 0: nobody worked on the task."""
    mail: str = ""
    """Letter that asks it."""
    answer: str = ""
    answered_by: str = ""
    answered_at: int = 0


def question_id(number: int) -> str:
    """Id of the n-th question of a task."""
    return f"q{number}"


def asked_question(event: QuestionAsked, at: int) -> Question:
    """Question that an event asks."""
    kind = "help" if event.mail else "ask"
    return Question(event.id, event.text, at, event.by, kind, event.attempt, event.mail)


def answered_question(question: Question, event: QuestionAnswered, at: int) -> Question:
    """Question with the answer that an event gives."""
    return replace(question, answer=event.text, answered_by=event.by, answered_at=at)


class Feedback(Struct, frozen=True, omit_defaults=True, gc=False):
    """Reason for which a review sent the work back."""

    text: str
    at: int


KEPT_FEEDBACK: Final = 5
"""Reasons of reviews that are kept with a task, the last ones."""
