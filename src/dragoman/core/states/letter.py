"""A letter between agents: who has it, who has read it, and what it still waits for (S-MAIL-7)."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    Importance,
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailEvent,
    MailPosted,
    MailRead,
)
from dragoman.core.ids import bare_name


class Mail(Struct, frozen=True, omit_defaults=True):
    """State of a letter, folded from the stream `mail:ID`."""

    id: str
    sender: str
    to: tuple[str, ...]
    thread: str
    kind: str
    subject: str
    body: str
    posted_at: int
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_by: int | None = None
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None
    read_by: tuple[str, ...] = ()
    acked_by: tuple[str, ...] = ()
    answer: str = ""
    """Id of the answering letter."""
    is_escalated: bool = False

    @property
    def recipients(self) -> tuple[str, ...]:
        """All recipients, each once."""
        return tuple(dict.fromkeys((*self.to, *self.cc, *self.copied)))

    @property
    def awaited_acks(self) -> tuple[str, ...]:
        """Primary recipients whose wanted ack is missing.

        An answer, whoever gave it, ends the wait for all of them.
        """
        if not self.ack_wanted or self.answer:
            return ()
        return tuple(name for name in dict.fromkeys(self.to) if name not in self.acked_by)

    @property
    def awaits_answer(self) -> bool:
        """True if an answer is wanted and has not come."""
        return self.answer_wanted and not self.answer

    @property
    def deadline(self) -> int | None:
        """When a missing ack or answer has to be reported; None: never, or it was."""
        is_waiting = not self.is_escalated and (self.awaits_answer or bool(self.awaited_acks))
        return self.due_by if is_waiting else None

    @property
    def is_overdue(self) -> bool:
        """True if it was reported as late, and the ack or answer has still not come."""
        return self.is_escalated and (self.awaits_answer or bool(self.awaited_acks))

    def is_late(self, now: int) -> bool:
        """True if an ack or answer is late by now, reported or not."""
        return self.is_overdue or (self.deadline is not None and self.deadline <= now)

    def is_recipient(self, name: str) -> bool:
        """True if it is in this agent's inbox."""
        return name in self.to or name in self.cc or name in self.copied


def mail_list_keys(mail: Mail) -> tuple[str, ...]:
    """Keys of the lists it stands on: inboxes, its thread, what is open, and its bead where the
    thread is not the bead's (S-MAIL-8).
    """
    recipients = mail.recipients
    lists = [f"thread:{mail.thread}", f"from:{mail.sender}"]
    if mail.bead and bare_name(mail.bead) != mail.thread:
        lists.append(f"bead:{bare_name(mail.bead)}")
    lists += [f"in:{name}" for name in recipients]
    lists += [f"unread:{name}" for name in recipients if name not in mail.read_by]
    lists += [f"pending:{name}" for name in mail.awaited_acks]
    if mail.bead not in ("", mail.thread):
        lists.append(f"elsewhere:{mail.bead}")
    if mail.awaits_answer:
        lists += [f"open:{mail.thread}", *(f"asked:{name}" for name in recipients)]
        if mail.bead:
            lists.append(f"about:{mail.bead}")
    if mail.is_overdue:
        lists.append("overdue")
    if any(name not in mail.read_by for name in mail.unknown):
        lists.append("waiting")
    return tuple(lists)


def _fold_posted(_: None, event: MailPosted, at: int) -> Mail:
    return Mail(
        event.id,
        event.sender,
        event.to,
        event.thread,
        event.kind,
        event.subject,
        event.body,
        at,
        event.cc,
        event.copied,
        event.unknown,
        event.bead,
        event.reply_to,
        event.importance,
        event.ack_wanted,
        event.answer_wanted,
        event.due_by,
        event.attachments,
        event.sent_at,
    )


def _fold_read(mail: Mail, event: MailRead, at: int) -> Mail:
    del at
    return replace(mail, read_by=(*mail.read_by, event.reader))


def _fold_acked(mail: Mail, event: MailAcked, at: int) -> Mail:
    del at
    return _with_ack(mail, event.agent)


def _fold_answered(mail: Mail, event: MailAnswered, at: int) -> Mail:
    """An answer is also the ack of its author, if that is a recipient."""
    del at
    answered = replace(mail, answer=event.answer)
    return _with_ack(answered, event.by) if mail.is_recipient(event.by) else answered


def _with_ack(mail: Mail, name: str) -> Mail:
    """Mark as acknowledged, and hence as read."""
    acked_by = tuple(dict.fromkeys((*mail.acked_by, name)))
    return replace(mail, acked_by=acked_by, read_by=tuple(dict.fromkeys((*mail.read_by, name))))


def _fold_escalated(mail: Mail, _: MailEscalated, at: int) -> Mail:
    del at
    return replace(mail, is_escalated=True)


MAIL_FOLDS: dict[type[MailEvent], Callable[[Any, Any, int], Mail]] = {
    MailPosted: _fold_posted,
    MailRead: _fold_read,
    MailAcked: _fold_acked,
    MailAnswered: _fold_answered,
    MailEscalated: _fold_escalated,
}
"""Event -> fold: the letter after it, from the letter before it (None at first) and its time."""
