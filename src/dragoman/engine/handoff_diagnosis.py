"""Diagnosis of a handoff: what it waits for, who has to act, and by when."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from dragoman.core.agent import AgentRecord
from dragoman.core.attempt_state import Lease
from dragoman.core.authority import MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.handoff.activate import READY_ROLES_TEXT, check_can_begin
from dragoman.core.handoff.ownership import may_offer_back, owner_chain, pending_delegate
from dragoman.core.handoff.state import Handoff, HandoffStatus
from dragoman.core.task_state import Task
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.engine.operation import HandoffFindings
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.handoffs import NO_TEAMS, Team, find_coordinators, load_handoff
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.workq import describe_failed_items, items_in_place

# --- facts around a handoff -------------------------------------------------------------------


class HandoffContext(Struct, frozen=True):
    """Facts beside the handoff itself."""

    now: int
    task: Task | None = None
    lease: Lease | None = None
    recipient: AgentRecord | None = None
    sender_is_registered: bool = False
    """True if its sender is registered; where senders are not, every recipient's name is accepted.
    """
    items_in_place: frozenset[str] = frozenset()
    """Items of a work queue that are where the work is."""
    coordinators: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    """Problems of its next step that no entry records."""
    risks: tuple[str, ...] = ()
    """Problems of later steps."""
    return_offer: tuple[str, str] | None = None
    """The former owner to whom its owner may offer the work back, and the handoff to supersede."""


def gather_context(
    store: Store,
    handoff: Handoff,
    now: int,
    teams: Mapping[str, Team],
    findings: HandoffFindings,
) -> HandoffContext:
    """Collect the context of a handoff from the store, and the findings from outside of it."""
    view = find_task(store, handoff.task) if handoff.task else None
    found = None if view is None or isinstance(view, Refusal) else view
    return HandoffContext(
        now=now,
        task=found and found.task,
        lease=found and found.lease,
        recipient=find_agent(store, handoff.recipient) if handoff.recipient else None,
        sender_is_registered=find_agent(store, handoff.sender) is not None,
        items_in_place=_items_in_place(store, handoff, findings.items_in_place),
        coordinators=find_coordinators(store, teams.get(handoff.teamspace)),
        obstacles=findings.obstacles,
        risks=findings.risks,
        return_offer=found and _find_return_offer(store, handoff, found.task),
    )


def _items_in_place(store: Store, handoff: Handoff, answers: Mapping[str, bool]) -> frozenset[str]:
    """Items that are where the work is; our own queue counts only for items that the external one
    does not answer for."""
    moved = {item for item, is_there in answers.items() if is_there}
    return (items_in_place(store, handoff) - answers.keys()) | moved


def _find_return_offer(store: Store, handoff: Handoff, task: Task) -> tuple[str, str] | None:
    """The former owner to whom rejected work may be offered back, and the handoff to supersede."""
    find = partial(load_handoff, store)
    last: Handoff | None = handoff
    while last is not None and last.superseded_by:
        last = find(last.superseded_by)
    chain = owner_chain(task, task.assignee)
    for before in chain[-2:-1]:
        if last is not None and may_offer_back(chain, before, last, find):
            return before, last.id
    return None


# --- diagnosis --------------------------------------------------------------------------------

NO_FINDINGS: Final = HandoffFindings()


class NextStep(Struct, frozen=True):
    """Something that one of these actors has to do so that the handoff goes on."""

    who: tuple[str, ...]
    """Any of them may."""
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


def diagnose_handoff(
    store: Store,
    handoff: Handoff,
    now: int,
    teams: Mapping[str, Team] = NO_TEAMS,
    findings: HandoffFindings = NO_FINDINGS,
) -> HandoffDiagnosis:
    """Diagnose a handoff as it is now; `teams` are the teamspaces that have members, and `findings`
    come from outside of the ledger."""
    return diagnose_in_context(handoff, gather_context(store, handoff, now, teams, findings))


def diagnose_in_context(handoff: Handoff, context: HandoffContext) -> HandoffDiagnosis:
    """Diagnose a handoff from its state and its context; pure."""
    summary, steps = _EXPLANATIONS[handoff.status](handoff, context)
    if handoff.is_active and _is_read_only(context.recipient):
        steps = _steps_without_recipient(handoff, context, steps)
    due_by = handoff.stage_due_at
    is_late = handoff.is_escalated or handoff.is_overdue(context.now)
    if is_late and handoff.is_active:
        steps = (*steps, *_coordinator_steps(handoff, context))
    return HandoffDiagnosis(
        handoff_id=handoff.id,
        status=handoff.status,
        summary=summary,
        steps=tuple(dict.fromkeys(steps)),
        due_by=None if due_by is None else to_rfc3339(due_by),
        late=is_late,
        findings=tuple(_findings(handoff, context)),
    )


Explanation = tuple[str, tuple[NextStep, ...]]

_REASON_FLAGS: Final = " --reason other --detail TEXT"

_NEEDS_APPROVAL: Final = "a person has to approve this package"


def _next_step(actors: tuple[str, ...], action: str, handoff: Handoff, flags: str = "") -> NextStep:
    return NextStep(
        actors, action, f"dragoman handoff {action} {handoff.id}{flags}{_as_flag(actors)}"
    )


def _as_flag(actors: tuple[str, ...]) -> str:
    return f" --as {actors[0]}" if actors else ""


def _explain_draft(handoff: Handoff, context: HandoffContext) -> Explanation:
    actors, waits = (handoff.sender,), f"{handoff.sender} has not offered it yet"
    discarding = _next_step(actors, "discard", handoff)
    if context.obstacles:
        write = f"dragoman handoff draft FILE --id {handoff.id}{_as_flag(actors)}"
        unfit = f"{waits}, and it cannot be offered as it stands"
        return unfit, (NextStep(actors, "draft", write), discarding)
    return waits, (_next_step(actors, "propose", handoff), discarding)


def _explain_proposed(handoff: Handoff, context: HandoffContext) -> Explanation:
    if context.obstacles:
        return _explain_bad_artifact(handoff)
    if handoff.awaits_approval:
        return f"{_NEEDS_APPROVAL}, then {handoff.recipient} has to accept it", _approval_steps(
            handoff
        )
    return f"{handoff.recipient} has to accept or reject it", _accept_steps(handoff)


def _explain_bad_artifact(handoff: Handoff) -> Explanation:
    """Explain that the artifacts have to be put right before acceptance, which would be refused
    until then."""
    unapproved = f", and {_NEEDS_APPROVAL}" if handoff.awaits_approval else ""
    summary = (
        f"an artifact is missing or has changed: {handoff.sender} has to correct it{unapproved}, "
        f"then {handoff.recipient} can accept it"
    )
    others = _approval_steps(handoff) if unapproved else (_reject_step(handoff),)
    return summary, (_withdraw_step(handoff), *others)


def _explain_validating(handoff: Handoff, context: HandoffContext) -> Explanation:
    if context.obstacles:
        return _explain_bad_artifact(handoff)
    if handoff.awaits_approval:
        return f"{_NEEDS_APPROVAL}, then {handoff.recipient} accepts it again", _approval_steps(
            handoff
        )
    again = _accept_steps(handoff)
    waiting = [note for note in handoff.notes if note.kind == "waiting"]
    if handoff.approval is not None and all(n.at <= handoff.approval.at for n in waiting):
        return f"a person has approved it; {handoff.recipient} can accept it now", again
    why = waiting[-1].text if waiting else ""
    because = f": {why}" if why else ""
    return f"it was not accepted yet{because}; {handoff.recipient} may try again", again


def _accept_steps(handoff: Handoff) -> tuple[NextStep, ...]:
    return _next_step((handoff.recipient,), "accept", handoff), _reject_step(handoff)


def _approval_steps(handoff: Handoff) -> tuple[NextStep, ...]:
    """Approval steps that go before acceptance, which would be in vain until then."""
    steps = (_next_step((), action, handoff) for action in ("approve", "deny"))
    return (*steps, _reject_step(handoff))


def _explain_accepted(handoff: Handoff, context: HandoffContext) -> Explanation:
    if context.obstacles:
        summary = (
            f"{handoff.recipient} has accepted it, and cannot begin: a verified artifact is "
            "missing or has changed; once it is rejected, it can be offered anew"
        )
        return summary, (_reject_step(handoff), _withdraw_step(handoff))
    held_up = context.task and check_can_begin(context.task)
    if held_up:
        summary = f"{handoff.recipient} has accepted it, and cannot begin yet: {held_up.detail}"
        return summary, (*_ready_steps(context), _reject_step(handoff))
    steps = (_next_step((handoff.recipient,), "activate", handoff), _reject_step(handoff))
    return f"{handoff.recipient} has accepted it and has to begin", steps


def _explain_activated(handoff: Handoff, context: HandoffContext) -> Explanation:
    to = (handoff.recipient,)
    if context.lease is not None and context.lease.is_valid(context.now):
        until = to_rfc3339(context.lease.expires_at)
        steps = (_next_step(to, "complete", handoff), _reject_step(handoff))
        return f"{handoff.recipient} works on it; its lease lasts until {until}", steps
    again, others = _next_step(to, "activate", handoff), _coordinator_steps(handoff, context)
    held_up = context.task and check_can_begin(context.task)
    if held_up:
        return (
            f"{handoff.recipient} has it, and cannot go on: {held_up.detail}",
            (*_ready_steps(context), *others, _reject_step(handoff)),
        )
    return (
        f"{handoff.recipient} has no valid lease: it has to activate the handoff again, or is gone",
        (again, *others, _reject_step(handoff)),
    )


def _ready_steps(context: HandoffContext) -> tuple[NextStep, ...]:
    """The step that makes a blocked, deferred or given-up task ready; a task that waits for others
    has none."""
    task = context.task
    if task is None or task.status not in ("blocked", "backlog", "deadletter"):
        return ()
    owner = (task.assignee,) if task.status == "blocked" and task.assignee else ()
    actors = (*owner, *context.coordinators)
    return (NextStep(actors, "ready", f"dragoman task move {task.id} ready{_as_flag(actors)}"),)


def _explain_rejected(handoff: Handoff, context: HandoffContext) -> Explanation:
    rejection = handoff.rejection
    why = f" ({rejection.reason}: {rejection.detail})" if rejection else ""
    close = _next_step((handoff.sender,), "close", handoff)
    return f"it was rejected{why}: {_describe_successor(handoff, context)}", (close,)


def _describe_successor(handoff: Handoff, context: HandoffContext) -> str:
    """The handoff that superseded it, and who has the work by now."""
    instead = f"{handoff.superseded_by} has taken its place; " if handoff.superseded_by else ""
    return instead + _describe_owner_now(context)


def _describe_owner_now(context: HandoffContext) -> str:
    """The owner of the work of a handoff that is over, and what that owner can do with it."""
    task = context.task
    if task is None:
        return "its task does not exist"
    if task.is_final:
        return f"{task.id} is {task.status} by now"
    if task.handoff is not None:
        under_way = task.handoff
        has_it = f"{under_way.recipient} has the work by {under_way.id}"
        is_to_come = f"the work is on its way to {under_way.recipient} by {under_way.id}"
        return has_it if under_way.is_taken else is_to_come
    if task.status == "review":
        return f"{task.id} waits for a review"
    return _describe_owner(task, context) if task.assignee else _describe_unowned(task)


def _describe_unowned(task: Task) -> str:
    if task.status == "ready":
        return "nobody has the work, and whoever takes it may offer it anew"
    return f"nobody has the work, and {task.id} is {task.status}"


def _describe_owner(task: Task, context: HandoffContext) -> str:
    is_resting = task.status not in ("ready", "in-progress")
    owner, state = task.assignee, f", which is {task.status}," if is_resting else ""
    if pending_delegate(task, owner):
        return f"{owner} has the work" + (f", and {task.id} is {task.status}" if state else "")
    sentence = f"{owner} has the work{state} and may offer it anew"
    if context.return_offer is not None:
        before, failed = context.return_offer
        sentence = f"{sentence}, also back to {before}, with --supersedes {failed}"
    if task.status == "deadletter":
        sentence = f"{sentence}; nobody can begin before {READY_ROLES_TEXT} has made it ready"
    return sentence


def _explain_completed(handoff: Handoff, context: HandoffContext) -> Explanation:
    summary = (
        f"{_describe_result(handoff)}; {_describe_owner_now(context)}; the record of this "
        "handoff is still open"
    )
    return summary, (_next_step((handoff.sender,), "close", handoff),)


def _describe_result(handoff: Handoff) -> str:
    if handoff.was_redelegated:
        return f"{handoff.recipient} has passed the work on as {handoff.superseded_by}"
    return f"{handoff.recipient} has done its part"


def _explain_closed(handoff: Handoff, context: HandoffContext) -> Explanation:
    rejection = handoff.rejection
    if rejection is None:
        return f"it is closed: {_describe_result(handoff)}; {_describe_owner_now(context)}", ()
    why = f"rejected by {rejection.by} ({rejection.reason}: {rejection.detail})"
    return f"it is closed, {why}: {_describe_successor(handoff, context)}", ()


def _is_read_only(known: AgentRecord | None) -> bool:
    """True for a role that may only read."""
    return known is not None and known.role not in MAY_WRITE


def _steps_without_recipient(
    handoff: Handoff, context: HandoffContext, steps: tuple[NextStep, ...]
) -> tuple[NextStep, ...]:
    """Steps for others where the recipient can do nothing."""
    others = tuple(step for step in steps if step.who != (handoff.recipient,))
    is_begun = handoff.status == "activated"
    back = () if is_begun else (_withdraw_step(handoff),)
    return (*others, *back, *_coordinator_steps(handoff, context))


def _reject_step(handoff: Handoff) -> NextStep:
    return _next_step((handoff.recipient,), "reject", handoff, _REASON_FLAGS)


def _withdraw_step(handoff: Handoff) -> NextStep:
    return _next_step((handoff.sender,), "withdraw", handoff)


def _coordinator_steps(handoff: Handoff, context: HandoffContext) -> tuple[NextStep, ...]:
    actors = context.coordinators
    return (
        _next_step(actors, "extend", handoff, " --by 30m"),
        _next_step(actors, "reassign", handoff, " --to NAME"),
        _next_step(actors, "reject", handoff, _REASON_FLAGS),
    )


_EXPLANATIONS: Final[Mapping[HandoffStatus, Callable[[Handoff, HandoffContext], Explanation]]] = {
    "draft": _explain_draft,
    "proposed": _explain_proposed,
    "validating": _explain_validating,
    "accepted": _explain_accepted,
    "activated": _explain_activated,
    "rejected": _explain_rejected,
    "completed": _explain_completed,
    "closed": _explain_closed,
}
"""State -> what it waits for, and who can end that."""


def _findings(handoff: Handoff, context: HandoffContext) -> Iterator[str]:
    if handoff.status in ("completed", "closed"):
        return
    yield from context.obstacles
    yield from context.risks
    yield from (f"check failed: {failed}" for failed in handoff.failed)
    if handoff.is_active:
        yield from _people_findings(handoff, context)
        yield from _task_findings(handoff, context)
    for escalation in handoff.escalations:
        recipient = escalation.to or "nobody"
        yield (
            f"{recipient} was told at {to_rfc3339(escalation.at)}: "
            f"{escalation.trigger} in {escalation.stage} "
            f"after {format_hours(escalation.elapsed_ms)}"
        )
    for failure in describe_failed_items(handoff, context.items_in_place):
        yield f"an item of the work queue was not moved with the work: {failure}"


def _people_findings(handoff: Handoff, context: HandoffContext) -> Iterator[str]:
    name, known = handoff.recipient, context.recipient
    is_late = handoff.is_escalated or handoff.is_overdue(context.now)
    if known is None and handoff.status == "proposed" and (context.sender_is_registered or is_late):
        yield f"nobody is registered under the name {name}: is it spelt as it should be?"
    elif known is not None and _is_read_only(known):
        yield (
            f"{name} is registered as {known.role}, and can do nothing about it: "
            f"`dragoman agent add {name} --role agent` would change that"
        )
    elif known is not None and known.active_pause(context.now) is not None:
        yield f"{name} is paused: `dragoman agent resume {name}`"
    if handoff.is_escalated and not context.coordinators:
        yield (
            "nobody is registered as coordinator: "
            "`dragoman agent add NAME --role coordinator`, or act yourself"
        )


def _task_findings(handoff: Handoff, context: HandoffContext) -> Iterator[str]:
    task = context.task
    if task is None:
        yield f"its task {handoff.task} does not exist"
    elif task.is_final or task.status == "deadletter":
        yield f"{task.id} is {task.status}: the work cannot be begun"
    elif handoff.status != "activated" and task.status == "review":
        yield f"{task.id} is in review: activating moves it to in-progress"
    elif handoff.status in ("proposed", "validating") and task.open_blockers:
        yield f"{task.id} waits for {', '.join(task.open_blockers)}"
