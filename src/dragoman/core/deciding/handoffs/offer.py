"""Deciders of offers: a proposal, and the same package for somebody else.

Whoever hands work over stays its owner until the recipient activates it (S-OWN).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.authority import check_write
from dragoman.core.commands import (
    ProposeHandoff,
    ReassignHandoff,
)
from dragoman.core.deciding.handoffs.common import (
    COORDINATES,
    check_sla,
    found,
    letter,
    not_yours,
    offered_until,
)
from dragoman.core.deciding.handoffs.drafting import check_draft
from dragoman.core.deciding.handoffs.policy import why_not_to
from dragoman.core.deciding.handoffs.repeat import offered_before
from dragoman.core.deciding.handoffs.ways_out import (
    given_back,
    lease_ended,
    reassignment,
    told_off,
    turned_down,
)
from dragoman.core.deciding.handoffs.work import HELD_BACK
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    HandoffMoved,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    TaskEdited,
    TaskHandedOver,
)
from dragoman.core.ids import check_agent, check_id, handoff_stream, task_stream
from dragoman.core.limits import REASON, TEXT, TITLE, check_json, check_range, check_text
from dragoman.core.moments import SPAN
from dragoman.core.reading import Decision, Read, StreamEvents
from dragoman.core.rules.handoff_chain import (
    chain_of,
    check_cycle,
    check_owner,
    may_go_back,
    owner_of,
    way_back,
)
from dragoman.core.states.handoff import SLA_STAGES, Handoff, passing_on, section
from dragoman.core.states.handoff_fold import handoff_proposed
from dragoman.core.states.handoff_package import filled, hash_of, mark_of, sealed, thread_of
from dragoman.core.states.task import Task
from dragoman.text.lookalikes import shows

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent


def propose(command: ProposeHandoff, read: Read, now: int) -> Decision | Refusal:
    """Propose a package to its recipient; from now on it does not change (S-ACP-2)."""
    refusal = check_shape(command, read.actor)
    if refusal:
        return refusal
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    again = offered_before(command, task, read)
    if again is not None:
        return Decision(offered_until(again, task))
    old = read.handoff(command.supersedes) if command.supersedes else None
    id = command.id or read.cause
    owner = owner_of(task, read.actor.name)
    chain = chain_of(task, owner)
    goes_back = may_go_back(chain, command.recipient, old, read.handoff)
    way = way_back(task, chain, command.recipient)
    refusal = (
        _check_id(id, read)
        or _check_seen(command, read)
        or check_old(command.supersedes, old, task)
        or check_owner(task, old, read.actor, read.handoff)
        or check_last(old, read.handoff)
        or _check_claim(task, read, now)
        or check_cycle(chain, command.recipient, goes_back=goes_back, way=way)
    )
    if refusal:
        return refusal
    package, package_hash = in_full(command, id, task, read.actor, chain)
    refusal = check_stated(command, package_hash)
    if refusal:
        return refusal
    offered = HandoffProposed(
        id=id,
        task=task.id,
        sender=read.actor.name,
        recipient=command.recipient,
        package=package,
        package_hash=package_hash,
        title=command.title or task.title,
        reason=command.reason or "requested",
        thread=thread_of(command.thread, task),
        teamspace=command.teamspace,
        chain=chain,
        supersedes=command.supersedes,
        sla_ms=command.sla_ms,
        due_at=command.due_at,
    )
    ended = _replaced(old, id, read) if old else ()
    is_lifted = task.status in HELD_BACK and owner == read.actor.name
    begun = _begun(offered, task, owner, read, now, lifts_block=is_lifted or _was_lifted(task))
    told = offered_until(handoff_proposed(None, offered, now), task)
    return Decision(told, (*ended, *begun))


def _check_claim(task: Task, read: Read, now: int) -> Refusal | None:
    """Check that the intent's policy would let the sender have a task that nobody owns."""
    if task.assignee or read.actor.role != "agent":
        return None
    forbidden = why_not_to(read.actor.name, task, read, now)
    return Refusal("policy_violation", forbidden) if forbidden else None


def _was_lifted(task: Task) -> bool:
    """Return whether the owner lifted the block of the task by offering it; the next recipient
    keeps that.

    A block that came later is not lifted by offering the same package to somebody else.
    """
    return task.handoff is not None and task.handoff.lifts_block


