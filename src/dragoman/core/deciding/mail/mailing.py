"""Deciders of letters: post, read, ack, answer, and what is late (S-MAIL-7)."""

from collections.abc import Iterator

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.authority import MAY_DISPATCH, check_write
from dragoman.core.commands import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailEvent,
    MailPosted,
    MailRead,
)
from dragoman.core.ids import bare_name, check_agent, check_id, is_task_name, mail_stream
from dragoman.core.limits import (
    MAX_ATTACHMENTS,
    MAX_BODY,
    MAX_REASON,
    MAX_RECIPIENTS,
    MAX_SUBJECT,
    WAIT_RANGE_MS,
    check_count,
    check_duration,
    check_range,
    check_text,
    check_texts,
)
from dragoman.core.moments import TIMESTAMP_RANGE, clamp_timestamp
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.letter import Mail
from dragoman.core.states.task import Task

_MAX_KIND_LENGTH = 64
_AUTHORED_FIELDS = ("kind", "subject", "body", "bead", "reply_to", "importance", "attachments")
"""Fields that two letters under one id must share to be the same; not the time of sending."""

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
        return missing.letter(command.reply_to)
    to, cc = _distinct(command.to), _distinct(command.cc, excluded=command.to)
    copied = _distinct(command.copied, excluded=(*to, *cc, read.actor.name))
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
        copied=copied,
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
    malformed = check_id(event.thread, "thread")
    return malformed or _receipt_decision(id, event.thread, event)


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
        return replace(decision, receipt=replace(decision.receipt, before=True))
    return Refusal(
        "already_exists",
        f"there is another letter {known.id} of yours already; give this one another id",
        path="id",
    )


def decide_read_mail(command: ReadMail, read: Read, now: int) -> Decision | Refusal:
    """Mark a letter as read by a recipient; a second time is a no-op."""
    del now
    mail = _find_in_inbox(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    name = read.actor.name
    return (
        _mail_decision(mail)
        if name in mail.read_by
        else _mail_decision(mail, MailRead(mail.id, name))
    )


def decide_ack_mail(command: AckMail, read: Read, now: int) -> Decision | Refusal:
    """Acknowledge a letter as a recipient; a second time is a no-op."""
    del now
    mail = _find_in_inbox(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    name = read.actor.name
    return (
        _mail_decision(mail)
        if name in mail.acked_by
        else _mail_decision(mail, MailAcked(mail.id, name))
    )


def decide_answer_mail(command: AnswerMail, read: Read, now: int) -> Decision | Refusal:
    """Mark a letter as answered by the letter of this request; the first answer counts.

    Its recipients may answer, and the roles that the command names.
    """
    del now
    mail = _find_mail(command.mail, read)
    if isinstance(mail, Refusal):
        return mail
    refusal = check_write(read.actor)
    if refusal:
        return refusal
    if not mail.awaits_answer:
        return _mail_decision(mail)
    if not mail.is_recipient(read.actor.name) and read.actor.role not in command.roles:
        return Refusal(
            "not_authorized",
            f"{mail.id} was not sent to {read.actor.label}: its answer comes from "
            f"{', '.join(mail.recipients)[:200]}",
        )
    return _mail_decision(mail, MailAnswered(mail.id, read.actor.name, _answer_id(command, read)))


def _answer_id(command: AnswerMail, read: Read) -> str:
    """Id of this request's letter: its own, unless another sender had used that."""
    known = read.mail(command.answer) if command.answer else None
    is_another = known is not None and known.sender != read.actor.name
    return read.cause if is_another else command.answer or read.cause


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
    recipients = _distinct(command.told, excluded=(mail.sender,))
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
        to=late.told,
        thread=mail.thread,
        kind=LATE_KIND,
        subject=f"Late: {awaited} to letter {mail.id}",
        body=(
            f"{mail.sender} waits for {awaited} from {', '.join(late.waiting_for)}.\n\n"
            f"The letter {mail.id} has the subject: {mail.subject}"
        ),
        unknown=tuple(name for name in late.told if read.agent(name) is None),
        bead=mail.bead,
        reply_to=mail.id,
        importance="high",
    )


def _iter_post_faults(command: PostMail) -> Iterator[Refusal | None]:
    yield check_id(command.id, "letter id", "id") if command.id else None
    yield check_id(command.thread, "thread", "thread") if command.thread else None
    if not command.to:
        yield Refusal("invalid_field", "to names nobody; name at least one recipient", path="to")
    yield check_count("to", (*command.to, *command.cc), MAX_RECIPIENTS)
    yield check_count("copied", command.copied, MAX_RECIPIENTS)
    for field, names in (("to", command.to), ("cc", command.cc), ("copied", command.copied)):
        yield from (check_agent(name, field) for name in names)
    yield check_text("subject", command.subject, MAX_SUBJECT)
    yield check_text("body", command.body, MAX_BODY)
    yield check_text("kind", command.kind, _MAX_KIND_LENGTH)
    if command.bead and not is_task_name(command.bead):
        why = f"{command.bead[:40]!a} is not the name of a task"
        yield Refusal("invalid_id", why, path="bead")
    yield check_count("attachments", command.attachments, MAX_ATTACHMENTS)
    yield check_texts("attachments", command.attachments, MAX_REASON, minimum=1)
    if command.due_in_ms:
        yield check_duration(
            "the time to answer", command.due_in_ms, *WAIT_RANGE_MS, path="due_in_ms"
        )
    if command.sent_at is not None:
        yield check_range("sent_at", command.sent_at, *TIMESTAMP_RANGE)


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
    return read.mail(id) or missing.letter(id)


def _distinct(names: tuple[str, ...], excluded: tuple[str, ...] = ()) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in excluded)


def _mail_decision(mail: Mail, *events: MailEvent) -> Decision:
    return _receipt_decision(mail.id, mail.thread, *events)


def _receipt_decision(id: str, thread: str, *events: MailEvent) -> Decision:
    stream = mail_stream(id)
    receipt = Receipt("", None, stream=stream, thread=thread)
    return Decision(receipt, tuple((stream, event) for event in events))
