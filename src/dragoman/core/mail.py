"""Letters between agents: post, read, acknowledge, answer, escalate (S-MAIL-7)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import asdict, replace

from dragoman.core import limits, not_found
from dragoman.core.authority import MAY_DISPATCH, check_write
from dragoman.core.base import ATTENTION_LIST, Command, Event, Importance, Role
from dragoman.core.errors import Refusal
from dragoman.core.ids import (
    bare_name,
    check_agent,
    check_id,
    is_task_name,
    mail_stream,
    quote_name,
)
from dragoman.core.read import Decision, Read, Receipt
from dragoman.core.task_state import Task
from dragoman.core.timestamps import TIMESTAMP_RANGE, clamp_timestamp

# --- commands ---------------------------------------------------------------------------------


class PostMail(Command, frozen=True, tag="mail.post"):
    """Post a letter of the caller's own; a missing id or thread is assigned."""

    free_text = ("subject", "body", "attachments")

    to: tuple[str, ...]
    subject: str
    body: str
    kind: str = ""
    """Type of the letter in its dialect."""
    id: str = ""
    thread: str = ""
    cc: tuple[str, ...] = ()
    auto_copied: tuple[str, ...] = ()
    """Recipients added because of the type of the letter."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_in_ms: int = 0
    """Time after which a missing ack or answer is reported as late; 0: never."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None
    served: tuple[str, ...] = ()
    """Recipients for which the hub answers where nobody is known as them."""

    @property
    def heartbeat_task(self) -> str:
        """Its bead, or the task of its thread: writing about it shows that the holder is alive."""
        return self.bead or self.thread


class ReadMail(Command, frozen=True, tag="mail.read"):
    """Mark a letter in the caller's inbox as read."""

    mail: str


class AckMail(Command, frozen=True, tag="mail.ack"):
    """Acknowledge a letter in the caller's inbox."""

    mail: str


class AnswerMail(Command, frozen=True, tag="mail.answer"):
    """Mark a letter as answered by the letter that this request posts."""

    free_text = ("text",)

    mail: str
    answer: str = ""
    """Id of the answer, if it has one of its own."""
    roles: tuple[Role, ...] = ()
    """Roles that may answer though the letter is not in their inbox."""
    text: str = ""
    """Text of the answer, for the question of the task that the letter asks."""


class EscalateMail(Command, frozen=True, tag="mail.escalate"):
    """Record that an ack or an answer is late; no-op while it is not."""

    mail: str
    notify: tuple[str, ...] = ()
    """Recipients of the notice about it."""


# --- events -----------------------------------------------------------------------------------


class MailPosted(Event, frozen=True):
    """A letter was posted; it is in the inbox of every recipient from now on."""

    id: str
    sender: str
    to: tuple[str, ...]
    thread: str
    kind: str
    subject: str
    body: str
    cc: tuple[str, ...] = ()
    auto_copied: tuple[str, ...] = ()
    """Recipients added because of the type of the letter, not by its sender."""
    unknown: tuple[str, ...] = ()
    """Recipients that are not registered."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_by: int | None = None
    """Time at which a missing ack or answer is reported as late."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None
    """Time of writing, as its sender states."""


class MailRead(Event, frozen=True):
    """A recipient has read the letter."""

    mail: str
    reader: str


class MailAcked(Event, frozen=True):
    """A recipient has acknowledged the letter."""

    mail: str
    agent: str


class MailAnswered(Event, frozen=True):
    """Another letter is the answer that this one waited for."""

    mail: str
    by: str
    answer: str


class MailEscalated(Event, frozen=True):
    """An ack or an answer did not come in time."""

    mail: str
    waiting_for: tuple[str, ...]
    notified: tuple[str, ...] = ()
    """Recipients of a notice about it."""
    task: str = ""
    """The task that it is about, if there is one."""
    only_answer: bool = False
    """No ack is missing: an answer is awaited."""


# --- state ------------------------------------------------------------------------------------