def _session(task: Task) -> str:
    """Session in which the owner works on the task, or last did; none for a task that waits."""
    return "" if task.status in ("ready", "backlog") else task.session


def _begun(
    offered: HandoffProposed,
    task: Task,
    owner: str,
    read: Read,
    now: int,
    *,
    lifts_block: bool,
) -> StreamEvents:
    """Events of an offer: the handoff, the active handoff of the task, and a letter to the
    recipient.

    Until the recipient activates it the task stays with its owner, even when the owner's lease
    expires.
    """
    stream, under_way = task_stream(task.id), task.handoff
    was_free = under_way.was_free if under_way else not task.assignee
    begins = TaskHandedOver(
        offered.id,
        offered.chain,
        owner,
        offered.recipient,
        lifts_block=lifts_block,
        was_free=was_free,
    )
    events: list[tuple[str, AnyEvent]] = []
    if task.reserved_for != owner or task.assignee != owner:
        events.append((stream, TaskEdited(reserved_for=owner)))
    events.append((handoff_stream(offered.id), offered))
    events.append((stream, begins))
    handoff = handoff_proposed(None, offered, now)
    return (*events, letter(read, "handoff.initiate", (offered.recipient,), handoff))


def reassign(command: ReassignHandoff, read: Read, now: int) -> Decision | Refusal:
    """Offer the same package to another recipient: a new handoff supersedes the old one."""
    states = ("proposed", "validating", "accepted", "activated")
    at = found(command.handoff, read, states, "reassign")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.role not in COORDINATES:
        return not_yours(handoff, read.actor, "reassign", "a coordinator")
    refusal = (
        check_agent(command.recipient)
        or check_text("notes", command.notes, TEXT)
        or _check_next(handoff, command.recipient)
    )
    if refusal:
        return refusal
    id = read.cause
    why = HandoffRejected(read.actor.name, "other", reassignment(command.notes))
    ended = turned_down(handoff, task, why, read, superseded_by=id)
    package, package_hash = sealed({**handoff.package, "handoff_id": id})
    offered = HandoffProposed(
        id=id,
        task=task.id,
        sender=handoff.sender,
        recipient=command.recipient,
        package=package,
        package_hash=package_hash,
        title=handoff.title,
        reason=handoff.reason,
        thread=handoff.thread,
        teamspace=handoff.teamspace,
        chain=handoff.chain,
        supersedes=handoff.id,
        sla_ms=handoff.sla_ms,
        due_at=handoff.due_at,
    )
    after = given_back(handoff, task, reopens=False)
    owner = owner_of(after, handoff.sender)
    begun = _begun(offered, after, owner, read, now, lifts_block=_was_lifted(task))
    told = offered_until(handoff_proposed(None, offered, now), after)
    return Decision(told, (*ended, *begun), lease_ended(handoff, task, read))


def _check_next(handoff: Handoff, recipient: str) -> Refusal | None:
    """Check that the same package may go to this recipient instead."""
    id = handoff.id
    if recipient == handoff.recipient:
        return Refusal("invalid_field", f"{recipient} is the recipient of {id}: name another one")
    if handoff.status == "activated" and recipient == handoff.owner:
        detail = f"{recipient} has handed it over by {id}: reject {id} to give it back"
        return Refusal("ownership_conflict", detail, "cycle")
    return check_cycle(handoff.chain, recipient)


def check_shape(command: ProposeHandoff, actor: Actor) -> Refusal | None:
    """Check the fields of a proposal, whatever the state of its task."""
    return (
        check_write(actor)
        or (check_id(command.id, "handoff id") if command.id else None)
        or check_agent(command.recipient)
        or check_id(command.teamspace, "teamspace")
        or (check_id(command.thread, "thread") if command.thread else None)
        or (check_id(command.supersedes, "handoff id") if command.supersedes else None)
        or check_text("title", command.title, TITLE)
        or check_text("reason", command.reason, REASON)
        or check_json("package", command.package)
        or (check_range("due_at", command.due_at, *SPAN) if command.due_at is not None else None)
        or _check_stages(command)
        or _check_context(command)
    )


