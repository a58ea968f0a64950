"""Why a handoff does not go on: what it waits for, who has to act, and by when."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.authority import MAY_WRITE
from dragoman.core.deciding.handoffs.work import is_held_back
from dragoman.core.errors import Refusal
from dragoman.core.events import HandoffStatus
from dragoman.core.moments import in_hours, to_rfc3339
from dragoman.core.rules.handoff_chain import chain_of, may_go_back
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import CLAIMABLE, Task
from dragoman.engine.handing_on import in_place, told_of_items
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_agent, find_task
from dragoman.engine.reads.teamspaces import NO_TEAMS, Team, coordinators


class Step(Struct, frozen=True):
    """What somebody has to do so that it goes on."""

    who: tuple[str, ...]
    """Any of them."""
    action: str
    command: str
    """How it is asked for on the command line."""


class Diagnosis(Struct, frozen=True):
    """A handoff at one moment."""

    handoff_id: str
    status: HandoffStatus
    summary: str
    """What it waits for, in a sentence."""
    steps: tuple[Step, ...]
    """What would let it go on, the most likely first; empty: it is over."""
    due_by: str | None
    late: bool
    findings: tuple[str, ...]
    """What else stands in its way, or will."""


class Surroundings(Struct, frozen=True):
    """What is looked at beside the handoff itself."""

    now: int
    task: Task | None = None
    lease: Lease | None = None
    recipient: AgentRecord | None = None
    in_place: frozenset[str] = frozenset()
    """Items of a work queue that are where the work is."""
    coordinators: tuple[str, ...] = ()


def look_at(
    store: Store, handoff: Handoff, now: int, teams: Mapping[str, Team] = NO_TEAMS
) -> Diagnosis:
    """The diagnosis of a handoff as it is now; `teams` are the teamspaces that have members."""
    view = find_task(store, handoff.task) if handoff.task else None
    found = None if view is None or isinstance(view, Refusal) else view
    around = Surroundings(
        now=now,
        task=found and found.task,
        lease=found and found.lease,
        recipient=find_agent(store, handoff.recipient) if handoff.recipient else None,
        in_place=in_place(store, handoff),
        coordinators=coordinators(store, teams.get(handoff.teamspace)),
    )
    return diagnose(handoff, around)


def diagnose(handoff: Handoff, around: Surroundings) -> Diagnosis:
    """Pure: what can be said from the handoff and what surrounds it."""
    summary, steps = _WAITS[handoff.status](handoff, around)
    deadline = handoff.deadline
    is_late = handoff.is_escalated or (deadline is not None and deadline <= around.now)
    if is_late and handoff.is_active:
        steps = (*steps, *_of_coordinators(handoff, around))
    return Diagnosis(
        handoff_id=handoff.id,
        status=handoff.status,
        summary=summary,
        steps=tuple(dict.fromkeys(steps)),
        due_by=None if deadline is None else to_rfc3339(deadline),
        late=is_late,
        findings=tuple(_findings(handoff, around)),
    )


Waits = tuple[str, tuple[Step, ...]]


def _step(who: tuple[str, ...], action: str, handoff: Handoff, more: str = "") -> Step:
    speaks = f" --as {who[0]}" if who else ""
    return Step(who, action, f"dragoman handoff {action} {handoff.id}{more}{speaks}")


def _draft(handoff: Handoff, _: Surroundings) -> Waits:
    steps = (_step((handoff.sender,), action, handoff) for action in ("propose", "discard"))
    return f"{handoff.sender} has not offered it yet", tuple(steps)


def _proposed(handoff: Handoff, around: Surroundings) -> Waits:
    to = (handoff.recipient,)
    steps = (_step(to, "accept", handoff), _rejecting(handoff))
    if handoff.needs_approval and not handoff.is_approved:
        summary, first = _approval(handoff, around)
        return f"{summary}, and {handoff.recipient} has to accept it", (*first, *steps)
    return f"{handoff.recipient} has to accept or reject it", steps


def _validating(handoff: Handoff, around: Surroundings) -> Waits:
    again = (_step((handoff.recipient,), "accept", handoff), _rejecting(handoff))
    if handoff.needs_approval and not handoff.is_approved:
        summary, first = _approval(handoff, around)
        return f"{summary}, then {handoff.recipient} accepts it again", (*first, *again)
    waiting = [note for note in handoff.notes if note.kind == "waiting"]
    if handoff.approval is not None and all(n.at <= handoff.approval.at for n in waiting):
        return f"a person has approved it; {handoff.recipient} can accept it now", again
    why = waiting[-1].text if waiting else ""
    because = f": {why}" if why else ""
    return f"it was not accepted yet{because}; {handoff.recipient} may try again", again


def _approval(handoff: Handoff, _: Surroundings) -> Waits:
    step = Step((), "approve", f"dragoman handoff approve {handoff.id}")
    return "a person has to approve this package", (step,)


def _accepted(handoff: Handoff, around: Surroundings) -> Waits:
    to = (handoff.recipient,)
    task = around.task
    if task is not None and is_held_back(task):
        who = (task.assignee, *around.coordinators)
        first = Step(who, "ready", f"dragoman task move {task.id} ready")
        summary = f"{task.id} was blocked meanwhile: it has to be ready before {handoff.recipient}"
        return f"{summary} can begin", (first, _step(to, "activate", handoff), _rejecting(handoff))
    steps = (_step(to, "activate", handoff), _rejecting(handoff))
    return f"{handoff.recipient} has accepted it and has to begin", steps


def _activated(handoff: Handoff, around: Surroundings) -> Waits:
    to = (handoff.recipient,)
    if around.lease is not None and around.lease.is_live(around.now):
        until = to_rfc3339(around.lease.expires_at)
        steps = (_step(to, "complete", handoff), _rejecting(handoff))
        return f"{handoff.recipient} works on it; its lease lasts until {until}", steps
    again, others = _step(to, "activate", handoff), _of_coordinators(handoff, around)
    task = around.task
    if task is not None and task.status not in (*CLAIMABLE, "in-progress"):
        ready = Step((), "ready", f"dragoman task move {task.id} ready")
        why = f"`dragoman task show {task.id}` says why"
        return (
            f"{handoff.recipient} has it, and {task.id} is {task.status}: {why}",
            (ready, *others, _rejecting(handoff)),
        )
    return (
        f"{handoff.recipient} has it, but no live lease: it has to activate it again, or is gone",
        (again, *others, _rejecting(handoff)),
    )


def _rejected(handoff: Handoff, around: Surroundings) -> Waits:
    said = handoff.rejection
    why = f" ({said.reason}: {said.detail})" if said else ""
    close = _step((handoff.sender,), "close", handoff)
    if handoff.superseded_by:
        return f"it was rejected{why}: {handoff.superseded_by} has taken its place", (close,)
    return f"it was rejected{why}: {_whose(handoff, around.task)}", (close,)


def _whose(handoff: Handoff, task: Task | None) -> str:
    """Who has the work that was rejected, by now, and what that one can do about it."""
    if task is None:
        return "its task is not there"
    owner, under_way = task.assignee, task.handoff
    if task.is_final:
        return f"{task.id} is {task.status} by now"
    if under_way is not None and under_way.id != handoff.id:
        return f"the work is on its way to {under_way.recipient} by {under_way.id}"
    if not owner:
        return "nobody has the work, and whoever takes it may offer it anew"
    anew = f"{owner} has the work and may offer it anew"
    before = chain_of(task, owner)[-2:-1]
    if not before or not may_go_back(handoff, owner):
        return anew
    return f"{anew}, also back to {before[0]}, with --supersedes {handoff.id}"


def _completed(handoff: Handoff, around: Surroundings) -> Waits:
    close, task = _step((handoff.sender,), "close", handoff), around.task
    if handoff.superseded_by:
        passed = f"{handoff.recipient} has passed the work on as {handoff.superseded_by}"
        if task is not None and task.handoff is None and task.assignee == handoff.recipient:
            passed += f", which is over: {handoff.recipient} has the work"
        return f"{passed}; the record of this handoff is still open", (close,)
    if task is not None and task.status == "review":
        reviewed = f"{handoff.recipient} is done, and {task.id} waits for a review"
        return f"{reviewed}; the record is still open", (close,)
    return "the work is done; the record is still open", (close,)


def _closed(handoff: Handoff, _: Surroundings) -> Waits:
    said = handoff.rejection
    how = f", rejected by {said.by} ({said.reason}: {said.detail})" if said else ""
    return f"it is closed{how}: nothing is left to do", ()


def _rejecting(handoff: Handoff) -> Step:
    more = " --reason other --detail TEXT"
    return _step((handoff.recipient,), "reject", handoff, more)


def _of_coordinators(handoff: Handoff, around: Surroundings) -> tuple[Step, ...]:
    who = around.coordinators
    return (
        _step(who, "extend", handoff, " --by 30m"),
        _step(who, "reassign", handoff, " --to NAME"),
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
    yield from (f"check failed: {failed}" for failed in handoff.failed)
    if handoff.is_active:
        yield from _about_people(handoff, around)
        yield from _about_task(handoff, around)
    for told in handoff.escalations:
        yield (
            f"{told.to} was told at {to_rfc3339(told.at)}: {told.trigger} in {told.stage} "
            f"after {in_hours(told.elapsed_ms)}"
        )
    for told in told_of_items(handoff, around.in_place):
        yield f"an item of the work queue is not where the work is: {told}"


def _about_people(handoff: Handoff, around: Surroundings) -> Iterator[str]:
    name, known = handoff.recipient, around.recipient
    if known is None and handoff.status == "proposed":
        yield f"nobody is registered under the name {name}: is it spelt as it should be?"
    elif known is not None and known.role not in MAY_WRITE:
        yield (
            f"{name} is registered as {known.role}, and can accept nothing: withdraw it, or "
            f"`dragoman agent add {name} --role agent`"
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
        yield f"its task {handoff.task} is not there"
    elif task.is_final or task.status == "deadletter":
        yield f"{task.id} is {task.status}: the work cannot be begun"
    elif handoff.status != "activated" and task.status == "review":
        yield f"{task.id} is in review: activating takes it out of there"
    elif handoff.status == "accepted" and task.open_blockers:
        yield f"{task.id} waits for {', '.join(task.open_blockers)}"
