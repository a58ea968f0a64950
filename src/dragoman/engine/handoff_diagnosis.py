"""Diagnosis of a handoff: what it waits for, who has to act, and by when."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import Refusal
from dragoman.core.handoff.activate import check_can_begin
from dragoman.core.handoff.state import LEGAL_ACTIONS, Handoff, HandoffStatus
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.handoffs import find_coordinators
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.queries.visibility import NO_TEAMS, Team
from dragoman.engine.workq import describe_failed_items


class NextStep(Struct, frozen=True):
    """Something that one of these actors can do so that the handoff goes on."""

    who: tuple[str, ...]
    """Any of them may; empty: a person."""
    action: str
    command: str
    """The command line for it."""


class HandoffDiagnosis(Struct, frozen=True):
    """The diagnosis of a handoff at one moment."""

    handoff_id: str
    status: HandoffStatus
    summary: str
    """One sentence: what the handoff waits for."""
    steps: tuple[NextStep, ...]
    """Steps that are legal in its state; empty: it is over."""
    due_by: str | None
    """The SLA deadline of its present state, which is past if it is late."""
    late: bool
    findings: tuple[str, ...]
    """Further problems."""


def diagnose_handoff(
    store: Store, handoff: Handoff, now: int, teams: Mapping[str, Team] = NO_TEAMS
) -> HandoffDiagnosis:
    """Diagnose a handoff as it is now; `teams` are the teamspaces that have members."""
    view = find_task(store, handoff.task)
    assert isinstance(view, TaskView), "the task of a handoff is never removed"
    lease = view.lease if view.lease is not None and view.lease.is_valid(now) else None
    obstacle = check_can_begin(view.task)
    is_late = handoff.is_escalated or handoff.is_overdue(now)
    coordinators = find_coordinators(store, teams.get(handoff.teamspace))
    due_by = handoff.stage_due_at
    return HandoffDiagnosis(
        handoff_id=handoff.id,
        status=handoff.status,
        summary=_summarize(handoff, lease, obstacle),
        steps=tuple(
            _step(handoff, action, coordinators, is_late=is_late)
            for action in _actions(handoff, lease, obstacle)
            if is_late or action not in _COORDINATOR_ACTIONS
        ),
        due_by=None if due_by is None else to_rfc3339(due_by),
        late=is_late,
        findings=tuple(_findings(store, handoff, coordinators)),
    )


# --- summary ----------------------------------------------------------------------------------


def _summarize(handoff: Handoff, lease: Lease | None, obstacle: Refusal | None) -> str:
    name = handoff.recipient
    match handoff.status:
        case "proposed" | "validating" if handoff.awaits_approval:
            return f"a person has to approve this package, then {name} has to accept it"
        case "validating":
            return _summarize_validation(handoff)
        case "proposed":
            return f"{name} has to accept or reject it"
        case "accepted" | "activated" if obstacle:
            return f"{name} has accepted it, and cannot go on: {obstacle.detail}"
        case "accepted":
            return f"{name} has accepted it and has to begin"
        case "activated" if lease is not None:
            return f"{name} works on it; its lease lasts until {to_rfc3339(lease.expires_at)}"
        case "activated":
            return f"{name} has no valid lease: it has to activate again, or is gone"
        case _:
            return _summarize_end(handoff)


def _summarize_validation(handoff: Handoff) -> str:
    """Summary of a handoff that could not be accepted yet: an approval since then is told."""
    name = handoff.recipient
    approval = handoff.approval if handoff.is_approved else None
    waiting = [note for note in handoff.notes if note.kind == "waiting"]
    if approval is not None and all(note.at <= approval.at for note in waiting):
        return f"approved by {approval.by}; {name} may accept now"
    reasons = [f": {note.text}" for note in waiting]
    return f"it was not accepted yet{''.join(reasons[-1:])}; {name} may try again"


def _summarize_end(handoff: Handoff) -> str:
    """Summary of a handoff that is over: its record is open until its sender closes it."""
    rejection = handoff.rejection
    summary = f"{handoff.recipient} has done its part"
    if rejection is not None:
        summary = f"{rejection.by} has rejected it ({rejection.reason}: {rejection.detail})"
    if handoff.superseded_by:
        summary = f"{summary}; {handoff.superseded_by} has taken its place"
    if handoff.status == "closed":
        return f"it is closed: {summary}"
    return f"{summary}; the record of this handoff is still open"


# --- steps ------------------------------------------------------------------------------------

_COMMANDS: Final = {
    "reject": "reject {id} --reason other --detail TEXT",
    "extend_sla": "extend {id} --by 30m",
    "reassign": "reassign {id} --to NAME",
}
"""Action -> its command line, if that is more than its name and the id."""

_COORDINATOR_ACTIONS: Final = frozenset({"extend_sla", "reassign"})
_SENDER_ACTIONS: Final = frozenset({"withdraw", "close"})


def _actions(handoff: Handoff, lease: Lease | None, obstacle: Refusal | None) -> tuple[str, ...]:
    """Legal actions, without those that would be in vain."""
    first, *others = LEGAL_ACTIONS[handoff.status] or ("",)
    if first == "accept" and handoff.awaits_approval:
        return ("approve", "deny", *others)
    if first in ("activate", "complete") and obstacle is not None:
        return tuple(others)
    if first == "complete" and lease is None:
        return ("activate", *others)
    return LEGAL_ACTIONS[handoff.status]


def _step(
    handoff: Handoff, action: str, coordinators: tuple[str, ...], *, is_late: bool
) -> NextStep:
    if action in ("approve", "deny"):
        actors = ()
    elif action in _COORDINATOR_ACTIONS:
        actors = coordinators
    elif action in _SENDER_ACTIONS:
        actors = (handoff.sender,)
    else:
        actors = (handoff.recipient, *(coordinators if is_late and action == "reject" else ()))
    words = _COMMANDS.get(action, f"{action} {{id}}").format(id=handoff.id)
    speaker = f" --as {actors[0]}" if actors else ""
    return NextStep(actors, action, f"dragoman handoff {words}{speaker}")


# --- findings ---------------------------------------------------------------------------------


def _findings(store: Store, handoff: Handoff, coordinators: tuple[str, ...]) -> Iterator[str]:
    yield from (f"check failed: {failed}" for failed in handoff.failed)
    if handoff.is_escalated and find_agent(store, handoff.recipient) is None:
        yield f"nobody is registered under the name {handoff.recipient}"
    if handoff.is_escalated and not coordinators:
        yield "nobody is registered as coordinator: `dragoman agent add NAME --role coordinator`"
    for escalation in handoff.escalations:
        yield (
            f"{escalation.to or 'nobody'} was told at {to_rfc3339(escalation.at)}: "
            f"{escalation.trigger} in {escalation.stage} "
            f"after {format_hours(escalation.elapsed_ms)}"
        )
    for failure in describe_failed_items(handoff):
        yield f"an item of the work queue was not moved with the work: {failure}"
