"""Why a handoff does not go on: what it waits for, who has to act, and by when."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.authority import MAY_WRITE
from dragoman.core.deciding.handoffs.work import MAKE_READY, check_beginning
from dragoman.core.events import HandoffStatus
from dragoman.core.moments import in_hours, to_rfc3339
from dragoman.core.rules.handoff_chain import promised_to
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.task import Task
from dragoman.engine.handing_on import told_of_items
from dragoman.engine.handoff_surroundings import Surroundings, surroundings
from dragoman.engine.operation import Outlook
from dragoman.engine.ports import Store
from dragoman.engine.reads.teamspaces import NO_TEAMS, Team

NO_OUTLOOK: Final = Outlook()


class Step(Struct, frozen=True):
    """Something that one of these actors has to do so that the handoff goes on."""

    who: tuple[str, ...]
    """Any of them may."""
    action: str
    command: str
    """The command line for it."""


class Diagnosis(Struct, frozen=True):
    """The diagnosis of a handoff at one moment."""

    handoff_id: str
    status: HandoffStatus
    summary: str
    """One sentence: what the handoff waits for."""
    steps: tuple[Step, ...]
    """Steps that would let it go on, the most likely first; empty: it is over."""
    due_by: str | None
    """The SLA deadline of its present state, which is past if it is late."""
    late: bool
    findings: tuple[str, ...]
    """Further problems, present or to be expected."""


def look_at(
    store: Store,
    handoff: Handoff,
    now: int,
    teams: Mapping[str, Team] = NO_TEAMS,
    outlook: Outlook = NO_OUTLOOK,
) -> Diagnosis:
    """Diagnose a handoff as it is now; `teams` are the teamspaces that have members, and `findings`
    come from outside of the ledger."""
    return diagnose(handoff, surroundings(store, handoff, now, teams, outlook))


def diagnose(handoff: Handoff, around: Surroundings) -> Diagnosis:
    """Diagnose a handoff from its state and its context; pure."""
    summary, steps = _WAITS[handoff.status](handoff, around)
    if handoff.is_active and _can_do_nothing(around.recipient):
        steps = _without_recipient(handoff, around, steps)
    due_by = handoff.due_by
    is_late = handoff.is_escalated or handoff.is_late(around.now)
    if is_late and handoff.is_active:
        steps = (*steps, *_of_coordinators(handoff, around))
    return Diagnosis(
        handoff_id=handoff.id,
        status=handoff.status,
        summary=summary,
        steps=tuple(dict.fromkeys(steps)),
        due_by=None if due_by is None else to_rfc3339(due_by),
        late=is_late,
        findings=tuple(_findings(handoff, around)),
    )


Waits = tuple[str, tuple[Step, ...]]
_WHY: Final = " --reason other --detail TEXT"
_UNAPPROVED: Final = "a person has to approve this package"


def _step(who: tuple[str, ...], action: str, handoff: Handoff, more: str = "") -> Step:
    return Step(who, action, f"dragoman handoff {action} {handoff.id}{more}{_speaking(who)}")


def _speaking(who: tuple[str, ...]) -> str:
    return f" --as {who[0]}" if who else ""


def _draft(handoff: Handoff, around: Surroundings) -> Waits:
    who, waits = (handoff.sender,), f"{handoff.sender} has not offered it yet"
    discarding = _step(who, "discard", handoff)
    if around.obstacles:
        write = f"dragoman handoff draft FILE --id {handoff.id}{_speaking(who)}"
        unfit = f"{waits}, and it cannot be offered as it stands"
        return unfit, (Step(who, "draft", write), discarding)
    return waits, (_step(who, "propose", handoff), discarding)


def _proposed(handoff: Handoff, around: Surroundings) -> Waits:
    if around.obstacles:
        return _unfit(handoff)
    if handoff.awaits_approval:
        return f"{_UNAPPROVED}, then {handoff.recipient} has to accept it", _approving(handoff)
    return f"{handoff.recipient} has to accept or reject it", _accepting(handoff)


def _unfit(handoff: Handoff) -> Waits:
    """Explain that the artifacts have to be put right before acceptance, which would be refused
    until then."""
    unapproved = f", and {_UNAPPROVED}" if handoff.awaits_approval else ""
    summary = (
        f"an artifact is missing or has changed: {handoff.sender} has to correct it{unapproved}, "
        f"then {handoff.recipient} can accept it"
    )
    others = _approving(handoff) if unapproved else (_rejecting(handoff),)
    return summary, (_withdrawing(handoff), *others)


def _validating(handoff: Handoff, around: Surroundings) -> Waits:
    if around.obstacles:
        return _unfit(handoff)
    if handoff.awaits_approval:
        return f"{_UNAPPROVED}, then {handoff.recipient} accepts it again", _approving(handoff)
    again = _accepting(handoff)
    waiting = [note for note in handoff.notes if note.kind == "waiting"]
    if handoff.approval is not None and all(n.at <= handoff.approval.at for n in waiting):
        return f"a person has approved it; {handoff.recipient} can accept it now", again
    why = waiting[-1].text if waiting else ""
    because = f": {why}" if why else ""
    return f"it was not accepted yet{because}; {handoff.recipient} may try again", again


def _accepting(handoff: Handoff) -> tuple[Step, ...]:
    return _step((handoff.recipient,), "accept", handoff), _rejecting(handoff)


def _approving(handoff: Handoff) -> tuple[Step, ...]:
    """Approval steps that go before acceptance, which would be in vain until then."""
    ways = (_step((), action, handoff) for action in ("approve", "deny"))
    return (*ways, _rejecting(handoff))


def _accepted(handoff: Handoff, around: Surroundings) -> Waits:
    if around.obstacles:
        summary = (
            f"{handoff.recipient} has accepted it, and cannot begin: a verified artifact is "
            "missing or has changed; once it is rejected, it can be offered anew"
        )
        return summary, (_rejecting(handoff), _withdrawing(handoff))
    held_up = around.task and check_beginning(around.task)
    if held_up:
        summary = f"{handoff.recipient} has accepted it, and cannot begin yet: {held_up.detail}"
        return summary, (*_making_ready(around), _rejecting(handoff))
    steps = (_step((handoff.recipient,), "activate", handoff), _rejecting(handoff))
    return f"{handoff.recipient} has accepted it and has to begin", steps


def _activated(handoff: Handoff, around: Surroundings) -> Waits:
    to = (handoff.recipient,)
    if around.lease is not None and around.lease.is_live(around.now):
        until = to_rfc3339(around.lease.expires_at)
        steps = (_step(to, "complete", handoff), _rejecting(handoff))
        return f"{handoff.recipient} works on it; its lease lasts until {until}", steps
    again, others = _step(to, "activate", handoff), _of_coordinators(handoff, around)
    held_up = around.task and check_beginning(around.task)
    if held_up:
        return (
            f"{handoff.recipient} has it, and cannot go on: {held_up.detail}",
            (*_making_ready(around), *others, _rejecting(handoff)),
        )
    return (
        f"{handoff.recipient} has no valid lease: it has to activate the handoff again, or is gone",
        (again, *others, _rejecting(handoff)),
    )


def _making_ready(around: Surroundings) -> tuple[Step, ...]:
    """The step that makes a blocked, deferred or given-up task ready; a task that waits for others
    has none."""
    task = around.task
    if task is None or task.status not in ("blocked", "backlog", "deadletter"):
        return ()
    owner = (task.assignee,) if task.status == "blocked" and task.assignee else ()
    who = (*owner, *around.coordinators)
    return (Step(who, "ready", f"dragoman task move {task.id} ready{_speaking(who)}"),)


def _rejected(handoff: Handoff, around: Surroundings) -> Waits:
    said = handoff.rejection
    why = f" ({said.reason}: {said.detail})" if said else ""
    close = _step((handoff.sender,), "close", handoff)
    return f"it was rejected{why}: {_since_then(handoff, around)}", (close,)


def _since_then(handoff: Handoff, around: Surroundings) -> str:
    """The handoff that superseded it, and who has the work by now."""
    instead = f"{handoff.superseded_by} has taken its place; " if handoff.superseded_by else ""
    return instead + _by_now(around)


def _by_now(around: Surroundings) -> str:
    """The owner of the work of a handoff that is over, and what that owner can do with it."""
    task = around.task
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
    return _with_owner(task, around) if task.assignee else _nobodys(task)


def _nobodys(task: Task) -> str:
    if task.status == "ready":
        return "nobody has the work, and whoever takes it may offer it anew"
    return f"nobody has the work, and {task.id} is {task.status}"


def _with_owner(task: Task, around: Surroundings) -> str:
    is_resting = task.status not in ("ready", "in-progress")
    owner, state = task.assignee, f", which is {task.status}," if is_resting else ""
    if promised_to(task, owner):
        return f"{owner} has the work" + (f", and {task.id} is {task.status}" if state else "")
    anew = f"{owner} has the work{state} and may offer it anew"
    if around.back is not None:
        before, failed = around.back
        anew = f"{anew}, also back to {before}, with --supersedes {failed}"
    if task.status == "deadletter":
        anew = f"{anew}; nobody can begin before {MAKE_READY} has made it ready"
    return anew


def _completed(handoff: Handoff, around: Surroundings) -> Waits:
    how = f"{_done(handoff)}; {_by_now(around)}; the record of this handoff is still open"
    return how, (_step((handoff.sender,), "close", handoff),)


def _done(handoff: Handoff) -> str:
    if handoff.was_passed_on:
        return f"{handoff.recipient} has passed the work on as {handoff.superseded_by}"
    return f"{handoff.recipient} has done its part"


def _closed(handoff: Handoff, around: Surroundings) -> Waits:
    said = handoff.rejection
    if said is None:
        return f"it is closed: {_done(handoff)}; {_by_now(around)}", ()
    why = f"rejected by {said.by} ({said.reason}: {said.detail})"
    return f"it is closed, {why}: {_since_then(handoff, around)}", ()


def _can_do_nothing(known: AgentRecord | None) -> bool:
    """True for a role that may only read."""
    return known is not None and known.role not in MAY_WRITE


def _without_recipient(
    handoff: Handoff, around: Surroundings, steps: tuple[Step, ...]
) -> tuple[Step, ...]:
    """Steps for others where the recipient can do nothing."""
    others = tuple(step for step in steps if step.who != (handoff.recipient,))
    is_begun = handoff.status == "activated"
    back = () if is_begun else (_withdrawing(handoff),)
    return (*others, *back, *_of_coordinators(handoff, around))


def _rejecting(handoff: Handoff) -> Step:
    return _step((handoff.recipient,), "reject", handoff, _WHY)


def _withdrawing(handoff: Handoff) -> Step:
    return _step((handoff.sender,), "withdraw", handoff)


def _of_coordinators(handoff: Handoff, around: Surroundings) -> tuple[Step, ...]:
    who = around.coordinators
    return (
        _step(who, "extend", handoff, " --by 30m"),
        _step(who, "reassign", handoff, " --to NAME"),
        _step(who, "reject", handoff, _WHY),
    )


_WAITS: Final[Mapping[HandoffStatus, Callable[[Handoff, Surroundings], Waits]]] = {
    "draft": _draft,
    "proposed": _proposed,
    "validating": _validating,
    "accepted": _accepted,
    "activated": _activated,
    "rejected": _rejected,
    "completed": _completed,
    "closed": _closed,
}
"""State -> what it waits for, and who can end that."""


def _findings(handoff: Handoff, around: Surroundings) -> Iterator[str]:
    if handoff.status in ("completed", "closed"):
        return
    yield from around.obstacles
    yield from around.doubts
    yield from (f"check failed: {failed}" for failed in handoff.failed)
    if handoff.is_active:
        yield from _about_people(handoff, around)
        yield from _about_task(handoff, around)
    for told in handoff.escalations:
        who = told.to or "nobody"
        yield (
            f"{who} was told at {to_rfc3339(told.at)}: {told.trigger} in {told.stage} "
            f"after {in_hours(told.elapsed_ms)}"
        )
    for told in told_of_items(handoff, around.in_place):
        yield f"an item of the work queue was not moved with the work: {told}"


def _about_people(handoff: Handoff, around: Surroundings) -> Iterator[str]:
    name, known = handoff.recipient, around.recipient
    is_late = handoff.is_escalated or handoff.is_late(around.now)
    if known is None and handoff.status == "proposed" and (around.has_names or is_late):
        yield f"nobody is registered under the name {name}: is it spelt as it should be?"
    elif known is not None and _can_do_nothing(known):
        yield (
            f"{name} is registered as {known.role}, and can do nothing about it: "
            f"`dragoman agent add {name} --role agent` would change that"
        )
    elif known is not None and known.paused(around.now) is not None:
        yield f"{name} is paused: `dragoman agent resume {name}`"
    if handoff.is_escalated and not around.coordinators:
        yield (
            "nobody is registered as coordinator: "
            "`dragoman agent add NAME --role coordinator`, or act yourself"
        )


def _about_task(handoff: Handoff, around: Surroundings) -> Iterator[str]:
    task = around.task
    if task is None:
        yield f"its task {handoff.task} does not exist"
    elif task.is_final or task.status == "deadletter":
        yield f"{task.id} is {task.status}: the work cannot be begun"
    elif handoff.status != "activated" and task.status == "review":
        yield f"{task.id} is in review: activating moves it to in-progress"
    elif handoff.status in ("proposed", "validating") and task.open_blockers:
        yield f"{task.id} waits for {', '.join(task.open_blockers)}"
