"""Letters as Markdown files, named by their ledger positions, rewritten when one is read or acked.

Letter files are never parsed, so markup in them is escaped for good.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from dragoman.core.ids import mail_stream
from dragoman.core.mail import Mail
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store, StreamRow
from dragoman.engine.queries.entries import stream_state
from dragoman.files.atomic_write import stage_if_changed
from dragoman.files.errors import ErrorIsolator
from dragoman.files.layout import (
    MAIL,
    letter_path,
    letter_position,
    staged_path,
    thread_folder_path,
)
from dragoman.files.markdown import FENCE, Value, encode_references, escape_markup, format_fields
from dragoman.system.safe_fs import SafeDisk

# --- format -----------------------------------------------------------------------------------

_FENCE_LINE: Final = re.compile(r"^(?=(?:---|\.\.\.)[ \t]*$)", re.MULTILINE)
"""Line that a front matter parser would take for a fence."""


def format_letter(mail: Mail, position: int) -> bytes:
    """Format the letter at a position of the ledger."""
    head = format_fields(_front_matter(mail, position))
    return f"{FENCE}\n{head}{FENCE}\n\n{_escape_body(mail)}\n".encode()


def _front_matter(mail: Mail, position: int) -> Mapping[str, Value | bool | int]:
    fields: dict[str, Any] = {
        "id": mail.id,
        "position": position,
        "thread": mail.thread,
        "type": mail.kind,
        "bead": mail.bead,
        "from": mail.sender,
        "to": mail.to,
        "cc": mail.cc,
        "copied": mail.auto_copied,
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


# --- projection -------------------------------------------------------------------------------

_BATCH: Final = 64


def mail_of_row(store: Store, row: StreamRow) -> Mail | None:
    """Letter in a row; None when the row holds something else."""
    state = stream_state(store, row)
    return state if isinstance(state, Mail) else None


def render_letter(store: Store, row: StreamRow) -> tuple[Mail, str, bytes] | None:
    """Letter in a row, with the path and content of its file; None when the row holds none."""
    mail, first = mail_of_row(store, row), store.history(row.name, 0, 1)
    if mail is None or not first:
        return None
    position = first[0].position
    return mail, letter_path(mail.thread, position, mail.kind), format_letter(mail, position)


def find_foreign_letters(store: Store, disk: SafeDisk) -> Iterator[str]:
    """Paths of letter files that show no letter of the ledger."""
    for folder in disk.list(MAIL):
        for info in disk.list(thread_folder_path(folder.name)) if folder.kind == "folder" else ():
            path = f"{thread_folder_path(folder.name)}/{info.name}"
            position = letter_position(info.name)
            if position and not _is_letter_at(store, position, path):
                yield path


def _is_letter_at(store: Store, position: int, path: str) -> bool:
    """True when the entry at this position posted the letter whose file has this path."""
    (posted,) = store.entries(position - 1, 1) or (None,)
    row = None if posted is None or posted.version != 1 else store.stream(posted.stream)
    mail = None if row is None else mail_of_row(store, row)
    return mail is not None and letter_path(mail.thread, position, mail.kind) == path


class MailProjector:
    """Projects letters to files."""

    def __init__(self, store: Store, disk: SafeDisk, isolator: ErrorIsolator) -> None:
        self._store = store
        self._disk = disk
        self._isolator = isolator

    def project(self, streams: Iterable[str]) -> None:
        """Project those of the streams that are letters."""
        letters = iter(dict.fromkeys(s for s in streams if s.startswith(mail_stream(""))))
        while batch := list(islice(letters, _BATCH)):
            # Contents are staged beside the files until all of them are durable, then published.
            staged = {stream: self._isolated(self._stage, stream, stream) for stream in batch}
            for stream, path in staged.items():
                if path:
                    self._isolated(self._publish, path, stream)

    def _isolated(self, work: Callable[[str], str], subject: str, stream: str) -> str | None:
        return self._isolator.run(partial(work, subject), stream, "a letter")

    def _stage(self, stream: str) -> str:
        """Stage the content of a letter, if its file differs; the path of that, or nothing."""
        row = self._store.stream(stream)
        shown = None if row is None else render_letter(self._store, row)
        if shown is None:
            return ""
        mail, path, data = shown
        return path if stage_if_changed(self._disk, path, data, mail.posted_at) else ""

    def _publish(self, path: str) -> str:
        self._disk.replace(staged_path(path), path)
        return path


def has_changed_since(store: Store, row: StreamRow, position: int) -> bool:
    """True when this stream has entries after a position."""
    last = store.history(row.name, row.version - 1, 1)
    return bool(last) and last[0].position > position
