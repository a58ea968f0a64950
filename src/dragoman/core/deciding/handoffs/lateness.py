"""A state of a handoff that lasts too long is told, whoever notices it, and when (S-ACP-10)."""

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.core.events import HandoffEscalated, HandoffExtended, HandoffTransitioned
from dragoman.core.ids import handoff_stream
from dragoman.core.reading import Decision, Read
from dragoman.core.states.handoff import STAGE_LABELS, Handoff

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

STAGE_ENDING_EVENTS: "Final[frozenset[type[AnyEvent]]]" = frozenset(
    {HandoffTransitioned, HandoffExtended}
)
"""Events that end a stage of a handoff or extend it."""


def sla_breach(handoff: Handoff, now: int, to: str, recommended: str = "") -> HandoffEscalated:
    """Escalation of a stage that exceeds its SLA; `to` is who is notified, empty: nobody."""
    return HandoffEscalated(
        trigger="timeout",
        stage=STAGE_LABELS[handoff.status],
        to=to,
        sla_ms=handoff.extended_sla_ms,
        elapsed_ms=max(0, now - handoff.entered_at),
        recommended=recommended,
        task=handoff.task,
    )


def record_sla_breaches(decision: Decision, read: Read, now: int) -> Decision:
    """Add an escalation before each event that ends, or extends, a stage that is overdue.

    That happens if no hub was running when the SLA was breached. Nobody is notified, because
    nothing is left to be done about it.
    """
    streams = dict.fromkeys(
        stream for stream, event in decision.events if type(event) in STAGE_ENDING_EVENTS
    )
    handoffs = filter(
        None, (read.handoff(name.removeprefix(handoff_stream(""))) for name in streams)
    )
    breaches = [
        (handoff_stream(handoff.id), sla_breach(handoff, now, to=""))
        for handoff in handoffs
        if handoff.is_overdue(now)
    ]
    return replace(decision, events=(*breaches, *decision.events)) if breaches else decision
