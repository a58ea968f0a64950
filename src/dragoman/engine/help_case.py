"""The help case of a task, opened or answered by a notice of a dialect without words of its own."""

from collections.abc import Sequence
from typing import Final

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.limits import MAX_REASON
from dragoman.core.mail import PostMail
from dragoman.core.notice import Notice
from dragoman.core.question_state import AnswerQuestion, AskQuestion, Question
from dragoman.engine.delivered_messages import is_delivery_of
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.work_answers import is_delegated_to

HELP_WAIT_MS: Final = 30 * 60_000
"""Time after which a message that asks for help and has no answer is escalated."""


def help_commands(
    notice: Notice, actor: Actor, store: Store, letter: PostMail | None = None
) -> tuple[AskQuestion | AnswerQuestion, ...]:
    """Commands by which a notice asks for help with the sender's task, or answers somebody else.

    `letter`: the letter that the request posts; its recipients may answer what it asks.
    """
    is_help = notice.kind in ("help_asked", "help_answered")
    found = find_task(store, notice.task) if is_help and notice.task else None
    if found is None or isinstance(found, Refusal):
        return ()
    task, by_letter = found.task, letter is not None
    if notice.kind == "help_asked":
        text = _shortened(notice.question or notice.text)
        is_own = task.assignee == actor.name or is_delegated_to(task, actor.name)
        return (AskQuestion(task.id, text, by_letter=by_letter),) if is_own and text else ()
    text = _shortened(notice.text or notice.notes)
    asked = [one for one in task.questions if one.asked_by != actor.name]
    if not text or not asked:
        return ()
    replied_to = letter.reply_to if letter else ""
    question = _named_question(asked, (notice.question_id, notice.question, replied_to))
    if letter is None or question is None or question.asked_by not in (*letter.to, *letter.cc):
        return (AnswerQuestion(task.id, text, question.id if question else ""),)
    return (AnswerQuestion(task.id, text, question.id, by_letter=True, mail=letter.id),)


def _named_question(asked: Sequence[Question], names: Sequence[str]) -> Question | None:
    """The question that an answer names, by its id or a letter that asks it, or the only one."""
    found = (
        one
        for one in asked
        for name in filter(None, names)
        if name in (one.id, one.mail) or is_delivery_of(name, one.id)
    )
    return next(found, asked[0] if len(asked) == 1 else None)


def _shortened(text: str) -> str:
    """Cut what is too long for a question or an answer; the message has all of it."""
    stripped = text.strip()
    return stripped if len(stripped) <= MAX_REASON else f"{stripped[: MAX_REASON - 1]}…"
