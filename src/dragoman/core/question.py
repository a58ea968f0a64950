"""Decisions about questions: ask, answer, withdraw; and what an answer by letter does (S-MAIL-9).

People and orchestrators answer, and those for whom the task is worked on; a question that a letter
asks may also be answered by those whom the letter is addressed to, the helper above all. Nobody
answers itself.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from dragoman.core import limits, not_found
from dragoman.core.actor import HUB_NAME
from dragoman.core.authority import MAY_ANSWER, check_may_act_for_work, check_write
from dragoman.core.base import Event, Status
from dragoman.core.errors import Refusal
from dragoman.core.ids import mail_stream, task_stream
from dragoman.core.intent.state import intent_of_task
from dragoman.core.mail import (
    HELP_RESPONSE_KIND,
    AnswerMail,
    Mail,
    MailAnswered,
    MailPosted,
    decide_answer_mail,
    own_letter_id,
)
from dragoman.core.question_state import (
    MAX_OPEN_QUESTIONS,
    AnswerQuestion,
    AskQuestion,
    Question,
    QuestionAnswered,
    QuestionAsked,
    QuestionWithdrawn,
    WithdrawQuestion,
    question_id,
)
from dragoman.core.read import Decision, Read, StreamEvents, task_receipt
from dragoman.core.task import transition_events
from dragoman.core.task_state import BEAD_KIND, Task, TaskTransitioned

_MAX_SHOWN = 120
"""Characters shown of a question in a list."""


# --- ask --------------------------------------------------------------------------------------


def decide_ask_question(command: AskQuestion, read: Read, now: int) -> Decision | Refusal:
    """Ask a question; one with the same text, open or answered, is that one again."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_may_act_for_work(
        read.actor, task, read.lease(task), command.fence, now
    ) or limits.check_text("text", command.text, limits.MAX_REASON, minimum=1)
    if refusal:
        return refusal
    if not command.by_letter:
        for one in (*task.questions, *task.answers):
            if one.text == command.text:
                return _question_decision(task, one.id, is_repeat=True)
    if task.is_final:
        return Refusal(
            "invalid_transition",
            f"{task.id} is {task.status}: it has ended, and no answer would reach anybody",
        )
    if len(task.questions) >= MAX_OPEN_QUESTIONS:
        return Refusal(
            "invalid_field",
            f"{task.id} has {MAX_OPEN_QUESTIONS} open questions: wait for an answer, or withdraw "
            "one that needs none any more",
        )
    event = QuestionAsked(
        question_id(task.asked + 1),
        command.text,
        read.actor.name,
        task.attempts if task.status == "in-progress" else 0,
        own_letter_id(command.mail, read) if command.by_letter else "",
    )
    return _question_decision(task, event.id, (task_stream(task.id), event))


# --- answer -----------------------------------------------------------------------------------