class Mail(MailPosted, frozen=True):
    """State of a letter, folded from the stream `mail:ID`."""

    posted_at: int = 0
    read_by: tuple[str, ...] = ()
    acked_by: tuple[str, ...] = ()
    answer: str = ""
    """Id of the answering letter."""
    is_escalated: bool = False

    @property
    def recipients(self) -> tuple[str, ...]:
        """All recipients, each once."""
        return tuple(dict.fromkeys((*self.to, *self.cc, *self.auto_copied)))

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
        """Time at which a missing ack or answer is due for a report; None: never, or it was."""
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
        return name in self.to or name in self.cc or name in self.auto_copied


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
    if mail.awaits_answer or mail.is_overdue:
        lists.append(ATTENTION_LIST)
    if any(name not in mail.read_by for name in mail.unknown):
        lists.append("waiting")
    return tuple(lists)


# --- fold -------------------------------------------------------------------------------------


def _fold_posted(_: None, event: MailPosted, at: int) -> Mail:
    return Mail(posted_at=at, **asdict(event))


def _fold_read(mail: Mail, event: MailRead, _: int) -> Mail:
    return replace(mail, read_by=(*mail.read_by, event.reader))


def _fold_acked(mail: Mail, event: MailAcked, _: int) -> Mail:
    return _with_ack(mail, event.agent)


def _fold_answered(mail: Mail, event: MailAnswered, _: int) -> Mail:
    """An answer is also the ack of its author, if that is a recipient."""
    answered = replace(mail, answer=event.answer)
    return _with_ack(answered, event.by) if mail.is_recipient(event.by) else answered


def _with_ack(mail: Mail, name: str) -> Mail:
    """Mark as acknowledged, and hence as read."""
    acked_by = tuple(dict.fromkeys((*mail.acked_by, name)))
    return replace(mail, acked_by=acked_by, read_by=tuple(dict.fromkeys((*mail.read_by, name))))


def _fold_escalated(mail: Mail, _: MailEscalated, __: int) -> Mail:
    return replace(mail, is_escalated=True)


MAIL_FOLDS: dict[type[Event], Callable[[Any, Any, int], Mail]] = {
    MailPosted: _fold_posted,
    MailRead: _fold_read,
    MailAcked: _fold_acked,
    MailAnswered: _fold_answered,
    MailEscalated: _fold_escalated,
}
"""Event -> fold: the letter after it, from the letter before it (None at first) and its time."""

_MAX_KIND_LENGTH = 64

_AUTHORED_FIELDS = ("kind", "subject", "body", "bead", "reply_to", "importance", "attachments")
"""Fields that two letters under one id must share to be the same; not the time of sending."""

HELP_REQUEST_KIND = "HELP_REQUEST"
"""Type of the letter that asks a question."""

HELP_RESPONSE_KIND = "HELP_RESPONSE"
"""Type of the letter that answers a question."""

LATE_KIND = "LATE"
"""Type of the letter by which the hub reports that another is late."""


def decide_post_mail(command: PostMail, read: Read, now: int) -> Decision | Refusal:
    """Post a letter to the inboxes of its recipients, known or not; a repeat posts no other."""
    refusal = check_write(read.actor) or next(filter(None, _iter_post_faults(command)), None)
    if refusal:
        return refusal
    known = read.mail(command.id) if command.id else None
    if known is not None and known.sender == read.actor.name:
        return _repeated_post(command, known)
    # Two senders may use the same id: the second letter gets one of ours.
    id = read.cause if known else command.id or read.cause
    if id == read.cause and read.mail(id) is not None:
        return Refusal(
            "already_exists", "a request may post one letter without an id; give the others an id"
        )
    replied = read.mail(command.reply_to) if command.reply_to else None
    if command.reply_to and replied is None:
        return not_found.letter(command.reply_to)
    to, cc = _distinct(command.to), _distinct(command.cc, excluded=command.to)
    copied = _distinct(command.auto_copied, excluded=(*to, *cc, read.actor.name))
    everyone = (*to, *cc, *copied)
    event = MailPosted(
        id=id,
        sender=read.actor.name,
        to=to,
        thread=command.thread
        or (replied.thread if replied else "")
        or bare_name(command.bead)
        or id,
        kind=command.kind,
        subject=command.subject,
        body=command.body,
        cc=cc,
        auto_copied=copied,
        unknown=tuple(name for name in everyone if read.agent(name) is None),
        bead=command.bead,
        reply_to=command.reply_to,
        importance=command.importance,
        ack_wanted=command.ack_wanted,
        answer_wanted=command.answer_wanted,
        due_by=clamp_timestamp(now + command.due_in_ms) if command.due_in_ms else None,
        attachments=command.attachments,
        sent_at=command.sent_at,
    )
    decision = _receipt_decision(id, event.thread, event)
    named = (name for name in (*to, *cc) if name not in command.served)
    warning = _unknown_recipients_warning(named, read)
    posted = replace(decision, receipt=replace(decision.receipt, warning=warning))
    return check_id(event.thread, "thread") or posted


