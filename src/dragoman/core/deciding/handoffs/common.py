"""What the deciders of handoffs have in common: finding one, telling about it, saying no."""

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import HUB, Actor
from dragoman.core.authority import MAY_DISPATCH, check_write
from dragoman.core.errors import Refusal
from dragoman.core.events import HandoffStatus, MailPosted, Role
from dragoman.core.ids import check_id, handoff_stream, mail_stream
from dragoman.core.limits import WAIT_MS, check_duration
from dragoman.core.reading import Decision, Read, Receipt, noted, receipt
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.task import Task

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

COORDINATOR: Final = "coordinator"
"""Role that is notified, and the recipient's name if nobody is registered with that role."""
COORDINATES: Final[frozenset[Role]] = MAY_DISPATCH | frozenset[Role]({"coordinator"})
"""Roles that may manage a handoff of others (S-ACP-7)."""

_FROM_THE_HUB: Final = frozenset({"system.error", "status.blocked"})
_NOTHING: Final[Mapping[str, Any]] = {}


def found(
    id: str, read: Read, states: tuple[HandoffStatus, ...], action: str
) -> tuple[Handoff, Task] | Refusal:
    """Find the handoff, which must be in one of these states, and its task."""
    handoff = known(id, read)
    if isinstance(handoff, Refusal):
        return handoff
    if handoff.status not in states:
        return wrong_state(handoff, states, action)
    task = read.task(handoff.task)
    return task if isinstance(task, Refusal) else (handoff, task)


def wrong_state(handoff: Handoff, states: tuple[HandoffStatus, ...], action: str) -> Refusal:
    """Refusal of an action in a state that does not allow it."""
    instead = f", and {handoff.superseded_by} has taken its place" if handoff.superseded_by else ""
    return Refusal(
        "invalid_transition",
        f"{handoff.id} is {handoff.status}{instead}: {action} is for {', '.join(states)}",
    )


def known(id: str, read: Read) -> Handoff | Refusal:
    """Find the handoff with this id for a caller that may act on it.

    A draft exists only for its sender, and a discarded one for nobody.
    """
    refusal = check_write(read.actor) or check_id(id, "handoff id")
    if refusal:
        return refusal
    handoff = read.handoff(id)
    if handoff is None or handoff.is_discarded:
        return missing.handoff(id)
    is_others = handoff.status == "draft" and handoff.sender != read.actor.name
    return missing.handoff(id) if is_others else handoff


def letter(
    read: Read,
    kind: str,
    to: tuple[str, ...],
    handoff: Handoff,
    more: Mapping[str, Any] = _NOTHING,
    *,
    whose: str = "",
) -> tuple[str, MailPosted]:
    """Letter about a handoff, with its id, its package hash and further fields (S-ACP-14).

    Sent in the name of the hub if the caller is not the `speaker`, because somebody else caused it.
    """
    is_own = kind not in _FROM_THE_HUB and whose in ("", read.actor.name)
    ids = (f"{read.cause}.{kind}{f'.{n}' if n else ''}" for n in count())
    id = next(id for id in ids if read.mail(id) is None)
    task = read.task(handoff.task)
    payload = {"handoff_id": handoff.id, "package_hash": handoff.package_hash, **more}
    return mail_stream(id), MailPosted(
        id=id,
        sender=read.actor.name if is_own else HUB,
        to=to,
        thread=handoff.thread,
        kind=kind,
        subject=f"{kind}: {handoff.task}",
        body=msgspec.json.encode(payload).decode(),
        unknown=tuple(name for name in to if read.agent(name) is None),
        bead=handoff.task if isinstance(task, Refusal) else task.in_letters,
    )


def check_sla(ms: int) -> Refusal | None:
    """Check the duration of a stage."""
    return check_duration("the time of a stage", ms, *WAIT_MS)


def decided(id: str, state: HandoffStatus | Literal["discarded"], *events: "AnyEvent") -> Decision:
    """Decision that concerns only the handoff."""
    return noted(handoff_stream(id), state, *events)


def done_already(handoff: Handoff) -> Decision:
    """Accept a repeated command: the current state of its handoff, no events."""
    stream, until = handoff_stream(handoff.id), handoff.deadline or 0
    told = Receipt("", None, stream=stream, state=handoff.status, expires_at=until)
    return Decision(replace(told, seal=handoff.package_hash))


def about(id: str, state: HandoffStatus, task: Task) -> Receipt:
    """Receipt with the state of a handoff and of its task."""
    return replace(receipt(task, task.status), stream=handoff_stream(id), state=state)


def offered_until(handoff: Handoff, task: Task) -> Receipt:
    """Receipt of an offer, with its package hash and its deadline."""
    told = about(handoff.id, handoff.status, task)
    return replace(told, seal=handoff.package_hash, expires_at=handoff.deadline or 0)


def not_yours(handoff: Handoff, actor: Actor, action: str, whose: str) -> Refusal:
    """Refusal of an action that is reserved for others."""
    return Refusal(
        "not_authorized", f"{actor.label} may not {action} {handoff.id}: that is for {whose}"
    )
