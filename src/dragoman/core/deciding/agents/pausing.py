"""Deciders of a pause: who may have nothing more started for an agent, and who may end that."""

from collections.abc import Collection

from dragoman.core import missing
from dragoman.core.authority import MAY_PAUSE, MAY_RESUME
from dragoman.core.commands import PauseAgent, ResumeAgent
from dragoman.core.errors import Refusal
from dragoman.core.events import AgentPaused, AgentResumed, Role
from dragoman.core.ids import agent_stream, check_agent
from dragoman.core.limits import REASON, check_range, check_text
from dragoman.core.moments import SPAN
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.agent import AgentRecord

_ABOUT_NO_TASK = Receipt("", None)


def pause(command: PauseAgent, read: Read, now: int) -> Decision | Refusal:
    """Pause an agent: nothing more is started for it. The same pause again is a no-op."""
    del now
    refusal = check_text("reason", command.reason, REASON, least=1) or (
        None if command.until is None else check_range("until", command.until, *SPAN)
    )
    known = refusal or _known(command.name, MAY_PAUSE, "pause", read)
    if isinstance(known, Refusal):
        return known
    said = known.pause
    if said is not None and (said.reason, said.until) == (command.reason, command.until):
        return Decision(_ABOUT_NO_TASK)
    return _about(command.name, AgentPaused(command.reason, command.until))


def resume(command: ResumeAgent, read: Read, now: int) -> Decision | Refusal:
    """Resume an agent; no-op for one that is not paused."""
    known = _known(command.name, MAY_RESUME, "resume", read)
    if isinstance(known, Refusal):
        return known
    if known.paused(now) is None:
        return Decision(_ABOUT_NO_TASK)
    return _about(command.name, AgentResumed())


def _known(name: str, roles: Collection[Role], what: str, read: Read) -> AgentRecord | Refusal:
    """Record of an agent that the caller may pause or resume, or a refusal."""
    malformed = check_agent(name)
    if malformed is not None:
        return malformed
    if read.actor.role not in roles:
        return Refusal("not_authorized", f"{read.actor.label} may not {what} agents")
    return read.agent(name) or missing.agent(name)


def _about(name: str, event: AgentPaused | AgentResumed) -> Decision:
    return Decision(_ABOUT_NO_TASK, ((agent_stream(name), event),))
