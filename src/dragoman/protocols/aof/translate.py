"""Translate AOF/1 messages to commands. Pure: a message gives its commands, all or none."""

from typing import Any, cast

from msgspec import UNSET, to_builtins

from dragoman.core import attempt, task_state
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.delegation import AcceptDelegation, RejectDelegation, RequestDelegation
from dragoman.core.errors import Refusal
from dragoman.core.limits import MAX_REASON
from dragoman.core.notice import Notice
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.help_case import help_commands
from dragoman.engine.operation import Facts, OfferAnswer
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Commands
from dragoman.engine.work_answers import begin_work, is_delegated_to, named_task
from dragoman.protocols.aof import wire

_MAX_QUOTED = 200

CRITERIA_NOT_STRINGS = "acceptanceCriteria is no list of strings; it was taken as []"


def report(task: str, payload: wire.ReportFields, *, apply_immediately: bool) -> Commands:
    """Report an outcome; AOF's own fields become details, for run_result.json.

    It applies when its session ends, unless the session has no name: then nobody else could end it
    (S-SESSION).
    """
    details: dict[str, object] = {
        "summaryRef": payload.summary_ref,
        "handoffRef": payload.handoff_ref or wire.DEFAULT_HANDOFF_REF,
        "deliverables": list(payload.deliverables or ()),
        "tests": to_builtins(payload.tests),
    }
    return (
        attempt.ReportOutcome(
            task,
            payload.outcome,
            payload.notes,
            payload.blockers or (),
            details,
            apply=apply_immediately,
            apply_unnamed=True,
        ),
    )


def missing_file_warnings(task: str, payload: wire.ReportFields, facts: Facts) -> Commands:
    """Warn about each file that a report names and its task's folder lacks (S-AOF-10).

    The default handoff is not checked. A repeat after the report was applied gives no warning.
    """
    refs = [("missing_summary", payload.summary_ref)]
    if payload.handoff_ref is not UNSET:
        refs.append(("missing_handoff", payload.handoff_ref))
    missing = [(reason, ref) for reason, ref in refs if not facts.file_exists(task, ref)]
    if not missing or not facts.is_in_progress(task):
        return ()
    return tuple(
        task_state.WarnTask(
            task, reason, f"there is no file {_shorten(ref)} in the folder of {task}"
        )
        for reason, ref in missing
    )


def _shorten(ref: str) -> str:
    """Shorten a path for a sentence, which has a limit; the report has all of it."""
    return ref if len(ref) <= _MAX_QUOTED else f"{ref[:_MAX_QUOTED]}…"


def update(task: str, payload: wire.UpdateFields, sent_at: str = "") -> Commands:
    """Update a task; a timestamp of the sender becomes that of its work log entry (S-AOF-6)."""
    return (
        task_state.UpdateTask(
            task,
            to=None if payload.status is UNSET else payload.status,
            progress=payload.progress or "",
            notes=payload.notes or "",
            blockers=payload.blockers or (),
            sent_at=parse_rfc3339(sent_at) if sent_at else None,
        ),
    )


def may_answer(message: Any) -> bool:
    """True for an update of nothing but notes, perhaps to ready: from somebody else than the worker
    it answers an open question."""
    if not isinstance(message, wire.StatusUpdateMessage | wire.UpdateTaskArguments):
        return False
    fields = message.payload if isinstance(message, wire.StatusUpdateMessage) else message
    is_silent = not fields.progress and not fields.blockers
    return bool(fields.notes) and is_silent and fields.status in (UNSET, "ready")


def answer_commands(message: Any, actor: Actor, facts: Facts) -> Commands:
    """Answer the open question of the task, if an update is such an answer."""
    found = find_task(facts.store, message.task_id) if may_answer(message) else None
    if found is None or isinstance(found, Refusal) or found.task.assignee == actor.name:
        return ()
    fields = message.payload if isinstance(message, wire.StatusUpdateMessage) else message
    if fields.status == "ready" and found.task.status != "blocked":
        return ()
    notice = Notice(kind="help_answered", task=message.task_id, text=str(fields.notes))
    return help_commands(notice, actor, facts.store)


def request(message: wire.HandoffRequestMessage) -> Commands:
    """Delegate a child task, with a warning if its acceptance criteria are not strings."""
    payload = message.payload
    criteria = string_list(payload.acceptance_criteria)
    delegation = RequestDelegation(
        message.task_id,
        parent=payload.parent_task_id,
        to_agent=payload.to_agent,
        due_by=parse_rfc3339(payload.due_by),
        acceptance_criteria=criteria or (),
        expected_outputs=payload.expected_outputs or (),
        context_refs=payload.context_refs or (),
        constraints=payload.constraints or (),
        from_agent=payload.from_agent,
    )
    if criteria is not None:
        return (delegation,)
    return delegation, task_state.WarnTask(
        message.task_id, "invalid_acceptance_criteria", CRITERIA_NOT_STRINGS
    )


def accept(message: wire.HandoffAcceptedMessage) -> Commands:
    """Accept a delegation."""
    return (AcceptDelegation(message.task_id),)


def reject(message: wire.HandoffRejectedMessage) -> Commands:
    """Reject a delegation."""
    return (RejectDelegation(message.task_id, message.payload.reason or ""),)


def answer_delegation(notice: Notice, actor: Actor, facts: Facts) -> OfferAnswer | None:
    """The answer that a notice of another dialect gives to the delegation of its task."""
    task = named_task(notice, facts)
    if task is None or not is_delegated_to(task, actor.name):
        return None
    if notice.kind == "rejected":
        reason = (notice.text or notice.reason)[:MAX_REASON]
        return OfferAnswer((RejectDelegation(task.id, reason),))
    # A delegation whose agent works is accepted, though its dialect may not say that by itself.
    return begin_work(notice, task, actor, (AcceptDelegation(task.id),))


def end_session(payload: wire.SessionEndArguments, actor: Actor, facts: Facts) -> Commands:
    """End every attempt of the session; without a name, every attempt that has a report.

    A caller that may not dispatch ends only its own attempts, even if others share the session's
    name; and one whose credential is bound to an attempt ends only that.
    """
    session = payload.session_id or ""
    holder = "" if actor.role in MAY_DISPATCH else actor.name
    tasks = (
        facts.tasks_held_in_session(session, holder, actor.task)
        if session
        else facts.reported_tasks()
    )
    return tuple(attempt.EndAttempt(task, session) for task in tasks)


def string_list(value: Any) -> tuple[str, ...] | None:
    """Return a list of strings, or None for anything else. Its limit is checked by the core."""
    if value is UNSET:
        return ()
    if not isinstance(value, list):
        return None
    items = tuple(cast(list[Any], value))
    return items if all(isinstance(item, str) for item in items) else None
