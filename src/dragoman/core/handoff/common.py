"""Lookups, receipts, refusals and letters that the deciders of handoffs share."""

from collections.abc import Mapping
from itertools import count
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.actor import HUB_NAME, Actor
from dragoman.core.authority import MAY_DISPATCH, check_write
from dragoman.core.base import Event, Role
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import LEGAL_ACTIONS, Handoff, HandoffStatus
from dragoman.core.ids import check_id, handoff_stream, mail_stream
from dragoman.core.intent.request_workflow import IntentWorkflow
from dragoman.core.intent.state import intent_of_task
from dragoman.core.limits import MAX_REASON, WAIT_RANGE_MS, check_duration
from dragoman.core.mail import MailPosted
from dragoman.core.read import Decision, Read, Receipt, stream_decision, task_receipt
from dragoman.core.task_state import Task

COORDINATOR: Final = "coordinator"
"""Role that is notified, and the recipient's name if nobody is registered with that role."""

COORDINATOR_ROLES: Final[frozenset[Role]] = MAY_DISPATCH | frozenset[Role]({"coordinator"})
"""Roles that may manage a handoff of others (S-ACP-7)."""

_HUB_KINDS: Final = frozenset({"system.error", "status.blocked"})

_NO_FIELDS: Final[Mapping[str, Any]] = {}


def find_in_state(
    id: str, read: Read, states: tuple[HandoffStatus, ...], action: str
) -> tuple[Handoff, Task] | Refusal:
    """Find the handoff, which must be in one of these states, and its task."""
    handoff = find_visible_handoff(id, read)
    if isinstance(handoff, Refusal):
        return handoff
    if handoff.status not in states:
        return wrong_state_refusal(handoff, states, action)
    task = read.task(handoff.task)
    return task if isinstance(task, Refusal) else (handoff, task)


def wrong_state_refusal(
    handoff: Handoff, states: tuple[HandoffStatus, ...], action: str
) -> Refusal:
    """Refusal of an action in a state that does not allow it; it names the actions that are
    legal.
    """
    instead = f", and {handoff.superseded_by} has taken its place" if handoff.superseded_by else ""
    legal = ", ".join(LEGAL_ACTIONS[handoff.status])
    return Refusal(
        "invalid_transition",
        f"{handoff.id} is {handoff.status}{instead}: {action} is for {', '.join(states)}; "
        + (f"now it is time for {legal}" if legal else "it is final"),
    )


def find_visible_handoff(id: str, read: Read) -> Handoff | Refusal:
    """Find the handoff with this id for a caller that may act on it."""
    refusal = check_write(read.actor) or check_id(id, "handoff id")
    if refusal:
        return refusal
    handoff = read.handoff(id)
    return not_found.handoff(id) if handoff is None else handoff


def letter_event(
    read: Read,
    kind: str,
    to: tuple[str, ...],
    handoff: Handoff,
    fields: Mapping[str, Any] = _NO_FIELDS,
    *,
    speaker: str = "",
) -> tuple[str, MailPosted]:
    """Letter about a handoff, with its id, its package hash and further fields (S-ACP-14).

    Sent in the name of the hub if the caller is not the `speaker`, because somebody else caused it.
    """
    is_own = kind not in _HUB_KINDS and speaker in ("", read.actor.name)
    ids = (f"{read.cause}.{kind}{f'.{n}' if n else ''}" for n in count())
    id = next(id for id in ids if read.mail(id) is None)
    task = read.task(handoff.task)
    payload = {"handoff_id": handoff.id, "package_hash": handoff.package_hash, **fields}
    return mail_stream(id), MailPosted(
        id=id,
        sender=read.actor.name if is_own else HUB_NAME,
        to=to,
        thread=handoff.thread,
        kind=kind,
        subject=f"{kind}: {handoff.task}",
        body=msgspec.json.encode(payload).decode(),
        unknown=tuple(name for name in to if read.agent(name) is None),
        bead=handoff.task if isinstance(task, Refusal) else task.mail_name,
    )


def check_stage_duration(ms: int) -> Refusal | None:
    return check_duration("the time of a stage", ms, *WAIT_RANGE_MS)


def handoff_decision(
    id: str, state: HandoffStatus | Literal["discarded"], *events: Event
) -> Decision:
    """Decision that concerns only the handoff."""
    return stream_decision(handoff_stream(id), state, *events)


def repeat_decision(handoff: Handoff) -> Decision:
    """Accept a repeated command: the current state of its handoff, no events."""
    stream, until = handoff_stream(handoff.id), handoff.escalation_due_at or 0
    base = Receipt("", None, stream=stream, state=handoff.status, expires_at=until)
    return Decision(replace(base, package_hash=handoff.package_hash))


def handoff_receipt(id: str, state: HandoffStatus, task: Task) -> Receipt:
    return replace(task_receipt(task, task.status), stream=handoff_stream(id), state=state)


def offer_receipt(handoff: Handoff, task: Task) -> Receipt:
    """Receipt of an offer, with its package hash and its deadline."""
    base = handoff_receipt(handoff.id, handoff.status, task)
    return replace(
        base, package_hash=handoff.package_hash, expires_at=handoff.escalation_due_at or 0
    )


def not_authorized_refusal(handoff: Handoff, actor: Actor, action: str, allowed: str) -> Refusal:
    """Refusal of an action that is reserved for others."""
    return Refusal(
        "not_authorized", f"{actor.label} may not {action} {handoff.id}: that is for {allowed}"
    )


# --- policy of the task's intent --------------------------------------------------------------


def policy_objection(agent: str, task: Task, read: Read, now: int, package: object = ()) -> str:
    """Reason why the policy of the task's intent forbids this agent, given the package; empty: none
    (S-CCOS-4).
    """
    intent = intent_of_task(task, read.intent)
    if intent is None:
        return ""
    against = "; ".join(IntentWorkflow(intent, task, read, now).policy_vetoes(agent, package))
    return f"{agent} may not have the intent {intent.id}: {against}"[:MAX_REASON] if against else ""
