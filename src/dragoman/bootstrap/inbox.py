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
"""Roles that may speak through the inbox, where a name is all that there is, unless the settings
trust whoever can write there."""


def open_inbox(disk: Beneath, interpreter: Interpreter, facts: StoreFacts, warn: Warn) -> Inbox:
    """The inbox, whose messages go to this interpreter."""
    return Inbox(disk, partial(_deliver, interpreter, facts), MOST_BYTES, warn)


def _deliver(interpreter: Interpreter, facts: StoreFacts, said: bytes, agent: str | None) -> Answer:
    """A message from the inbox: as the agent whose folder it lay in, or as whom it names."""
    speaker = None if agent is None else facts.speaker(agent, "inbox")
    answer = interpreter.send(said, speaker=speaker, via="inbox")
    if answer is None:
        fault = why_nobodys(said, interpreter.dialects)
        return Refusal(fault.code, fault.detail)
    if isinstance(answer, Turned):
        return Refusal(answer.code, answer.detail)
    return answer.warnings