def _unknown_recipients_warning(recipients: Iterable[str], read: Read) -> str:
    """Warning about recipients that nobody is known as; empty: there are none."""
    unknown = [quote_name(name) for name in recipients if not read.is_known(name)]
    if not unknown:
        return ""
    return f"nobody is known as {', '.join(unknown)}: the letter waits until somebody is"


def _repeated_post(command: PostMail, known: Mail) -> Decision | Refusal:
    """Answer a post under an id that its sender has used: the same letter, or a refusal.

    Compared is what its sender wrote. Further recipients, and the thread where none is named, were
    derived when it first came and may differ now; so may the wanted ack, as far as that is no more
    than was asked for then.
    """
    to = _distinct(command.to)
    is_same = (
        (to, _distinct(command.cc, excluded=to)) == (known.to, known.cc)
        and command.thread in ("", known.thread)
        and (known.ack_wanted or not command.ack_wanted)
        and all(getattr(command, field) == getattr(known, field) for field in _AUTHORED_FIELDS)
    )
    if is_same:
        decision = _mail_decision(known)
        return replace(decision, receipt=replace(decision.receipt, is_repeat=True))
    return Refusal(
        "already_exists",
        f"there is another letter {known.id} of yours already; give this one another id",
        path="id",
    )


def decide_read_mail(command: ReadMail, read: Read, _: int) -> Decision | Refusal:
    """Mark a letter as read by a recipient; a second time is a no-op."""
    mail = _find_in_inbox(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    name = read.actor.name
    return (
        _mail_decision(mail)
        if name in mail.read_by
        else _mail_decision(mail, MailRead(mail.id, name))
    )


def decide_ack_mail(command: AckMail, read: Read, _: int) -> Decision | Refusal:
    """Acknowledge a letter as a recipient; a second time is a no-op."""
    mail = _find_in_inbox(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    name = read.actor.name
    return (
        _mail_decision(mail)
        if name in mail.acked_by
        else _mail_decision(mail, MailAcked(mail.id, name))
    )


def decide_answer_mail(command: AnswerMail, read: Read, _: int) -> Decision | Refusal:
    """Mark a letter as answered by the letter of this request; the first answer counts.

    Its recipients may answer, and the roles that the command names.
    """
    mail = _find_mail(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    refusal = check_write(read.actor)
    if refusal:
        return refusal
    too_long = limits.check_text("text", command.text, limits.MAX_REASON)
    if too_long:
        return too_long
    if not mail.awaits_answer:
        return _mail_decision(mail)
    if not mail.is_recipient(read.actor.name) and read.actor.role not in command.roles:
        return Refusal(
            "not_authorized",
            f"{mail.id} was not sent to {read.actor.label}: its answer comes from "
            f"{', '.join(mail.recipients)[:200]}",
        )
    answer_id = own_letter_id(command.answer, read)
    return _mail_decision(mail, MailAnswered(mail.id, read.actor.name, answer_id))


def own_letter_id(named: str, read: Read) -> str:
    """Id of this request's letter: its own, unless another sender had used that."""
    known = read.mail(named) if named else None
    is_another = known is not None and known.sender != read.actor.name
    return read.cause if is_another else named or read.cause


def decide_escalate_mail(command: EscalateMail, read: Read, now: int) -> Decision | Refusal:
    """Record once that an ack or answer is late, and notify those who can see to it.

    They get a letter of its own: one that was copied to them would stand where it was posted,
    before what its readers have read already.
    """
    mail = _find_mail(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not escalate letters")
    deadline = mail.deadline
    if deadline is None or now < deadline:
        return _mail_decision(mail)
    task = read.task(mail.bead) if mail.bead else None
    about = task.id if isinstance(task, Task) else ""
    recipients = _distinct(command.notify, excluded=(mail.sender,))
    awaited_acks = mail.awaited_acks
    late = MailEscalated(
        mail.id, awaited_acks or mail.to, recipients, about, only_answer=not awaited_acks
    )
    decision = _mail_decision(mail, late)
    if not recipients:
        return decision
    notice = _late_notice(mail, late, read)
    return replace(decision, events=(*decision.events, (mail_stream(notice.id), notice)))


def _late_notice(mail: Mail, late: MailEscalated, read: Read) -> MailPosted:
    """Notice about a late letter."""
    awaited = "an answer" if mail.awaits_answer else "an acknowledgement"
    return MailPosted(
        id=f"{read.cause}.late",
        sender=read.actor.name,
        to=late.notified,
        thread=mail.thread,
        kind=LATE_KIND,
        subject=f"Late: {awaited} to letter {mail.id}",
        body=(
            f"{mail.sender} waits for {awaited} from {', '.join(late.waiting_for)}.\n\n"
            f"The letter {mail.id} has the subject: {mail.subject}"
        ),
        unknown=tuple(name for name in late.notified if read.agent(name) is None),
        bead=mail.bead,
        reply_to=mail.id,
        importance="high",
    )


def _iter_post_faults(command: PostMail) -> Iterator[Refusal | None]:
    yield check_id(command.id, "letter id", "id") if command.id else None
    yield check_id(command.thread, "thread", "thread") if command.thread else None
    if not command.to:
        yield Refusal("invalid_field", "to names nobody; name at least one recipient", path="to")
    yield limits.check_count("to", (*command.to, *command.cc), limits.MAX_RECIPIENTS)
    yield limits.check_count("auto_copied", command.auto_copied, limits.MAX_RECIPIENTS)
    for field, names in (
        ("to", command.to),
        ("cc", command.cc),
        ("auto_copied", command.auto_copied),
    ):
        yield from (check_agent(name, field) for name in names)
    yield limits.check_text("subject", command.subject, limits.MAX_SUBJECT)
    yield limits.check_text("body", command.body, limits.MAX_BODY)
    yield limits.check_text("kind", command.kind, _MAX_KIND_LENGTH)
    if command.bead and not is_task_name(command.bead):
        why = f"{command.bead[:40]!a} is not the name of a task"
        yield Refusal("invalid_id", why, path="bead")
    yield limits.check_count("attachments", command.attachments, limits.MAX_ATTACHMENTS)
    yield limits.check_texts("attachments", command.attachments, limits.MAX_REASON, minimum=1)
    if command.due_in_ms:
        yield limits.check_duration(
            "the time to answer", command.due_in_ms, *limits.WAIT_RANGE_MS, path="due_in_ms"
        )
    if command.sent_at is not None:
        yield limits.check_range("sent_at", command.sent_at, *TIMESTAMP_RANGE)


def _find_in_inbox(id: str, read: Read) -> Mail | Refusal:
    """The letter, if the caller is a recipient, or a refusal."""
    mail = _find_mail(id, read)
    if isinstance(mail, Refusal) or mail.is_recipient(read.actor.name):
        return mail
    return Refusal("not_authorized", f"{id} is not addressed to {read.actor.name}")


def _find_mail(id: str, read: Read) -> Mail | Refusal:
    malformed = check_id(id, "letter id")
    if malformed:
        return malformed
    return read.mail(id) or not_found.letter(id)


def _distinct(names: tuple[str, ...], excluded: tuple[str, ...] = ()) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in excluded)


def _mail_decision(mail: Mail, *events: Event) -> Decision:
    return _receipt_decision(mail.id, mail.thread, *events)


def _receipt_decision(id: str, thread: str, *events: Event) -> Decision:
    stream = mail_stream(id)
    receipt = Receipt("", None, stream=stream, thread=thread)
    return Decision(receipt, tuple((stream, event) for event in events))
