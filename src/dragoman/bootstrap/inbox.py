"""The inbox of a data directory: whose words messages are that were put there as files."""

from functools import partial

from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.nobodys import why_nobodys
from dragoman.engine.plan import Turned
from dragoman.files.guarding import Warn
from dragoman.files.inbox import Answer, Inbox
from dragoman.system.beneath import Beneath
from dragoman.text.strict_json import MOST_BYTES

BY_INBOX: frozenset[Role] = frozenset({"agent", "observer"})
"""Roles that may use the inbox, where a name is the only credential; the settings may trust
everyone who can write there."""


def open_inbox(disk: Beneath, interpreter: Interpreter, facts: StoreFacts, warn: Warn) -> Inbox:
    """Open the inbox; its messages go to this router."""
    return Inbox(disk, partial(_deliver, interpreter, facts), MOST_BYTES, warn)


def _deliver(interpreter: Interpreter, facts: StoreFacts, said: bytes, agent: str | None) -> Answer:
    """Submit a message of the inbox: as the agent whose folder it lay in, or as the one that it
    names.
    """
    speaker = None if agent is None else facts.speaker(agent, "inbox")
    answer = interpreter.send(said, speaker=speaker, via="inbox")
    if answer is None:
        fault = why_nobodys(said, interpreter.dialects)
        return Refusal(fault.code, fault.detail)
    if isinstance(answer, Turned):
        return Refusal(answer.code, answer.detail)
    return answer.warnings
