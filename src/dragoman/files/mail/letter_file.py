"""A letter as a file that people read: what is known of it, then its text, in which nothing acts.

Nobody reads such a file back, so what could act is written in another way and stays that way.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.moments import to_rfc3339
from dragoman.core.states.letter import Mail
from dragoman.files.escapes import encode_references, escape_markup
from dragoman.files.tasks.front_matter import FENCE, Value, format_fields

_FENCE_LINE: Final = re.compile(r"^(?=(?:---|\.\.\.)[ \t]*$)", re.MULTILINE)
"""Line that a front matter parser would take for a fence."""


def format_letter(mail: Mail, number: int) -> bytes:
    """Format the n-th letter of its thread."""
    head = format_fields(_front_matter(mail, number))
    return f"{FENCE}\n{head}{FENCE}\n\n{_escape_body(mail)}\n".encode()


def _front_matter(mail: Mail, number: int) -> Mapping[str, Value | bool | int]:
    fields: dict[str, Any] = {
        "id": mail.id,
        "number": number,
        "thread": mail.thread,
        "type": mail.kind,
        "bead": mail.bead,
        "from": mail.sender,
        "to": mail.to,
        "cc": mail.cc,
        "copied": mail.copied,
        "subject": mail.subject,
        "timestamp": to_rfc3339(mail.posted_at),
        "sentAt": "" if mail.sent_at is None else to_rfc3339(mail.sent_at),
        "importance": mail.importance,
        "replyTo": mail.reply_to,
        "attachments": mail.attachments,
        "ackRequired": mail.ack_wanted,
        "dueBy": "" if mail.due_by is None else to_rfc3339(mail.due_by),
        "readBy": mail.read_by,
        "ackedBy": mail.acked_by,
        "waitsFor": mail.awaited_acks,
        "answer": mail.answer,
        "overdue": mail.is_overdue or "",
    }
    return {key: value for key, value in fields.items() if value not in ("", ())}


def _escape_body(mail: Mail) -> str:
    text = encode_references(mail.body.replace("\r\n", "\n"))
    return _FENCE_LINE.sub(r"\\", escape_markup(text))