def _check_stages(command: ProposeHandoff) -> Refusal | None:
    for stage, ms in command.sla_ms.items():
        if stage not in SLA_STAGES:
            return Refusal(
                "invalid_field", f"{stage[:40]!a} is no stage; use {', '.join(SLA_STAGES)}"
            )
        refusal = check_sla(ms)
        if refusal:
            return refusal
    return None


def _check_context(command: ProposeHandoff) -> Refusal | None:
    """Check the content without which a package stays a draft (rule 2 of the state machine)."""
    criteria: object = section(command.package, "task").get("success_criteria")
    first = cast(list[object], criteria)[:1] if isinstance(criteria, list) else []
    wanted: dict[str, object] = {
        "context.summary": section(command.package, "context").get("summary"),
        "work_state.next_step": section(command.package, "work_state").get("next_step"),
        "task.success_criteria": next(iter(first), None),
    }
    for path, value in wanted.items():
        if not isinstance(value, str) or not shows(value):
            return Refusal(
                "schema_invalid", f"{path}: it is missing or empty, and every package needs it"
            )
    return None


def _check_id(id: str, read: Read) -> Refusal | None:
    known = read.handoff(id)
    return check_draft(known, read.actor) if known else None


def _check_seen(command: ProposeHandoff, read: Read) -> Refusal | None:
    """Check that the draft has not changed since it was read for this proposal."""
    known = read.handoff(command.id) if command.drafted else None
    if known is None or mark_of(known) == command.drafted:
        return None
    return Refusal("try_again", f"the draft {known.id} has changed meanwhile: propose it again")


def in_full(
    command: ProposeHandoff, id: str, task: Task | None, actor: Actor, chain: tuple[str, ...]
) -> tuple[dict[str, object], str]:
    """Return the package as it is proposed, and its hash; `task` is None if the hub does not know
    it.
    """
    thread = command.thread if task is None else thread_of(command.thread, task)
    session = "" if task is None else _session(task)
    return sealed(filled(command, id, thread, actor.label, session=session, chain=chain))


def check_stated(command: ProposeHandoff, package_hash: str) -> Refusal | None:
    """Check a hash that the sender states: of the package as sent, or as sealed by the hub."""
    if command.stated_hash in ("", package_hash, hash_of(command.package)):
        return None
    return Refusal("hash_mismatch", "the package does not match the stated package_hash")


def check_old(supersedes: str, old: Handoff | None, task: Task) -> Refusal | None:
    """Check that the handoff to supersede exists and is about the same task."""
    if not supersedes:
        return None
    if old is None or old.status == "draft":
        return missing.handoff(supersedes)
    if old.task != task.id:
        return Refusal(
            "invalid_field", f"supersedes: {old.id} is about {old.task}, not about {task.id}"
        )
    return None


def check_last(old: Handoff | None, find: Callable[[str], Handoff | None]) -> Refusal | None:
    """Check that nothing has superseded this handoff yet; else name the latest of the series.

    The latest one is over, because this is checked only for whoever may hand the task over now.
    """
    if old is None or not old.superseded_by:
        return None
    named = old.superseded_by
    while (last := find(named)) is not None and last.superseded_by:
        named = last.superseded_by
    return Refusal(
        "invalid_field", f"supersedes: {named} has taken the place of {old.id}: name that one"
    )


def _replaced(old: Handoff, id: str, read: Read) -> StreamEvents:
    """Events for a handoff that another one supersedes (S-ACP-15)."""
    stream, by = handoff_stream(old.id), read.actor.name
    if not old.is_active:
        return ((stream, HandoffNoted(by, "superseded_by", id)),)
    note = f"superseded by {id}" if by == old.sender else passing_on(id)
    if old.status == "activated":
        moved = HandoffMoved("activated", "completed", note, id, by)
        # The work is not done by that: the sender is told where it goes.
        onward = {"superseded_by": id, "note": note}
        return ((stream, moved), letter(read, "handoff.complete", (old.sender,), old, onward))
    why = HandoffRejected(by, "other", note)
    moved = HandoffMoved(old.status, "rejected", note, id, by)
    return ((stream, why), (stream, moved), told_off(old, why, read, id))
