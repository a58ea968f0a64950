"""Answers to a request for work, in any dialect: the work begins, and goes on as the message says.

A task is asked of an agent by an intent's request, or by a delegation as a part of another task.
"""

from typing import Final

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.base import Outcome
from dragoman.core.errors import Refusal
from dragoman.core.notice import Notice
from dragoman.core.task_state import Task
from dragoman.engine.operation import Facts, OfferAnswer
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Commands

_WORKING_KINDS: Final = frozenset(("accepted", "progress", "help_asked", "result", "failed"))

_IDLE_STATUSES: Final = frozenset(("backlog", "ready", "cancelled", "deadletter"))
"""Stated statuses of a task that nobody works on."""


def named_task(notice: Notice, facts: Facts) -> Task | None:
    """The task that a notice is about."""
    found = find_task(facts.store, notice.task) if notice.task else None
    return None if found is None or isinstance(found, Refusal) else found.task


def is_requested_of(task: Task, agent: str) -> bool:
    """True if the request of the task's intent went to this agent, and is open."""
    is_open = task.status in ("ready", "in-progress") and task.handoff is None
    return is_open and task.names_intent and task.reserved_for == agent


def is_delegated_to(task: Task, agent: str) -> bool:
    """True if the task was delegated to this agent as a part of another, and it has not refused."""
    delegation = task.delegation if task.is_delegated and task.handoff is None else None
    return delegation is not None and delegation.to_agent == agent


def begin_work(
    notice: Notice, task: Task, actor: Actor, first: Commands = ()
) -> OfferAnswer | None:
    """The answer by which a notice about work begins a ready task; None: it does not.

    `first`: commands before the claim. Who accepts again what it holds is answered as before.
    """
    is_work = notice.kind in _WORKING_KINDS and notice.status not in _IDLE_STATUSES
    is_repeat = notice.kind == "accepted" and task.status == "in-progress"
    if not is_work or not (task.status == "ready" or is_repeat):
        return None
    if notice.kind == "accepted" and "from_state" in notice.details:
        # The transition that it asks for is the claim, and is told under the id of its event.
        return OfferAnswer(first, is_work=True) if first else None
    claim = ClaimTask(task.id, actor.name, renew_if_held=True)
    return OfferAnswer((*first, claim), is_work=notice.kind != "accepted")


def report_commands(notice: Notice, actor: Actor, facts: Facts) -> Commands:
    """Report the result or failure that a notice tells, if the task is its sender's work."""
    task = named_task(notice, facts) if notice.kind in ("result", "failed") else None
    if task is None or not _is_work_of(task, actor.name):
        return ()
    outcome: Outcome = "failed" if notice.kind == "failed" else "done"
    if notice.outcome == "needs_review":
        outcome = "needs_review"
    return (ReportOutcome(task.id, outcome, notice.text, apply=True),)


def _is_work_of(task: Task, agent: str) -> bool:
    if task.status == "in-progress":
        return task.assignee == agent
    is_asked = is_requested_of(task, agent) or is_delegated_to(task, agent)
    return task.status == "ready" and is_asked
