"""Diagnosis of a handoff: what it waits for, who has to act, and by when."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.agent import AgentRecord
from dragoman.core.attempt_state import Lease
from dragoman.core.authority import MAY_WRITE
from dragoman.core.handoff.activate import check_can_begin
from dragoman.core.handoff.state import Handoff, HandoffStatus
from dragoman.core.task_state import Task
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.engine.operation import HandoffFindings
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.handoffs import NO_TEAMS, Team, find_coordinators
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.workq import describe_failed_items

NO_FINDINGS: Final = HandoffFindings()


class NextStep(Struct, frozen=True):
    """Something that one of these actors has to do so that the handoff goes on."""

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
    """Steps that would let it go on, the most likely first; empty: it is over."""
    due_by: str | None
    """The SLA deadline of its present state, which is past if it is late."""
    late: bool
    findings: tuple[str, ...]
    """Further problems, present or to be expected."""


class _Case(Struct, frozen=True):
    """A handoff, and the facts beside it."""

    handoff: Handoff
    now: int
    task: Task | None
    lease: Lease | None
    recipient: AgentRecord | None
    coordinators: tuple[str, ...]
    outside: HandoffFindings

    @property
    def is_late(self) -> bool:
        return self.handoff.is_escalated or self.handoff.is_overdue(self.now)

    @property
    def is_recipient_read_only(self) -> bool:
        return self.recipient is not None and self.recipient.role not in MAY_WRITE


def diagnose_handoff(
    store: Store,
    handoff: Handoff,
    now: int,
    teams: Mapping[str, Team] = NO_TEAMS,
    findings: HandoffFindings = NO_FINDINGS,
) -> HandoffDiagnosis:
    """Diagnose a handoff as it is now; `teams` are the teamspaces that have members, and `findings`
    come from outside of the ledger."""
    view = find_task(store, handoff.task) if handoff.task else None
    known = view if isinstance(view, TaskView) else None
    case = _Case(
        handoff,
        now,
        known and known.task,
        known and known.lease,
        find_agent(store, handoff.recipient) if handoff.recipient else None,
        find_coordinators(store, teams.get(handoff.teamspace)),
        findings,
    )
    summary, steps = _EXPLANATIONS[handoff.status](case)
    due_by = handoff.stage_due_at
    return HandoffDiagnosis(
        handoff_id=handoff.id,
        status=handoff.status,
        summary=summary,
        steps=tuple(dict.fromkeys((*steps, *_steps_of_others(case)))),
        due_by=None if due_by is None else to_rfc3339(due_by),
        late=case.is_late,
        findings=tuple(_findings(case)),
    )


# --- steps ------------------------------------------------------------------------------------

_FLAGS: Final = {
    "reject": " --reason other --detail TEXT",
    "extend": " --by 30m",
    "reassign": " --to NAME",
}

_SENDER_ACTIONS: Final = frozenset({"withdraw", "close"})


def _steps(case: _Case, *actions: str) -> tuple[NextStep, ...]:
    """Steps of those whose part they are; a recipient that may only read has none."""
    handoff, steps = case.handoff, list[NextStep]()
    for action in actions:
        if action == "ready":
            steps += _ready_step(case)
        elif action in ("approve", "deny"):
            steps.append(_step(handoff, action, ()))
        elif action in _SENDER_ACTIONS:
            steps.append(_step(handoff, action, (handoff.sender,)))
        elif not case.is_recipient_read_only:
            steps.append(_step(handoff, action, (handoff.recipient,)))
    return tuple(steps)


def _step(handoff: Handoff, action: str, actors: tuple[str, ...]) -> NextStep:
    words = f"{action} {handoff.id}{_FLAGS.get(action, '')}"
    return NextStep(actors, action, f"dragoman handoff {words}{_as_flag(actors)}")


def _as_flag(actors: tuple[str, ...]) -> str:
    return f" --as {actors[0]}" if actors else ""


def _ready_step(case: _Case) -> tuple[NextStep, ...]:
    """The step that makes a blocked, deferred or given-up task ready; a task that waits for others
    has none."""
    task = case.task
    if task is None or task.status not in ("blocked", "backlog", "deadletter"):
        return ()
    owner = (task.assignee,) if task.status == "blocked" and task.assignee else ()
    actors = (*owner, *case.coordinators)
    return (NextStep(actors, "ready", f"dragoman task move {task.id} ready{_as_flag(actors)}"),)


def _coordinator_steps(case: _Case) -> tuple[NextStep, ...]:
    actions = ("extend", "reassign", "reject")
    return tuple(_step(case.handoff, action, case.coordinators) for action in actions)


def _steps_of_others(case: _Case) -> tuple[NextStep, ...]:
    """Steps for others where the recipient is late, or can do nothing."""
    if not case.handoff.is_active or not (case.is_late or case.is_recipient_read_only):
        return ()
    may_withdraw = case.is_recipient_read_only and case.handoff.status != "activated"
    return (*(_steps(case, "withdraw") if may_withdraw else ()), *_coordinator_steps(case))


# --- explanations -----------------------------------------------------------------------------

Explanation = tuple[str, tuple[NextStep, ...]]


def _explain_offered(case: _Case) -> Explanation:
    """Explain an offer that is not accepted yet; acceptance is no step while it would be in
    vain."""
    handoff = case.handoff
    problems, actions = list[str](), list[str]()
    if case.outside.obstacles:
        missing = "an artifact is missing or has changed"
        problems.append(f"{missing}: {handoff.sender} has to correct it")
        actions.append("withdraw")
    if handoff.awaits_approval:
        problems.append("a person has to approve this package")
        actions += ["approve", "deny"]
    if problems:
        summary = f"{', and '.join(problems)}, then {handoff.recipient} has to accept it"
        return summary, _steps(case, *actions, "reject")
    summary = f"{handoff.recipient} has to accept or reject it"
    if handoff.status == "validating":
        reasons = [f": {note.text}" for note in handoff.notes if note.kind == "waiting"]
        why = "".join(reasons[-1:])
        summary = f"it was not accepted yet{why}; {handoff.recipient} may try again"
    return summary, _steps(case, "accept", "reject")


def _explain_accepted(case: _Case) -> Explanation:
    accepted = f"{case.handoff.recipient} has accepted it"
    if case.outside.obstacles:
        missing = "a verified artifact is missing or has changed"
        again = "once it is rejected, it can be offered anew"
        return f"{accepted}, and cannot begin: {missing}; {again}", _steps(
            case, "reject", "withdraw"
        )
    if held_up := case.task and check_can_begin(case.task):
        summary = f"{accepted}, and cannot begin yet: {held_up.detail}"
        return summary, _steps(case, "ready", "reject")
    return f"{accepted} and has to begin", _steps(case, "activate", "reject")


def _explain_activated(case: _Case) -> Explanation:
    recipient = case.handoff.recipient
    if case.lease is not None and case.lease.is_valid(case.now):
        until = to_rfc3339(case.lease.expires_at)
        summary = f"{recipient} works on it; its lease lasts until {until}"
        return summary, _steps(case, "complete", "reject")
    summary, first = (
        f"{recipient} has no valid lease: it has to begin again, or is gone",
        "activate",
    )
    if held_up := case.task and check_can_begin(case.task):
        summary, first = f"{recipient} has it, and cannot go on: {held_up.detail}", "ready"
    return summary, (*_steps(case, first), *_coordinator_steps(case), *_steps(case, "reject"))


def _explain_ended(case: _Case) -> Explanation:
    """Explain the end of a handoff: its record is open until its sender closes it."""
    handoff = case.handoff
    rejection = handoff.rejection
    if rejection is not None:
        summary = f"{rejection.by} has rejected it ({rejection.reason}: {rejection.detail})"
    else:
        did = "passed the work on" if handoff.was_redelegated else "done its part"
        summary = f"{handoff.recipient} has {did}"
    if handoff.superseded_by:
        summary = f"{summary}; {handoff.superseded_by} has taken its place"
    if handoff.status == "closed":
        return f"it is closed: {summary}", ()
    return f"{summary}; the record of this handoff is still open", _steps(case, "close")


_EXPLANATIONS: Final[Mapping[HandoffStatus, Callable[[_Case], Explanation]]] = {
    "proposed": _explain_offered,
    "validating": _explain_offered,
    "accepted": _explain_accepted,
    "activated": _explain_activated,
    "rejected": _explain_ended,
    "completed": _explain_ended,
    "closed": _explain_ended,
}
"""State -> what it waits for, and who can end that."""


# --- findings ---------------------------------------------------------------------------------


def _findings(case: _Case) -> Iterator[str]:
    handoff = case.handoff
    if handoff.status in ("completed", "closed"):
        return
    yield from case.outside.obstacles
    yield from (f"check failed: {failed}" for failed in handoff.failed)
    if handoff.is_active:
        yield from _recipient_findings(case)
        yield from _task_findings(case)
    for escalation in handoff.escalations:
        yield (
            f"{escalation.to or 'nobody'} was told at {to_rfc3339(escalation.at)}: "
            f"{escalation.trigger} in {escalation.stage} "
            f"after {format_hours(escalation.elapsed_ms)}"
        )
    for failure in describe_failed_items(handoff):
        yield f"an item of the work queue was not moved with the work: {failure}"


def _recipient_findings(case: _Case) -> Iterator[str]:
    name, known = case.handoff.recipient, case.recipient
    if known is None:
        if case.is_late and case.handoff.status == "proposed":
            yield f"nobody is registered under the name {name}: is it spelt as it should be?"
    elif case.is_recipient_read_only:
        yield (
            f"{name} is registered as {known.role}, and can do nothing about it: "
            f"`dragoman agent add {name} --role agent` would change that"
        )
    elif known.active_pause(case.now) is not None:
        yield f"{name} is paused: `dragoman agent resume {name}`"
    if case.handoff.is_escalated and not case.coordinators:
        yield (
            "nobody is registered as coordinator: "
            "`dragoman agent add NAME --role coordinator`, or act yourself"
        )


def _task_findings(case: _Case) -> Iterator[str]:
    task = case.task
    if task and task.status == "deadletter":
        yield f"{task.id} is in the deadletter: the work cannot be begun"
    elif task and case.handoff.status in ("proposed", "validating") and task.open_blockers:
        yield f"{task.id} waits for {', '.join(task.open_blockers)}"
