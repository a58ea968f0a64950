"""What a letter leads to: to whom it goes, what it answers, and that it asks for what it means."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.authority import why_no_worker
from dragoman.core.commands import (
    AnswerMail,
    AnyCommand,
    PostMail,
    RejectMessage,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.ids import bare, check_id, is_task_name, mail_stream
from dragoman.core.limits import RECIPIENTS, WAIT_MS, check_duration
from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.letter import Mail
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.operation import Commands
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import find_agent, find_stream, names_in_role, state_of
from dragoman.engine.reads.closed_letters import is_shown_to
from dragoman.engine.reads.letter_names import known_as
from dragoman.engine.reads.mailbox import LAST, Fits, find_letter, page_of, whole_list
from dragoman.protocols.agentmail.meaning import MEANING
from dragoman.protocols.agentmail.parse import Parser
from dragoman.protocols.agentmail.settings import Choices
from dragoman.protocols.agentmail.shapes import Message
from dragoman.protocols.agentmail.subject import is_reply, read_subject
from dragoman.protocols.agentmail.wire import Outgoing, SendMail
from dragoman.protocols.agentmail.words import (
    ACK_REQUIRED,
    ANSWERS,
    MAY_ANSWER,
    TYPES,
    MessageType,
)

GROUPS: Final[Mapping[str, Role]] = {
    "@agents": "agent",
    "@orchestrators": "orchestrator",
    "@coordinators": "coordinator",
    "@humans": "human",
}
"""Address -> role whose registered agents receive the letter."""


class _Posting(Struct, frozen=True):
    """A letter about to be posted."""

    mail: PostMail
    message: Message
    replied: Sequence[Mail]
    """The letter it replies to, or the letters it answers without naming them."""
    is_echo: bool
    """The type only repeats that of the letter it replies to, so it is a plain letter."""
    is_repeat: bool
    """The sender has sent it before, under its own id."""


def understood(letter: Outgoing, store: Store) -> Message:
    """Return the message with the bead under the task's name in this hub.

    A plain word before a colon is a bead if a task has that name.
    """
    row, message = letter.row, letter.message
    if not message.bead_id and ":" in row.subject:
        parser = Parser(is_known=lambda name: not isinstance(find_stream(store, name), Refusal))
        message = parser.parse({"subject": row.subject, "body_md": row.body_md})
    name = known_as(message.bead_id, store)
    if name == message.bead_id:
        return message
    return replace(message, parsed=replace(message.parsed, bead_id=name))


def is_looked_up(letter: Outgoing) -> bool:
    """Tell whether the store must be read; not for a plain letter to plain names."""
    row, message = letter.row, letter.message
    is_plain = message.type is MessageType.UNKNOWN and ":" not in row.subject
    refers = row.id is not None or bool(row.reply_to or row.thread_id or message.bead_id)
    return refers or not is_plain or any("@" in name for name in (*names(row.to), *names(row.cc)))


def post(letter: Outgoing, actor: Actor, store: Store, choices: Choices) -> Commands | Fault:
    """Build the command that posts the letter."""
    posting = _posting(letter, actor, store, choices)
    return posting if isinstance(posting, Fault) else (posting.mail,)


def _posting(letter: Outgoing, actor: Actor, store: Store, choices: Choices) -> _Posting | Fault:
    message = understood(letter, store)
    row = replace(letter.row, thread_id=known_as(letter.row.thread_id, store))
    to = _addressed(row.to, "to", store, choices)
    if isinstance(to, Fault):
        return to
    cc = _addressed(row.cc, "cc", store, choices)
    if isinstance(cc, Fault):
        return cc
    within = choices.ack_within_ms if row.ack_within_ms is None else row.ack_within_ms
    no_time = check_duration("the time to answer", within, *WAIT_MS)
    if no_time is not None:
        return fault_of(no_time, "ack_within_ms")
    is_shown = is_shown_to(actor, choices.teamspaces, store)
    replied = _replied(row, message, actor, to, store, is_shown)
    if isinstance(replied, Fault):
        return replied
    to = to or _usual_recipients(message.type, replied, actor, store, choices)
    bead = message.bead_id if is_task_name(message.bead_id) else _answered_bead(message, replied)
    thread = row.thread_id or (replied[-1].thread if replied else "") or bare(bead)
    # Looked up last: a reader who sees the question answered must also see the answering letter.
    before = _sent_before(row, actor, store)
    if before is not None:
        to = before.to if _is_found_out(row.to) else to
        cc = before.cc if _is_found_out(row.cc) else cc
        is_there = row.thread_id in ("", known_as(before.thread, store))
        thread = before.thread if is_there else row.thread_id
        bead = bead if message.bead_id else before.bead
    if not to and message.type not in ANSWERS:
        return Fault("invalid_field", "it is addressed to nobody: name a recipient", "to")
    is_echo = is_reply(row.subject) and (
        message.type == _replied_type(replied, thread, store)
        or (before is not None and before.kind == MessageType.UNKNOWN)
    )
    is_heeded = not is_echo and _is_heeded(message.type, to, actor, store, choices)
    wants_answer = is_heeded and message.type in ANSWERS.values()
    usually_acked = is_heeded and ACK_REQUIRED[message.type]
    wants_ack = usually_acked if row.ack_required is None else row.ack_required
    posted = PostMail(
        to=to,
        subject=row.subject,
        body=row.body_md,
        kind=_kind(message.type, before, is_echo=is_echo),
        id="" if row.id is None else str(row.id),
        thread=thread,
        cc=cc,
        copied=() if is_echo else _informed(message.type, to, store, choices),
        bead=bead,
        reply_to=replied[0].id if row.reply_to else "",
        importance=row.importance,
        ack_wanted=wants_ack,
        answer_wanted=wants_answer,
        due_in_ms=within if wants_ack or wants_answer else 0,
        attachments=row.attachments,
        sent_at=_moment(row.timestamp),
    )
    return _Posting(posted, message, replied, is_echo, is_repeat=before is not None)


def _answered_bead(message: Message, replied: Sequence[Mail]) -> str:
    """Bead of an answer that names none: the one of what it answers, if that is unambiguous."""
    beads = {mail.bead for mail in replied if message.type in ANSWERS}
    return beads.pop() if len(beads) == 1 else ""


def _kind(type: MessageType, before: Mail | None, *, is_echo: bool) -> str:
    """Kind as which it is delivered; a letter that was sent before keeps its kind."""
    if before is not None:
        return before.kind
    return MessageType.UNKNOWN if is_echo else type


def _is_heeded(
    type: MessageType, to: tuple[str, ...], actor: Actor, store: Store, choices: Choices
) -> bool:
    """Tell whether the recipient owes what the type asks for.

    A request for a worker by a caller who may not request one obliges nobody but the hub, which
    refuses.
    """
    if type is not MessageType.SPAWN_REQUEST or not why_no_worker(actor.label):
        return True
    return choices.spawner in to and find_agent(store, choices.spawner) is None


def _sent_before(row: SendMail, actor: Actor, store: Store) -> Mail | None:
    """Find the letter that this sender has already sent under this id."""
    if row.id is None or check_id(str(row.id), "letter id"):
        return None
    found = store.stream(mail_stream(str(row.id)))
    known = None if found is None else state_of(store, found)
    return known if isinstance(known, Mail) and known.sender == actor.name else None


def _is_found_out(given: tuple[str, ...] | str) -> bool:
    """Tell whether recipients may change from day to day: none are named, or a group is."""
    named = names(given)
    return not named or any(name.startswith("@") for name in named)


def names(given: tuple[str, ...] | str) -> tuple[str, ...]:
    """Split a list, or a text with commas, into names."""
    if isinstance(given, str):
        return tuple(name for name in map(str.strip, given.split(",")) if name)
    return given


def _moment(text: str) -> int | None:
    """Parse the sender's timestamp; an unreadable one does not stop the letter."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def _addressed(
    given: tuple[str, ...] | str, field: str, store: Store, choices: Choices
) -> tuple[str, ...] | Fault:
    """Resolve addresses to recipients, each once."""
    found: list[str] = []
    for name in names(given):
        if not name.startswith("@"):
            found.append(name)
        elif name in GROUPS:
            found += names_in_role(store, GROUPS[name])
        elif name[1:] in choices.groups:
            found += choices.groups[name[1:]]
        else:
            known = ", ".join((*GROUPS, *(f"@{group}" for group in choices.groups)))
            return Fault(
                "invalid_field", f"there is no group {name[:40]!a}; there are {known}", field
            )
    if names(given) and not found:
        return Fault("invalid_field", f"nobody is in {', '.join(names(given))[:80]!a}", field)
    return tuple(dict.fromkeys(found))