def decide_answer_question(command: AnswerQuestion, read: Read, _: int) -> Decision | Refusal:
    """Answer an open question; the same answer again is a repeat, another one is refused.

    Whoever asked gets the answer as a letter, too, in the thread of its letter if it wrote one.
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_write(read.actor) or limits.check_text(
        "text", command.text, limits.MAX_REASON, minimum=1
    )
    if refusal:
        return refusal
    question = _find_question(command, task)
    if isinstance(question, Refusal):
        return question
    if question.answered_at:
        return _repeated_answer(command, task, question, read)
    letter = read.mail(question.mail) if question.mail else None
    refusal = _check_may_answer(task, question, letter, read)
    if refusal:
        return refusal
    events = answer_events(task, question, command.text, read)
    if command.by_letter:
        events += _answered_letter_events(
            letter, own_letter_id(command.mail, read), read.actor.name
        )
    elif question.asked_by:
        events += _response_events(task, question, letter, command.text, read)
    return _question_decision(task, question.id, *events)


def answer_events(task: Task, question: Question, text: str, read: Read) -> StreamEvents:
    """Events of an answer: a blocked task that waits for no other one becomes ready."""
    answered = QuestionAnswered(question.id, text, read.actor.name)
    events: StreamEvents = ((task_stream(task.id), answered),)
    if task.status != "blocked" or len(task.questions) > 1:
        return events
    reason = f"{question.id} was answered by {read.actor.name}"
    return (*events, *transition_events(task, "ready", reason, read))


def _response_events(
    task: Task, question: Question, letter: Mail | None, text: str, read: Read
) -> StreamEvents:
    """The answer as a letter, which closes the letter that asked."""
    name = task.mail_name
    response = MailPosted(
        id=_letter_id(task, question, read),
        sender=read.actor.name,
        to=(question.asked_by,),
        thread=letter.thread if letter else name,
        kind=HELP_RESPONSE_KIND,
        subject=f"[{name}] {HELP_RESPONSE_KIND}",
        body=f"Bead: {name}\n\n{text}\n",
        unknown=() if read.agent(question.asked_by) else (question.asked_by,),
        bead=name,
        reply_to=question.mail,
    )
    return _letter_events(response, letter)


def _letter_events(posted: MailPosted, answers: Mail | None) -> StreamEvents:
    return (
        (mail_stream(posted.id), posted),
        *_answered_letter_events(answers, posted.id, posted.sender),
    )


def _answered_letter_events(letter: Mail | None, answer: str, by: str) -> StreamEvents:
    """Close the letter that asked, if it still waits."""
    if letter is None or not letter.awaits_answer:
        return ()
    return ((mail_stream(letter.id), MailAnswered(letter.id, by, answer)),)


def _letter_id(task: Task, question: Question, read: Read) -> str:
    """Id of the letter about a question: a request may answer questions of several tasks."""
    return f"{read.cause}.{task.aof_id}.{question.id}"


def _find_question(command: AnswerQuestion, task: Task) -> Question | Refusal:
    """The question that an answer is for: the one it names, or the only one that is open."""
    if command.question:
        known = (*task.questions, *task.answers)
        found = next((one for one in known if one.id == command.question), None)
        return found or not_found.question(task.id, command.question)
    if len(task.questions) == 1:
        return task.questions[0]
    if task.questions:
        listed = "; ".join(f"{one.id} {_excerpt(one.text)}" for one in task.questions)
        return Refusal(
            "invalid_field",
            f"{task.id} has {len(task.questions)} open questions, name the one that you answer: "
            f"{listed}",
            path="question",
        )
    # Nothing is open: this may be the last answer once more, whose reply was lost.
    if task.answers and task.answers[-1].answer == command.text:
        return task.answers[-1]
    return not_found.question(task.id)


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN] + "…")


def _repeated_answer(
    command: AnswerQuestion, task: Task, question: Question, read: Read
) -> Decision | Refusal:
    if (question.answered_by, question.answer) == (read.actor.name, command.text):
        return _question_decision(task, question.id, is_repeat=True)
    return Refusal(
        "already_answered",
        f"{question.id} of {task.id} was answered by {question.answered_by}: "
        f"{_excerpt(question.answer)}. To add something, write a note or a letter",
    )


def _check_may_answer(
    task: Task, question: Question, letter: Mail | None, read: Read
) -> Refusal | None:
    actor = read.actor
    if actor.name == question.asked_by:
        return Refusal(
            "not_authorized",
            f"{actor.label} has asked {question.id} of {task.id}: somebody else answers it. "
            + (
                "Move the task to ready if it can go on"
                if question.kind == "blocked"
                else "Withdraw it if it needs no answer any more"
            ),
        )
    if actor.role in MAY_ANSWER or (letter is not None and letter.is_recipient(actor.name)):
        return None
    if actor.name in _principals(task, read):
        return None
    asked = f", and {', '.join(letter.recipients)[:200]}" if letter is not None else ""
    return Refusal(
        "not_authorized",
        f"{actor.label} may not answer {question.id} of {task.id}: people, orchestrators and "
        f"those for whom it is worked on may{asked}",
    )


def decide_answer_letter(command: AnswerMail, read: Read, now: int) -> Decision | Refusal:
    """Mark a letter as answered, and answer the question of a task that it asks."""
    decision = decide_answer_mail(command, read, now)
    letter = read.mail(command.mail)
    if isinstance(decision, Refusal) or not decision.events or letter is None or not letter.bead:
        return decision
    for name in (f"{BEAD_KIND}:{letter.bead}", letter.bead):
        task = read.task(name)
        for asked in () if isinstance(task, Refusal) else task.questions:
            if isinstance(task, Task) and asked.mail == letter.id:
                answered = answer_events(task, asked, command.text, read)
                return replace(decision, events=(*decision.events, *answered))
    return decision


def _principals(task: Task, read: Read) -> Iterator[str]:
    """Those for whom the task is worked on: who delegated it, handed it over, or asked for its
    intent.
    """
    if task.delegation is not None:
        yield task.delegation.from_agent
    if task.handoff is not None:
        yield task.handoff.owner
    intent = intent_of_task(task, read.intent)
    if intent is not None:
        yield intent.by


# --- withdraw ---------------------------------------------------------------------------------


def decide_withdraw_question(command: WithdrawQuestion, read: Read, now: int) -> Decision | Refusal:
    """Withdraw a question, by whoever asked it or by people and orchestrators.

    The recipients of a letter that asked it are told by another one.
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_may_act_for_work(read.actor, task, read.lease(task), command.fence, now)
    if refusal:
        return refusal
    question = next((one for one in task.questions if one.id == command.question), None)
    if question is None:
        return not_found.question(task.id, command.question)
    actor = read.actor
    if actor.role not in MAY_ANSWER and actor.name != question.asked_by:
        detail = f"{actor.label} has not asked {question.id} of {task.id}"
        return Refusal("not_authorized", f"{detail}: {question.asked_by} has")
    if question.kind == "blocked":
        return Refusal(
            "not_authorized",
            f"{question.id} is the reason why {task.id} is blocked: answer it, or move the task",
        )
    withdrawn = (task_stream(task.id), QuestionWithdrawn(question.id, actor.name))
    reason = f"{actor.name} has withdrawn the question"
    letters = _closing_events(task, question, actor.name, reason, read)
    return _question_decision(task, question.id, withdrawn, *letters)


