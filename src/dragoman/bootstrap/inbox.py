"""The inbox of a data directory: whose words messages are that were put there as files."""

from functools import partial

from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Router
from dragoman.engine.nobodys import explain_unrecognized
from dragoman.engine.plan import Rejected
from dragoman.files.guarding import Warn
from dragoman.files.inbox import Inbox, SendResult
from dragoman.system.beneath import SafeDisk
from dragoman.text.strict_json import MAX_BYTES

INBOX_ROLES: frozenset[Role] = frozenset({"agent", "observer"})
"""Roles that may use the inbox, where a name is the only credential; the settings may trust
everyone who can write there."""


def open_inbox(disk: SafeDisk, router: Router, facts: StoreFacts, warn: Warn) -> Inbox:
    """Open the inbox; its messages go to this router."""
    return Inbox(disk, partial(_submit_inbox_message, router, facts), MAX_BYTES, warn)


def _submit_inbox_message(
    router: Router, facts: StoreFacts, message: bytes, agent: str | None
) -> SendResult:
    """Submit a message of the inbox: as the agent whose folder it lay in, or as the one that it
    names.
    """
    speaker = None if agent is None else facts.resolve_actor(agent, "inbox")
    answer = router.send(message, speaker=speaker, via="inbox")
    if answer is None:
        fault = explain_unrecognized(message, router.dialects)
        return Refusal(fault.code, fault.detail)
    if isinstance(answer, Rejected):
        return Refusal(answer.code, answer.detail)
    return answer.warnings
