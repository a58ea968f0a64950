"""Deciders of a pause: who may have nothing more started for an agent, and who may end that."""

from collections.abc import Collection

from dragoman.core import missing
from dragoman.core.authority import MAY_PAUSE, MAY_RESUME
from dragoman.core.commands import PauseAgent, ResumeAgent
from dragoman.core.errors import Refusal
from dragoman.core.events import AgentPaused, AgentResumed, Role
from dragoman.core.ids import agent_stream, check_agent
from dragoman.core.limits import MAX_REASON, check_range, check_text
from dragoman.core.moments import TIMESTAMP_RANGE
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.agent import AgentRecord

_PAUSE_RECEIPT = Receipt("", None)


def decide_pause_agent(command: PauseAgent, read: Read, now: int) -> Decision | Refusal:
    """Pause an agent: nothing more is started for it. The same pause again is a no-op."""
    del now
    refusal = check_text("reason", command.reason, MAX_REASON, minimum=1) or (
        None if command.until is None else check_range("until", command.until, *TIMESTAMP_RANGE)
    )
    known = refusal or _find_pausable(command.name, MAY_PAUSE, "pause", read)
    if isinstance(known, Refusal):
        return known
    current = known.pause
    if current is not None and (current.reason, current.until) == (command.reason, command.until):
        return Decision(_PAUSE_RECEIPT)
    return _pause_decision(command.name, AgentPaused(command.reason, command.until))


def decide_resume_agent(command: ResumeAgent, read: Read, now: int) -> Decision | Refusal:
    """Resume an agent; no-op for one that is not paused."""
    known = _find_pausable(command.name, MAY_RESUME, "resume", read)
    if isinstance(known, Refusal):
        return known
    if known.active_pause(now) is None:
        return Decision(_PAUSE_RECEIPT)
    return _pause_decision(command.name, AgentResumed())


def _find_pausable(
    name: str, roles: Collection[Role], verb: str, read: Read
) -> AgentRecord | Refusal:
    """Record of an agent that the caller may pause or resume, or a refusal."""
    malformed = check_agent(name)
    if malformed is not None:
        return malformed
    if read.actor.role not in roles:
        return Refusal("not_authorized", f"{read.actor.label} may not {verb} agents")
    return read.agent(name) or missing.agent(name)


def _pause_decision(name: str, event: AgentPaused | AgentResumed) -> Decision:
    return Decision(_PAUSE_RECEIPT, ((agent_stream(name), event),))
