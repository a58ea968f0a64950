"""Propose and reassign a handoff.

Whoever hands work over stays its owner until the recipient activates it (S-OWN).
"""

from typing import cast

from dragoman.core import limits, not_found
from dragoman.core.actor import Actor
from dragoman.core.authority import check_write, is_idle_owner
from dragoman.core.base import Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.activate import PARKED_STATUSES
from dragoman.core.handoff.common import (
    COORDINATOR_ROLES,
    check_stage_duration,
    find_in_state,
    letter_event,
    not_authorized_refusal,
    offer_receipt,
    policy_objection,
)
from dragoman.core.handoff.ownership import (
    check_may_hand_over,
    check_ownership_cycle,
    current_owner,
    owner_chain,
)
from dragoman.core.handoff.package import (
    add_hub_fields,
    compute_package_hash,
    handoff_thread,
    seal_package,
)
from dragoman.core.handoff.reject import (
    reassignment_detail,
    recipient_lease_end,
    rejection_events,
    rejection_letter,
    restore_task,
)
from dragoman.core.handoff.state import (
    SLA_STATES,
    Handoff,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    ProposeHandoff,
    ReassignHandoff,
    fold_proposed,
    package_section,
    redelegation_note,
)
from dragoman.core.ids import check_agent, check_id, handoff_stream, task_stream
from dragoman.core.read import Decision, Read, StreamEvents
from dragoman.core.task_state import Task, TaskEdited, TaskHandedOver
from dragoman.core.timestamps import TIMESTAMP_RANGE

# --- propose ----------------------------------------------------------------------------------


def decide_propose(command: ProposeHandoff, read: Read, now: int) -> Decision | Refusal:
    """Propose a package to its recipient; from now on it does not change (S-ACP-2)."""
    refusal = check_proposal(command, read.actor)
    if refusal:
        return refusal
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    same_offer = _find_same_offer(command, task, read)
    if same_offer is not None:
        return Decision(offer_receipt(same_offer, task))
    old = read.handoff(command.supersedes) if command.supersedes else None
    id = command.id or read.cause
    owner = current_owner(task, read.actor.name)
    chain = owner_chain(task, owner)
    refusal = (
        _check_id_writable(id, read)
        or _check_superseded(command.supersedes, old, task)
        or check_may_hand_over(task, old, read.actor, read.handoff)
        or _check_not_superseded(old)
        or _check_sender_policy(task, read, now)
        or check_ownership_cycle(chain, command.recipient)
    )
    if refusal:
        return refusal
    thread = handoff_thread(command.thread, task)
    package, package_hash = seal_package(
        add_hub_fields(
            command, id, thread, read.actor.label, session=_owner_session(task), chain=chain
        )
    )
    if command.stated_hash not in ("", package_hash, compute_package_hash(command.package)):
        return Refusal("hash_mismatch", "the package does not match the stated package_hash")
    offered = HandoffProposed(
        id=id,
        task=task.id,
        sender=read.actor.name,
        recipient=command.recipient,
        package=package,
        package_hash=package_hash,
        title=command.title or task.title,
        reason=command.reason or "requested",
        thread=thread,
        teamspace=command.teamspace,
        chain=chain,
        supersedes=command.supersedes,
        sla_ms=command.sla_ms,
        due_at=command.due_at,
    )
    ended = _supersede_events(old, id, read) if old else ()
    is_lifted = (
        task.status in PARKED_STATUSES
        and owner == read.actor.name
        and (read.actor.role != "agent" or not task.assignee or is_idle_owner(owner, task))
    )
    offer_events = _offer_events(
        offered, task, owner, read, now, unblocks_task=is_lifted or _was_block_lifted(task)
    )
    receipt = offer_receipt(fold_proposed(None, offered, now), task)
    return Decision(receipt, (*ended, *offer_events))