def ended_task_events(task: Task, status: Status, read: Read) -> StreamEvents:
    """Events that close the letters of questions that end with their task."""
    reason = f"{task.id} is {status}, and the question needs no answer any more"
    return tuple(
        event
        for question in task.questions
        for event in _closing_events(task, question, HUB_NAME, reason, read)
    )


def _closing_events(
    task: Task, question: Question, by: str, reason: str, read: Read
) -> StreamEvents:
    """Close the letter that asked a question, if it still waits, and tell its recipients why."""
    letter = read.mail(question.mail) if question.mail else None
    if letter is None or not letter.awaits_answer:
        return ()
    notice = MailPosted(
        id=_letter_id(task, question, read),
        sender=by,
        to=letter.to,
        thread=letter.thread,
        kind="",
        subject=f"No answer is needed any more to letter {letter.id}",
        body=f"{reason}:\n\n{question.text}",
        unknown=tuple(name for name in letter.to if read.agent(name) is None),
        bead=letter.bead,
        reply_to=letter.id,
    )
    return _letter_events(notice, letter)


def _question_decision(
    task: Task, question: str, *events: tuple[str, Event], is_repeat: bool = False
) -> Decision:
    is_unblocked = any(isinstance(event, TaskTransitioned) for _, event in events)
    receipt = task_receipt(task, "ready" if is_unblocked else task.status)
    return Decision(replace(receipt, question=question, is_repeat=is_repeat), events)
