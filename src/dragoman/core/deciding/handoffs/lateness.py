"""A state of a handoff that lasts too long is told, whoever notices it, and when (S-ACP-10)."""

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.core.events import HandoffEscalated, HandoffExtended, HandoffMoved
from dragoman.core.ids import handoff_stream
from dragoman.core.reading import Decision, Read
from dragoman.core.states.handoff import NEXT_STAGE, Handoff

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

LEAVING: "Final[frozenset[type[AnyEvent]]]" = frozenset({HandoffMoved, HandoffExtended})
"""Events that end a stage of a handoff or extend it."""


def lateness(handoff: Handoff, now: int, to: str, recommended: str = "") -> HandoffEscalated:
    """Escalation of a stage that exceeds its SLA; `to` is who is notified, empty: nobody."""
    return HandoffEscalated(
        trigger="timeout",
        stage=NEXT_STAGE[handoff.status],
        to=to,
        sla_ms=handoff.granted_ms,
        elapsed_ms=max(0, now - handoff.entered_at),
        recommended=recommended,
        task=handoff.task,
    )


def with_lateness(decision: Decision, read: Read, now: int) -> Decision:
    """Add an escalation before each event that ends, or extends, a stage that is overdue.

    That happens if no hub was running when the SLA was breached. Nobody is notified, because
    nothing is left to be done about it.
    """
    left = dict.fromkeys(stream for stream, event in decision.events if type(event) in LEAVING)
    handoffs = filter(None, (read.handoff(name.removeprefix(handoff_stream(""))) for name in left))
    late = [
        (handoff_stream(handoff.id), lateness(handoff, now, to=""))
        for handoff in handoffs
        if handoff.is_late(now)
    ]
    return replace(decision, events=(*late, *decision.events)) if late else decision