def _find_same_offer(command: ProposeHandoff, task: Task, read: Read) -> Handoff | None:
    """Find the handoff that an equal proposal has created: the one it names, or the active one."""
    id = command.id or (task.handoff.id if task.handoff else "")
    existing = read.handoff(id) if id else None
    if existing is None or existing.sender != read.actor.name:
        return None
    # The thread may have had another name then, and the owner another session.
    is_same_thread = command.thread in ("", existing.thread)
    package = add_hub_fields(
        command,
        existing.id,
        existing.thread if is_same_thread else handoff_thread(command.thread, task),
        read.actor.label,
        session=package_section(existing.package, "provenance").get("origin_session", ""),
        chain=existing.chain,
    )
    stated = (
        compute_package_hash(package),
        command.recipient,
        command.reason or "requested",
        command.teamspace,
        command.supersedes,
        command.sla_ms,
        command.due_at,
    )
    recorded = (
        existing.package_hash,
        existing.recipient,
        existing.reason,
        existing.teamspace,
        existing.supersedes,
        existing.sla_ms,
        existing.due_at,
    )
    return existing if stated == recorded else None


def _check_sender_policy(task: Task, read: Read, now: int) -> Refusal | None:
    """Check that the intent's policy would let the sender have a task that nobody owns."""
    if task.assignee or read.actor.role != "agent":
        return None
    objection = policy_objection(read.actor.name, task, read, now)
    return Refusal("policy_violation", objection) if objection else None


def _was_block_lifted(task: Task) -> bool:
    """Return whether the owner lifted the block of the task by offering it; the next recipient
    keeps that.

    A block that came later is not lifted by offering the same package to somebody else.
    """
    return task.handoff is not None and task.handoff.unblocks_task


def _owner_session(task: Task) -> str:
    """Session in which the owner works on the task, or last did; none for a task that waits."""
    return "" if task.status in ("ready", "backlog") else task.session


def _offer_events(
    offered: HandoffProposed,
    task: Task,
    owner: str,
    read: Read,
    now: int,
    *,
    unblocks_task: bool,
) -> StreamEvents:
    """Events of an offer: the handoff, the active handoff of the task, and a letter to the
    recipient.

    Until the recipient activates it the task stays with its owner, even when the owner's lease
    expires.
    """
    stream, under_way = task_stream(task.id), task.handoff
    was_unowned = under_way.was_unowned if under_way else not task.assignee
    handover = TaskHandedOver(
        offered.id,
        offered.chain,
        owner,
        offered.recipient,
        unblocks_task=unblocks_task,
        was_unowned=was_unowned,
    )
    events: list[tuple[str, Event]] = []
    if task.reserved_for != owner or task.assignee != owner:
        events.append((stream, TaskEdited(reserved_for=owner)))
    events.append((handoff_stream(offered.id), offered))
    events.append((stream, handover))
    handoff = fold_proposed(None, offered, now)
    return (*events, letter_event(read, "handoff.initiate", (offered.recipient,), handoff))


# --- reassign ---------------------------------------------------------------------------------


def decide_reassign(command: ReassignHandoff, read: Read, now: int) -> Decision | Refusal:
    """Offer the same package to another recipient: a new handoff supersedes the old one."""
    states = ("proposed", "validating", "accepted", "activated")
    at = find_in_state(command.handoff, read, states, "reassign")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.role not in COORDINATOR_ROLES:
        return not_authorized_refusal(handoff, read.actor, "reassign", "a coordinator")
    refusal = (
        check_agent(command.recipient)
        or limits.check_text("notes", command.notes, limits.MAX_TEXT)
        or _check_new_recipient(handoff, command.recipient)
    )
    if refusal:
        return refusal
    id = read.cause
    rejection = HandoffRejected(read.actor.name, "other", reassignment_detail(command.notes))
    ended = rejection_events(handoff, task, rejection, read, superseded_by=id)
    package, package_hash = seal_package({**handoff.package, "handoff_id": id})
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
    restored = restore_task(handoff, task, reopens=False)
    owner = current_owner(restored, handoff.sender)
    offer_events = _offer_events(
        offered, restored, owner, read, now, unblocks_task=_was_block_lifted(task)
    )
    receipt = offer_receipt(fold_proposed(None, offered, now), restored)
    return Decision(receipt, (*ended, *offer_events), recipient_lease_end(handoff, task, read))


def _check_new_recipient(handoff: Handoff, recipient: str) -> Refusal | None:
    """Check that the same package may go to this recipient instead."""
    if recipient == handoff.recipient:
        detail = f"{recipient} is the recipient of {handoff.id}: name another one"
        return Refusal("invalid_field", detail)
    return check_ownership_cycle(handoff.owners, recipient)


