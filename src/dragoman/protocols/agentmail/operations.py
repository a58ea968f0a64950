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
    "it answers no open question: not the letter that it replies to, none in its thread, none "
    "about its bead"
)
_ECHO: Final = (
    "a reply that repeats the type of its letter is delivered as a plain reply; {answer}to send a "
    "new {type}, write the subject without Re: or Fwd:"
)
_ANSWERED_BY: Final = {
    question: f"answer it with a {answer}; " for answer, question in ANSWERS.items()
}
_WHOLE_ID: Final = 36
_PLACES: Final = ("path", "data_uri")
"""Keys under which other servers give an attachment: the path of a file, or all of its data."""

_FIELDS: Final = {
    **as_called(SendMail),
    "thread": "thread_id",
    "body": "body_md",
    "due_in_ms": "ack_within_ms",
    "sent_at": "timestamp",
}
"""Field of a core command -> field of a letter, for refusals that name a field."""

_parser = Parser()


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """Build the Agent Mail dialect."""
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
    """Recognize a letter: an object with a subject and a body, bare or wrapped like any message."""
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
    """Key of letters that keep their order: the bead or thread, or else the recipients.

    Empty where that depends on other letters.
    """
    row, message = letter.row, letter.message
    about = {name for name in (message.bead_id, row.thread_id) if name}
    if row.reply_to or message.type in ANSWERS or len(about) > 1:
        return ""
    return about.pop() if about else " ".join(translate.names(row.to))


def _content(letter: SendMail) -> bytes:
    """Content by which a repeated letter is recognized, in whatever form it comes (S-IDEM).

    A letter with neither id nor timestamp is new each time; one with an id may carry another
    timestamp when it is sent again.
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
    """Convert a row of another server to our field names; null counts as absent (S-MAIL-11)."""
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
    """Return the path of another server's attachment; the rest stays in the original text."""
    said = (field_of(attachment, key) for key in _PLACES)
    places = [place for place in said if isinstance(place, str)]
    return next(filter(str.strip, places), places[0] if places else attachment)


def _writing(choices: Choices) -> Iterator[Operation]:
    def is_looked_for(asked: OneLetter) -> bool:
        """Tell whether the store must be read, to find the letter or to check its visibility."""
        return bool(choices.teamspaces) or _may_be_short(asked.id)

    def marked(command: type[AckMail | ReadMail]) -> Callable[..., Commands | Fault]:
        """Build the command for a letter given by its id, or by the beginning of it."""

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
    """Tell whether this may be the beginning of an id, or an id in capitals.

    Ids that the hub gives have full length and are in lower case.
    """
    return len(id) < _WHOLE_ID or not id.islower()


def _letter_of(commands: Commands) -> str:
    marked = commands[0]
    assert isinstance(marked, AckMail | ReadMail), "the first command marks a letter"
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
    assert isinstance(posted, PostMail), "the first command posts the letter"
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
    """Yield warnings about unreadable fields and an effect that did not apply.

    A refused effect is in the reply anyway.
    """
    for problem in sent.get("problems", ()):
        place = f" (line {problem['line']})" if problem["line"] else ""
        yield f"not understood: {problem['text']}{place}"
    effect = sent["effect"]
    if "detail" in effect and "code" not in effect:
        yield effect["detail"]


def _unread(message: Message, kind: str) -> Any:
    """Problems to report: those of a letter whose type is known."""
    is_plain = kind == MessageType.UNKNOWN
    return () if is_plain else msgspec.to_builtins(message.problems)


def _effect(
    letter: Outgoing, commands: Commands, accepted: Accepted, posted: PostMail
) -> dict[str, Any]:
    """Describe whether the effect was applied, why not if it was refused, and any remark."""
    type, declined = letter.message.type, accepted.declined
    if declined is None:
        applied = len(commands) > 1 or len(accepted.receipts) > len(commands)
        odd = "" if applied else _why_none(type, posted.kind)
        return {"applied": applied, **({"detail": odd} if odd else {})}
    if _is_as_good(letter, declined.code):
        return {"applied": True}
    return {"applied": False, "code": declined.code, "detail": declined.detail}


def _is_as_good(letter: Outgoing, code: str) -> bool:
    """Tell whether a refused effect found the task already as requested."""
    return code == _NO_CHANGE and letter.message.type in ACTED_ON_LATER


def _why_none(type: MessageType, kind: str) -> str:
    """Explain why a letter whose subject names a type has no effect, or return an empty text."""
    if type is not MessageType.UNKNOWN and kind == MessageType.UNKNOWN:
        return _ECHO.format(type=type, answer=_ANSWERED_BY.get(type, ""))
    return _UNASKED if type in ANSWERS else ""