def _usual_recipients(
    type: MessageType, replied: Sequence[Mail], actor: Actor, store: Store, choices: Choices
) -> tuple[str, ...]:
    """Default recipients for this type; empty if there are none."""
    if replied:
        # A sender who continues its own letter writes to that letter's recipients.
        meant = (mail.to if mail.sender == actor.name else (mail.sender,) for mail in replied)
        return tuple(dict.fromkeys(chain.from_iterable(meant)))
    if type is MessageType.UNKNOWN or type in ANSWERS:
        return ()
    if type is MessageType.SPAWN_REQUEST:
        return (choices.spawner,)
    orchestrators = names_in_role(store, "orchestrator")
    if type is not MessageType.HELP_REQUEST:
        return orchestrators or ("orchestrator",)
    if actor.name != choices.helper:
        return (choices.helper,)
    # An agent never answers itself, so the helper's own requests go to the orchestrators.
    return tuple(name for name in orchestrators if name != actor.name) or ("orchestrator",)


def _informed(
    type: MessageType, to: tuple[str, ...], store: Store, choices: Choices
) -> tuple[str, ...]:
    """Recipients that the hub adds: helper and orchestrators get every request for help.

    A request for a worker that goes to no registered agent is answered by the spawner.
    """
    if type is MessageType.SPAWN_REQUEST:
        is_owed = any(find_agent(store, name) is not None for name in to)
        return () if is_owed else (choices.spawner,)
    if type is not MessageType.HELP_REQUEST:
        return ()
    return (choices.helper, *names_in_role(store, "orchestrator"))[:RECIPIENTS]