# --- checks of a proposal ---------------------------------------------------------------------


def check_proposal(command: ProposeHandoff, actor: Actor) -> Refusal | None:
    """Check the fields of a proposal, whatever the state of its task."""
    return (
        check_write(actor)
        or (check_id(command.id, "handoff id") if command.id else None)
        or check_agent(command.recipient)
        or check_id(command.teamspace, "teamspace")
        or (check_id(command.thread, "thread") if command.thread else None)
        or (check_id(command.supersedes, "handoff id") if command.supersedes else None)
        or limits.check_text("title", command.title, limits.MAX_TITLE)
        or limits.check_text("reason", command.reason, limits.MAX_REASON)
        or limits.check_json("package", command.package)
        or (
            limits.check_range("due_at", command.due_at, *TIMESTAMP_RANGE)
            if command.due_at is not None
            else None
        )
        or _check_sla_stages(command)
        or _check_required_content(command)
    )


def _check_sla_stages(command: ProposeHandoff) -> Refusal | None:
    for stage, ms in command.sla_ms.items():
        if stage not in SLA_STATES:
            return Refusal(
                "invalid_field", f"{stage[:40]!a} is no stage; use {', '.join(SLA_STATES)}"
            )
        refusal = check_stage_duration(ms)
        if refusal:
            return refusal
    return None


def _check_required_content(command: ProposeHandoff) -> Refusal | None:
    """Check the content that every package needs (rule 2 of the state machine)."""
    criteria: object = package_section(command.package, "task").get("success_criteria")
    first = cast(list[object], criteria)[:1] if isinstance(criteria, list) else []
    required: dict[str, object] = {
        "context.summary": package_section(command.package, "context").get("summary"),
        "work_state.next_step": package_section(command.package, "work_state").get("next_step"),
        "task.success_criteria": next(iter(first), None),
    }
    for path, value in required.items():
        if not isinstance(value, str) or not limits.has_visible_text(value):
            return Refusal(
                "schema_invalid", f"{path}: it is missing or empty, and every package needs it"
            )
    return None


def _check_id_writable(id: str, read: Read) -> Refusal | None:
    existing = read.handoff(id)
    if existing is None:
        return None
    if existing.sender != read.actor.name:
        return id_in_use_refusal(id)
    return Refusal("already_exists", f"there is a handoff {id} already")


def id_in_use_refusal(id: str) -> Refusal:
    """Refusal of an id that somebody else uses; it reveals no more than that."""
    return Refusal("not_authorized", f"the id {id} is taken: choose another")


def _check_superseded(supersedes: str, old: Handoff | None, task: Task) -> Refusal | None:
    """Check that the handoff to supersede exists and is about the same task."""
    if not supersedes:
        return None
    if old is None:
        return not_found.handoff(supersedes)
    if old.task != task.id:
        return Refusal(
            "invalid_field", f"supersedes: {old.id} is about {old.task}, not about {task.id}"
        )
    return None


def _check_not_superseded(old: Handoff | None) -> Refusal | None:
    """Check that nothing has superseded this handoff yet."""
    if old is None or not old.superseded_by:
        return None
    new = old.superseded_by
    return Refusal("invalid_field", f"supersedes: {new} has taken the place of {old.id}")


def _supersede_events(old: Handoff, id: str, read: Read) -> StreamEvents:
    """Events for a handoff that another one supersedes (S-ACP-15)."""
    stream, by = handoff_stream(old.id), read.actor.name
    if not old.is_active:
        return ((stream, HandoffNoted(by, "superseded_by", id)),)
    note = f"superseded by {id}" if by == old.sender else redelegation_note(id)
    if old.status == "activated":
        transition = HandoffTransitioned("activated", "completed", note, id, by)
        # The work is not done by that: the sender is told where it goes.
        fields = {"superseded_by": id, "note": note}
        return (
            (stream, transition),
            letter_event(read, "handoff.complete", (old.sender,), old, fields),
        )
    rejection = HandoffRejected(by, "other", note)
    transition = HandoffTransitioned(old.status, "rejected", note, id, by)
    return ((stream, rejection), (stream, transition), rejection_letter(old, rejection, read, id))
