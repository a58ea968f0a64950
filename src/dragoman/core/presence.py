"""Presence: what a session of an agent says of itself, working, waiting for a person, or idle.

It is about the program in somebody's terminal, not about a task: a lease says who holds what.
"""

from typing import Final, Literal

from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.authority import MAY_PAUSE, check_write
from dragoman.core.base import Command, Event
from dragoman.core.errors import Refusal
from dragoman.core.ids import agent_stream, check_agent, check_session
from dragoman.core.limits import MAX_REASON, check_text
from dragoman.core.read import Decision, Read, Receipt

PresenceState = Literal["working", "waiting", "idle", "ended"]
"""`waiting`: for the permission or the input of a person."""

MAX_SESSIONS: Final = 20
"""Sessions of an agent that are kept, those that reported last."""

PRESENCE_MS: Final = 86_400_000
"""Time after which what a session has said counts no more: it was killed without a word."""


# --- command and event ------------------------------------------------------------------------


class ReportPresence(Command, frozen=True, tag="agent.presence"):
    """Report what a session of an agent does; the same again is a no-op."""

    free_text = ("text",)

    agent: str
    session: str
    state: PresenceState
    text: str = ""
    """The question, where it waits for an answer."""


class PresenceReported(Event, frozen=True):
    """A session of the agent works, waits for a person, is idle, or has ended."""

    session: str
    state: PresenceState
    text: str = ""


# --- state ------------------------------------------------------------------------------------


class Presence(Struct, frozen=True, omit_defaults=True, gc=False):
    """Presence of one session of an agent."""

    session: str
    state: PresenceState
    since: int
    text: str = ""

    def is_current(self, now: int) -> bool:
        """True while what it says counts."""
        return now < self.since + PRESENCE_MS


Sessions = tuple[Presence, ...]


def find_session(sessions: Sessions, session: str) -> Presence | None:
    """Find a session by its name."""
    return next((one for one in sessions if one.session == session), None)


def with_presence(sessions: Sessions, event: PresenceReported, at: int) -> Sessions:
    """Sessions after an event: one that has ended is gone."""
    others = tuple(one for one in sessions if one.session != event.session)
    if event.state == "ended":
        return others
    return (*others, Presence(event.session, event.state, at, event.text))[-MAX_SESSIONS:]


# --- decide -----------------------------------------------------------------------------------

_RECEIPT: Final = Receipt("", None)


def decide_report_presence(command: ReportPresence, read: Read, now: int) -> Decision | Refusal:
    """Record what a session of a known agent does, as the agent or a person says."""
    refusal = (
        check_agent(command.agent)
        or check_write(read.actor)
        or check_session(command.session, "session")
        or check_text("text", command.text, MAX_REASON)
    )
    if refusal:
        return refusal
    if read.actor.name != command.agent and read.actor.role not in MAY_PAUSE:
        return Refusal(
            "not_authorized", f"{read.actor.label} may not speak of sessions of {command.agent}"
        )
    known = read.agent(command.agent)
    if known is None:
        return not_found.agent(command.agent)
    current = find_session(known.sessions, command.session)
    event = PresenceReported(command.session, command.state, command.text)
    if current is None:
        is_known = command.state == "ended"
    else:
        is_known = current.is_current(now) and (current.state, current.text) == (
            command.state,
            command.text,
        )
    if is_known:
        return Decision(_RECEIPT)
    return Decision(_RECEIPT, ((agent_stream(command.agent), event),))
