"""A letter as its readers get it: the row of a message, with what it means and who has seen it."""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dragoman.core.deciding.mail.mailing import LATE_KIND
from dragoman.core.deciding.mail.waving import WAVE_COMPLETE_KIND
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.letter import Mail
from dragoman.engine.reads.mailbox import Letter
from dragoman.protocols.agentmail.parse import Parser
from dragoman.protocols.agentmail.shapes import Message, Parsed
from dragoman.protocols.agentmail.wire import ShownLetter
from dragoman.protocols.agentmail.words import MESSAGE_TYPES, MessageType

LETTER_KINDS: Final = (*MessageType, LATE_KIND, WAVE_COMPLETE_KIND)
"""Every kind of letter: the types, UNKNOWN, and the hub's own kinds."""

_MESSAGE_TYPES: Final = frozenset(MessageType)
_parser = Parser()


def format_letter(letter: Letter, reader: str, now: int) -> ShownLetter:
    """Format a letter for one reader, with that reader's read and ack state."""
    mail, message = letter.mail, to_message(letter.mail, reader)
    return {
        **msgspec.to_builtins(message),
        **({"kind": mail.kind} if mail.kind not in ("", message.type) else {}),
        "parsed": _stated_fields(message.parsed),
        "bead_id": mail.bead,
        "position": letter.position,
        "copied": mail.copied,
        "reply_to": mail.reply_to,
        "attachments": mail.attachments,
        "acked_by": mail.acked_by,
        "read_by": mail.read_by,
        "waits_for": mail.awaited_acks,
        "answer": mail.answer,
        "overdue": mail.is_late(now),
        **({"sent_at": to_rfc3339(mail.sent_at)} if mail.sent_at is not None else {}),
    }


def _stated_fields(parsed: Parsed) -> dict[str, Any]:
    """Fields of the body that have a value."""
    fields: dict[str, Any] = msgspec.to_builtins(parsed)
    return {name: value for name, value in fields.items() if value not in (None, "", [], ())}


def to_message(mail: Mail, reader: str = "") -> Message:
    """Convert a stored letter to the message that the parser, filters and summaries use.

    It keeps the type and the bead as which it was delivered. `acknowledged` is the reader's own
    state if the letter wants the reader's ack, and the state of all recipients for everybody else.
    """
    message = _parser.parse(
        {
            "id": mail.id,
            "from": mail.sender,
            "to": list(mail.to),
            "cc": list(mail.cc),
            "subject": mail.subject,
            "body_md": mail.body,
            "thread_id": mail.thread,
            "timestamp": to_rfc3339(mail.posted_at),
            "importance": mail.importance,
            "ack_required": mail.ack_wanted,
            "acknowledged": _is_acknowledged(mail, reader),
            "read": reader in mail.read_by,
        },
        message_type(mail),
    )
    if not is_typed(mail):
        # It was not meant to be of a type, so an untyped subject is no problem.
        message = replace(message, problems=())
    if mail.bead in ("", message.bead_id):
        return message
    return replace(message, parsed=replace(message.parsed, bead_id=mail.bead))


def message_type(mail: Mail) -> MessageType:
    """Message type of a letter; UNKNOWN for the hub's own kinds."""
    return MESSAGE_TYPES.get(mail.kind, MessageType.UNKNOWN)


def is_typed(mail: Mail) -> bool:
    """Tell whether a letter was delivered as one of this dialect; the hub's own were not."""
    return mail.kind in _MESSAGE_TYPES


def _is_acknowledged(mail: Mail, reader: str) -> bool:
    """Tell whether the reader's ack, or everybody's, is settled; an answer settles it too."""
    if reader and not mail.ack_wanted:
        return reader in mail.acked_by
    if reader in mail.to:
        return reader not in mail.awaited_acks
    return reader in mail.acked_by or not mail.awaited_acks
