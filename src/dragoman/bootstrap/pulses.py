"""Lines that started agents print, as events of their tasks' traces."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.core.actors import Actor
from dragoman.engine.hub import Hub
from dragoman.protocols import saop
from dragoman.system.ids import new_id

if TYPE_CHECKING:
    from dragoman.agents.output import Pulse
    from dragoman.engine.runner import Assignment

_VIA = "runner"


def record_output_lines(
    hub: Hub,
) -> "Callable[[Assignment, Sequence[Pulse]], Awaitable[object]]":
    """Recorder of an attempt's output lines, all or none, in the name of its agent."""

    async def record(assignment: "Assignment", pulses: "Sequence[Pulse]") -> None:
        actor = Actor("agent", assignment.agent, _VIA, assignment.task, assignment.fence)
        events = (saop.SandboxPulse(one.line, one.masked, one.timestamp) for one in pulses)
        commands = (
            saop.pulse_command(new_id(), assignment.session, one, hub.content_key) for one in events
        )
        await hub.submit_async(actor, *commands)

    return record