def _replied(
    row: SendMail,
    message: Message,
    actor: Actor,
    to: tuple[str, ...],
    store: Store,
    is_shown: Fits,
) -> Sequence[Mail] | Fault:
    """Find the letter that this one replies to, or those that it answers without naming them.

    The latter are all that wait for such an answer in its thread or about its bead, or, if it names
    neither, in the sender's own box from one of its recipients.
    """
    if row.reply_to:
        found = find_letter(store, row.reply_to, is_shown)
        if isinstance(found, Refusal):
            return fault_of(found, "reply_to")
        return (found,)
    if message.type not in ANSWERS:
        return ()
    is_named = bool(row.thread_id or message.bead_id)
    lists = _where_asked(row, message) if is_named else (f"asked:{actor.name}",)
    found = (
        tuple(
            letter.mail
            for letter in whole_list(store, name)
            if _answers(message, actor, letter.mail) and (is_named or letter.mail.sender in to)
        )
        for name in lists
    )
    return next(filter(None, found), ())


def _where_asked(row: SendMail, message: Message) -> Iterator[str]:
    """Yield the lists of open questions in the answer's thread, then about its bead."""
    thread, bead = row.thread_id or bare(message.bead_id), message.bead_id
    if not check_id(thread, "thread"):
        yield f"open:{thread}"
    if not row.thread_id and is_task_name(bead):
        yield f"about:{bead}"


def _replied_type(replied: Sequence[Mail], thread: str, store: Store) -> str:
    """Type that a reply may repeat: of the letter it names, or of its thread's last letter.

    Letters that the hub wrote in between are skipped.
    """
    if replied or check_id(thread, "thread"):
        return _named_type(replied[-1]) if replied else ""
    newest_first = ListQuery(f"thread:{thread}", before=LAST, limit=1)
    page = page_of(store, newest_first, lambda mail: _named_type(mail) in TYPES)
    return _named_type(page.letters[0].mail) if page.letters else ""


def _named_type(mail: Mail) -> str:
    """Type of a letter; for a plain one, the type that its subject repeats."""
    is_plain = mail.kind == MessageType.UNKNOWN
    return read_subject(mail.subject).type if is_plain else mail.kind


def _answers(message: Message, actor: Actor, mail: Mail) -> bool:
    """Tell whether a message answers this letter; nobody answers itself."""
    return (
        mail.kind == ANSWERS.get(message.type)
        and mail.is_open
        and mail.sender != actor.name
        and (not message.bead_id or mail.bead in ("", message.bead_id))
    )


def effect(letter: Outgoing, actor: Actor, store: Store, choices: Choices) -> Commands:
    """Build the commands for the task and for the letters it answers; none for plain letters."""
    if letter.message.type in ANSWERS or is_reply(letter.row.subject):
        posting = _posting(letter, actor, store, choices)
        if isinstance(posting, Fault) or posting.is_echo:
            return ()
        message, answers = posting.message, tuple(_answering(posting, actor))
    else:
        message, answers = understood(letter, store), ()
    meaning = MEANING.get(message.type)
    if meaning is None:
        return answers
    if not message.bead_id:
        detail = f"{message.type} names no bead, so that it changes no task: write Bead: ID in it"
        return (RejectMessage("invalid_field", detail, kind=message.type),)
    return tuple(meaning(message, actor, choices))


def _answering(posting: _Posting, actor: Actor) -> Iterator[AnyCommand]:
    """Answer the questions of its thread whose sender it goes to."""
    mail, type = posting.mail, posting.message.type
    if posting.is_repeat and type in ANSWERS:
        detail = f"{type} {mail.id} was sent before: its answers were applied then"
        yield RejectMessage("already_exists", detail, kind=type)
    asked = [one for one in posting.replied if _answers(posting.message, actor, one)]
    reached = [
        one for one in asked if one.thread == mail.thread and one.sender in (*mail.to, *mail.cc)
    ]
    if asked and not reached:
        detail = (
            f"{type} does not answer {asked[-1].id}: send it to {asked[-1].sender}, "
            f"in the thread {asked[-1].thread}"
        )
        yield RejectMessage("invalid_field", detail, kind=type)
    roles = MAY_ANSWER.get(type, ())
    own = [one for one in reached if one.is_for(actor.name) or actor.role in roles]
    for one in own or reached:
        yield AnswerMail(one.id, mail.id, roles)
