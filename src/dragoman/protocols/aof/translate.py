"""From AOF/1 to what the core is asked for. Pure: a message gives its commands, all or none."""

from typing import Any, cast

from msgspec import UNSET, to_builtins

from dragoman.core import commands as core
from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.moments import parse_rfc3339
from dragoman.engine.operation import Commands, Facts
from dragoman.protocols.aof.wire import (
    HANDOFF_REF,
    HandoffAccepted,
    HandoffRejected,
    HandoffRequested,
    Report,
    SessionEnd,
    Update,
)

_MOST_SHOWN = 200

NOT_STRINGS = "acceptanceCriteria is no list of strings; it was taken as []"


def report(task: str, payload: Report, *, at_once: bool) -> Commands:
    """A completion; its own fields travel as details to run_result.json.

    It waits for the end of its session, unless that has no name: then nobody else could end it
    (S-SESSION).
    """
    details: dict[str, object] = {
        "summaryRef": payload.summary_ref,
        "handoffRef": payload.handoff_ref or HANDOFF_REF,
        "deliverables": list(payload.deliverables or ()),
        "tests": to_builtins(payload.tests),
    }
    return (
        core.ReportOutcome(
            task,
            payload.outcome,
            payload.notes,
            payload.blockers or (),
            details,
            apply=at_once,
            apply_unnamed=True,
        ),
    )


def missing_files(task: str, payload: Report, facts: Facts) -> Commands:
    """A warning for each file that a report names and its task's folder lacks (S-AOF-10).

    The handoff that nobody named is not missed. A repeat after the work was taken warns no more.
    """
    named = [("missing_summary", payload.summary_ref)]
    if payload.handoff_ref is not UNSET:
        named.append(("missing_handoff", payload.handoff_ref))
    missing = [(reason, ref) for reason, ref in named if not facts.file_exists(task, ref)]
    if not missing or not facts.is_in_progress(task):
        return ()
    return tuple(
        core.WarnTask(task, reason, f"there is no file {_shown(ref)} in the folder of {task}")
        for reason, ref in missing
    )


def _shown(ref: str) -> str:
    """A path in a sentence, which has a bound; the report has the whole of it."""
    return ref if len(ref) <= _MOST_SHOWN else f"{ref[:_MOST_SHOWN]}…"


def update(task: str, payload: Update, sent_at: str = "") -> Commands:
    """A status update; a time that the sender gives is the time of its work log entry (S-AOF-6)."""
    return (
        core.UpdateTask(
            task,
            to=None if payload.status is UNSET else payload.status,
            progress=payload.progress or "",
            notes=payload.notes or "",
            blockers=payload.blockers or (),
            sent_at=parse_rfc3339(sent_at) if sent_at else None,
        ),
    )


def request(message: HandoffRequested) -> Commands:
    """A delegation, and a warning when its acceptance criteria could not be understood."""
    payload = message.payload
    criteria = strings(payload.acceptance_criteria)
    asked = core.RequestDelegation(
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
        return (asked,)
    return asked, core.WarnTask(message.task_id, "invalid_acceptance_criteria", NOT_STRINGS)


def accept(message: HandoffAccepted) -> Commands:
    """The child's agent takes it."""
    return (core.AcceptDelegation(message.task_id),)


def reject(message: HandoffRejected) -> Commands:
    """The child's agent does not take it."""
    return (core.RejectDelegation(message.task_id, message.payload.reason or ""),)


def end_session(payload: SessionEnd, actor: Actor, facts: Facts) -> Commands:
    """The end of every attempt of the session; without a name, of all that have a report.

    Who may not dispatch ends its own stay only, whatever others call theirs; and who speaks for one
    attempt ends that one.
    """
    session = payload.session_id or ""
    holder = "" if actor.role in MAY_DISPATCH else actor.name
    tasks = facts.held_in(session, holder, actor.task) if session else facts.reported()
    return tuple(core.EndAttempt(task, session) for task in tasks)


def strings(value: Any) -> tuple[str, ...] | None:
    """A list of strings; None when it is something else. How long it may be, the core says."""
    if value is UNSET:
        return ()
    if not isinstance(value, list):
        return None
    items = tuple(cast(list[Any], value))
    return items if all(isinstance(item, str) for item in items) else None
