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


def tell_pulses(
    hub: Hub,
) -> "Callable[[Assignment, Sequence[Pulse]], Awaitable[object]]":
    """Recorder of an attempt's output lines, all or none, in the name of its agent."""

    async def tell(of: "Assignment", pulses: "Sequence[Pulse]") -> None:
        actor = Actor("agent", of.agent, _VIA, of.task, of.fence)
        said = (saop.SandboxPulse(one.line, one.masked, one.timestamp) for one in pulses)
        commands = (saop.pulse_command(new_id(), of.session, one, hub.content_key) for one in said)
        await hub.do_soon(actor, *commands)

    return tell
