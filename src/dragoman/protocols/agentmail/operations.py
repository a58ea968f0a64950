"""Everything that can be asked for in Agent Mail; what only reads is in `reading`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.commands import AckMail, PostMail, ReadMail
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, quoted_name
from dragoman.engine.faults import Fault, fault_of, in_shape, not_empty
from dragoman.engine.incoming import Incoming
from dragoman.engine.operation import Commands, Dialect, Facts, Heard, Operation, as_called
from dragoman.engine.reads.closed_letters import is_shown_to
from dragoman.engine.reads.mailbox import find_letter
from dragoman.engine.request import Accepted
from dragoman.protocols.agentmail import reading, translate, waves
from dragoman.protocols.agentmail.asking import letter_in, reader
from dragoman.protocols.agentmail.errors import CODES
from dragoman.protocols.agentmail.lint import lint
from dragoman.protocols.agentmail.meaning import ACTED_ON_LATER
from dragoman.protocols.agentmail.parse import Parser
from dragoman.protocols.agentmail.render import RENDER
from dragoman.protocols.agentmail.row import OTHER_NAMES, why_not_taken
from dragoman.protocols.agentmail.settings import DEFAULTS, Choices
from dragoman.protocols.agentmail.shapes import Message
from dragoman.protocols.agentmail.wire import OneLetter, Outgoing, SendMail
from dragoman.protocols.agentmail.words import ANSWERS, MessageType
from dragoman.text.strict_json import field_of

NAME: Final = "agentmail"
_NO_CHANGE: Final = "nothing_changed"
_UNASKED: Final = (
    "no open question waits for it, neither as the letter that it replies to, nor in its thread, "
    "nor about its bead"
)
_ECHO: Final = (
    "it repeats the type of the letter that it replies to, so that it was delivered as a plain "
    "reply; {answer}to say {type} anew, write the subject without Re: or Fwd:"
)
_ANSWERED_BY: Final = {
    question: f"what answers it is a {answer}; " for answer, question in ANSWERS.items()
}
_WHOLE_ID: Final = 36
_PLACES: Final = ("path", "data_uri")
"""Where other servers write the place of an attachment: a file of theirs, or all of it."""

_FIELDS: Final = {
    **as_called(SendMail),
    "thread": "thread_id",
    "body": "body_md",
    "due_in_ms": "ack_within_ms",
    "sent_at": "timestamp",
}
"""What the fields of a letter are to the core, where it refuses one of them."""

_parser = Parser()


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """Agent Mail as a door is handed it."""
    operations = (*_writing(choices), *reading.operations(choices), *waves.operations(choices))
    send = operations[0]
    return Dialect(
        name=NAME,
        operations=operations,
        hear=lambda incoming: _hear(incoming, send),
        lint=lint,
        refusals=CODES,
        render=RENDER,
        kinds=tuple(type.value for type in MessageType if type is not MessageType.UNKNOWN),
        is_lenient=True,
        known_by="an object with subject and body_md",
    )


def _hear(incoming: Incoming, send: Operation) -> Heard | None:
    """An object with a subject and a body is a letter, bare or wrapped like any message."""
    row = None if incoming.is_too_large else letter_in(incoming.value)
    if row is None:
        return None
    said = Raw(incoming.text)
    read = _read_letter(row)
    if isinstance(read, Fault):
        return Heard("mail.send", said, fault=read)
    sender = read.row.from_
    return Heard(
        kind=read.message.type,
        said=said,
        sender="" if check_agent(sender) else sender,
        line_up=_line_up(read),
        operation=send,
        message=read,
        content=_content(read.row),
    )


def _line_up(letter: Outgoing) -> str:
    """Its bead or thread, or else whom it goes to; nothing where it depends on other letters."""
    row, message = letter.row, letter.message
    about = {name for name in (message.bead_id, row.thread_id) if name}
    if row.reply_to or message.type in ANSWERS or len(about) > 1:
        return ""
    return about.pop() if about else " ".join(translate.names(row.to))


def _content(letter: SendMail) -> bytes:
    """What tells it from other letters, whatever form it comes in (S-IDEM).

    One with neither id nor time is a new one each time; one with an id may get another time when
    it is sent again.
    """
    if letter.id is None and not letter.timestamp:
        return b""
    return msgspec.json.encode(letter if letter.id is None else replace(letter, timestamp=""))


def _read_letter(value: Any) -> Outgoing | Fault:
    if why_not := why_not_taken(value):
        return Fault("invalid_field", why_not, "bcc")
    row = not_empty(in_shape(_as_ours(value), SendMail), "id", "letter id")
    if isinstance(row, Fault):
        return row
    other = field_of(value, OTHER_NAMES["from"])
    if other and other != row.from_:
        what = f"the row is from {quoted_name(row.from_)}, and from {quoted_name(f'{other}')}"
        return Fault("identity_mismatch", f"{what}: name one sender", OTHER_NAMES["from"])
    return Outgoing(row, _parser.parse(value))


def _as_ours(value: Any) -> Any:
    """A row as other servers write it, in our words: what is null is not there (S-MAIL-11)."""
    if not isinstance(value, dict):
        return value
    row = {key: said for key, said in cast(dict[str, Any], value).items() if said is not None}
    for ours, theirs in OTHER_NAMES.items():
        if theirs in row:
            row[ours] = row.get(ours) or row[theirs]
    if row.get("ack_required") in (0, 1):
        row["ack_required"] = bool(row["ack_required"])
    if isinstance(row.get("importance"), str):
        row["importance"] = row["importance"].lower()
    if isinstance(row.get("attachments"), list):
        row["attachments"] = [_reference(one) for one in row["attachments"]]
    return row


def _reference(attachment: Any) -> Any:
    """Where an attachment is that other servers describe; what else they say stays in the words."""
    said = (field_of(attachment, key) for key in _PLACES)
    places = [place for place in said if isinstance(place, str)]
    return next(filter(str.strip, places), places[0] if places else attachment)


# Operations that write


def _writing(choices: Choices) -> Iterator[Operation]:
    def is_looked_for(asked: OneLetter) -> bool:
        """Whether which letter is meant, and whether it is there for everybody, has to be seen."""
        return bool(choices.teamspaces) or _may_be_short(asked.id)

    def marked(command: type[AckMail | ReadMail]) -> Callable[..., Commands | Fault]:
        """What is done to a letter that is named by its id, or by the beginning of it."""

        def gather(asked: OneLetter, actor: Actor, facts: Facts) -> Commands | Fault:
            if not is_looked_for(asked):
                return (command(asked.id),)
            is_shown = is_shown_to(actor, choices.teamspaces, facts.store)
            found = find_letter(facts.store, asked.id, is_shown)
            return fault_of(found, "id") if isinstance(found, Refusal) else (command(found.id),)

        return gather

    yield Operation(
        name="mail.send",
        shape=SendMail,
        read=_read_letter,
        commands=lambda _: (),
        gather=lambda letter, actor, facts: translate.post(letter, actor, facts.store, choices),
        effect=lambda letter, actor, facts: translate.effect(letter, actor, facts.store, choices),
        is_as_good=_is_as_good,
        looks=translate.is_looked_up,
        reply=_sent,
        odd=_odd,
        roles=MAY_WRITE,
        fields=_FIELDS,
        identity=_impostor,
        summary=(
            "Send a letter. A subject such as PROGRESS, HELP_REQUEST, OFFERING_READY or FAILED "
            "with a body in that form also moves the bead's task."
        ),
    )
    yield Operation(
        name="mail.ack",
        shape=OneLetter,
        read=reader(OneLetter),
        commands=lambda _: (),
        gather=marked(AckMail),
        looks=is_looked_for,
        reply=lambda _, commands, __: {"id": _letter_of(commands), "acknowledged": True},
        roles=MAY_WRITE,
        summary="Acknowledge a letter to you.",
    )
    yield Operation(
        name="mail.read",
        shape=OneLetter,
        read=reader(OneLetter),
        commands=lambda _: (),
        gather=marked(ReadMail),
        looks=is_looked_for,
        reply=lambda _, commands, __: {"id": _letter_of(commands), "read": True},
        roles=MAY_WRITE,
        summary="Mark a letter to you as read.",
    )


def _may_be_short(id: str) -> bool:
    """Whether it may be the beginning of an id, or one in capitals: those that the hub gives are
    this long, and in lower case.
    """
    return len(id) < _WHOLE_ID or not id.islower()


def _letter_of(commands: Commands) -> str:
    marked = commands[0]
    assert isinstance(marked, AckMail | ReadMail), "nothing else is done to one letter"
    return marked.mail


def _impostor(letter: Outgoing, speaker: str) -> Fault | None:
    named = letter.row.from_
    if named in ("", speaker):
        return None
    return Fault(
        "identity_mismatch", f"{speaker} cannot send letters from {quoted_name(named)}", "from"
    )


def _sent(letter: Outgoing, commands: Commands, accepted: Accepted) -> Any:
    posted = commands[0]
    assert isinstance(posted, PostMail), "a letter is posted first"
    told = accepted.receipts[0]
    sent = {
        "id": told.stream.partition(":")[2],
        "thread_id": told.thread,
        "type": posted.kind,
        "bead_id": posted.bead,
        "effect": _effect(letter, commands, accepted, posted),
    }
    problems = _unread(letter.message, posted.kind)
    return {**sent, "problems": problems} if problems else sent


def _odd(sent: Mapping[str, Any]) -> Iterator[str]:
    """What of a letter is not understood, and what is odd about it; what was refused is told
    anyway.
    """
    for problem in sent.get("problems", ()):
        place = f" (line {problem['line']})" if problem["line"] else ""
        yield f"not understood: {problem['text']}{place}"
    effect = sent["effect"]
    if "detail" in effect and "code" not in effect:
        yield effect["detail"]


def _unread(message: Message, kind: str) -> Any:
    """What could not be read of a letter that says of itself what it is."""
    is_plain = kind == MessageType.UNKNOWN
    return () if is_plain else msgspec.to_builtins(message.problems)


def _effect(
    letter: Outgoing, commands: Commands, accepted: Accepted, posted: PostMail
) -> dict[str, Any]:
    """Whether the letter also did something, why not if it should have, and what is odd."""
    type, declined = letter.message.type, accepted.declined
    if declined is None:
        applied = len(commands) > 1 or len(accepted.receipts) > len(commands)
        odd = "" if applied else _why_none(type, posted.kind)
        return {"applied": applied, **({"detail": odd} if odd else {})}
    if _is_as_good(letter, declined.code):
        return {"applied": True}
    return {"applied": False, "code": declined.code, "detail": declined.detail}


def _is_as_good(letter: Outgoing, code: str) -> bool:
    """Whether the task stands already as somebody will act on it."""
    return code == _NO_CHANGE and letter.message.type in ACTED_ON_LATER


def _why_none(type: MessageType, kind: str) -> str:
    """Why a letter did nothing that its subject says it would; empty: it says no such thing."""
    if type is not MessageType.UNKNOWN and kind == MessageType.UNKNOWN:
        return _ECHO.format(type=type, answer=_ANSWERED_BY.get(type, ""))
    return _UNASKED if type in ANSWERS else ""
