"""Agent Mail: structured letters between agents; parse, compose and filter them.

>>> parser = Parser()
>>> message = parser.parse({"subject": "[ol-1] DONE", "body_md": "Status: DONE"})
>>> message.type, message.bead_id
(<MessageType.DONE: 'DONE'>, 'ol-1')
"""

from dragoman.protocols.agentmail import compose
from dragoman.protocols.agentmail.compose import Draft, Rendered
from dragoman.protocols.agentmail.errors import MailError
from dragoman.protocols.agentmail.operations import dialect
from dragoman.protocols.agentmail.parse import Parser
from dragoman.protocols.agentmail.queries import (
    filter_by_bead_id,
    filter_by_sender,
    filter_by_thread_id,
    filter_by_type,
    filter_completions,
    filter_pending,
    filter_successes,
    filter_unread,
    passes_checks,
)
from dragoman.protocols.agentmail.settings import Choices
from dragoman.protocols.agentmail.wire import Message, MessageType, Parsed, Problem

__all__ = [
    "Choices",
    "Draft",
    "MailError",
    "Message",
    "MessageType",
    "Parsed",
    "Parser",
    "Problem",
    "Rendered",
    "compose",
    "dialect",
    "filter_by_bead_id",
    "filter_by_sender",
    "filter_by_thread_id",
    "filter_by_type",
    "filter_completions",
    "filter_pending",
    "filter_successes",
    "filter_unread",
    "passes_checks",
]
