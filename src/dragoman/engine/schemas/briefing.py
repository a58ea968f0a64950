"""Briefing of a task as a resource, and as text for prompts and task files."""

from collections.abc import Iterator

from msgspec import Struct

from dragoman.core.attempt_state import Checkpoint
from dragoman.core.base import Outcome
from dragoman.core.question_state import Question
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.event_sentences import describe_reason
from dragoman.engine.queries.briefing import Briefing, PastAttempt
from dragoman.engine.schemas.resource_fields import project
from dragoman.engine.schemas.tasks import (
    CheckpointResource,
    FeedbackResource,
    QuestionResource,
    TaskDetail,
    question_resource,
)
from dragoman.text.safe_text import safe_text

# --- resource ---------------------------------------------------------------------------------


class PastAttemptResource(Struct, frozen=True, rename="camel"):
    """The last attempt before the present one."""

    attempt: int
    agent: str
    outcome: Outcome | None
    """None: it ended without a report."""
    notes: str
    blockers: tuple[str, ...]
    by: str | None
    """The reporter, if it was not the agent: the hub."""
    ended_at: str | None
    reason: str | None
    """The reason of the status change that ended it."""


class LogLineResource(Struct, frozen=True):
    """One of the last lines of the work log."""

    at: str
    by: str | None
    """Its author; null: the agent of that time."""
    text: str


class BriefingResource(Struct, frozen=True, rename="camel"):
    """All that earlier attempts, answers and reviews left for whoever works on a task next."""

    questions: tuple[QuestionResource, ...]
    """The questions that wait for an answer."""
    answers: tuple[QuestionResource, ...]
    """The questions that were answered: nobody asks them again."""
    feedback: tuple[FeedbackResource, ...]
    """The reasons for which reviews sent the work back."""
    last_attempt: PastAttemptResource | None
    checkpoint: CheckpointResource | None
    log: tuple[LogLineResource, ...]
    """The last lines of the work log before the present attempt."""


class ClaimedTask(Struct, frozen=True, rename="camel"):
    """A claimed task: send a heartbeat before the lease ends, and name the fence."""

    agent: str
    session: str | None
    attempt: int
    fence: int
    expires_at: str | None
    """None if the claim was repeated and its attempt is over."""
    task: TaskDetail
    briefing: BriefingResource | None = None
    """All that earlier attempts, answers and reviews left; None if there is nothing."""
    token: str | None = None
    """Token of this attempt while it lasts, for callers that claim in another's name. Such a caller
    could not go on without it, and may pass it to the agent as its credentials."""


def briefing_resource(briefing: Briefing | None) -> BriefingResource | None:
    """The resource of a briefing."""
    if briefing is None:
        return None
    last, checkpoint = briefing.last_attempt, briefing.checkpoint
    return BriefingResource(
        questions=tuple(map(question_resource, briefing.questions)),
        answers=tuple(map(question_resource, briefing.answers)),
        feedback=tuple(project(FeedbackResource, one) for one in briefing.feedback),
        last_attempt=last and project(PastAttemptResource, last),
        checkpoint=checkpoint and project(CheckpointResource, checkpoint),
        log=tuple(project(LogLineResource, line) for line in briefing.log),
    )


# --- text -------------------------------------------------------------------------------------


def briefing_sections(briefing: Briefing) -> Iterator[tuple[str, str]]:
    """Headings and texts of a briefing, in Markdown; text of others is quoted, so that it begins
    no section and steers no terminal."""
    if briefing.answers:
        asked = map(_format_answer, briefing.answers)
        yield "Answered questions", "\n\n".join(("Do not ask them again.", *asked))
    if briefing.questions:
        yield "Open questions", "\n\n".join(map(_format_question, briefing.questions))
    if briefing.feedback:
        quoted = (f"{to_rfc3339(one.at)}:\n\n{quote(one.text)}" for one in briefing.feedback)
        yield "Reasons of reviews that sent the work back", "\n\n".join(quoted)
    if briefing.last_attempt is not None:
        yield "The last attempt", "\n\n".join(_format_attempt(briefing.last_attempt))
    if briefing.checkpoint is not None:
        parts = "\n\n".join(_format_checkpoint(briefing.checkpoint))
        if parts:
            yield "Where the last attempt stopped", parts
    if briefing.log:
        lines = (
            f"- {to_rfc3339(line.at)} {_by(line.by)}{safe_text(line.text, one_line=True)}"
            for line in briefing.log
        )
        yield "The last lines of its log", "\n".join(lines)


def quote(text: str) -> str:
    """Quote each line, so that no heading or fence in the text takes effect."""
    return "\n".join(f"> {line}".rstrip() for line in safe_text(text).strip().splitlines())


def _by(author: str) -> str:
    return f"{author}: " if author else ""


def _format_question(question: Question) -> str:
    return f"{question.id}, asked by {question.asked_by or 'the hub'}:\n\n{quote(question.text)}"


def _format_answer(question: Question) -> str:
    return (
        f"{_format_question(question)}\n\nAnswered by {question.answered_by}:\n\n"
        f"{quote(question.answer)}"
    )


def _format_attempt(last: PastAttempt) -> Iterator[str]:
    ended = f", {to_rfc3339(last.ended_at)}" if last.ended_at else ""
    reported = f"reported {last.outcome}" if last.outcome else "ended without a report"
    yield f"Attempt {last.attempt}, by {last.agent}, {reported}{ended}."
    if last.notes:
        yield quote(last.notes)
    if last.blockers:
        yield "\n".join(("Blockers:\n", *map(quote, last.blockers)))
    if last.reason:
        yield f"It ended because of:\n\n{quote(describe_reason(last.reason))}"


def _format_checkpoint(checkpoint: Checkpoint) -> Iterator[str]:
    if checkpoint.commit:
        commit = safe_text(" ".join(checkpoint.commit.split()), one_line=True)
        yield f"Its work is in commit {commit}."
    if checkpoint.description:
        yield quote(checkpoint.description)
    if checkpoint.next_steps:
        yield f"Next steps:\n\n{quote(checkpoint.next_steps)}"
