"""The Agent Mail dialect: its table of operations, and those that send or mark letters."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.core import mail
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, quote_name
from dragoman.core.mail import AckMail, PostMail, ReadMail
from dragoman.engine.operation import (
    Answer,
    Dialect,
    Facts,
    Fault,
    Linter,
    Operation,
    ParsedMessage,
    Plan,
    RawMessage,
    fault_from_refusal,
    require_id,
    same_field_names,
    validate_shape,
)
from dragoman.engine.queries.mail import find_letter
from dragoman.engine.queries.visibility import find_reader, visible_to
from dragoman.engine.request import Commands, Committed
from dragoman.protocols.agentmail import queries, translate, waves
from dragoman.protocols.agentmail.lint import lint
from dragoman.protocols.agentmail.notice import from_notice, to_notice
from dragoman.protocols.agentmail.parse import (
    FOREIGN_FIELD_NAMES,
    Parser,
    rejection_reason,
    unwrap_letter,
)
from dragoman.protocols.agentmail.settings import DEFAULTS, Choices
from dragoman.protocols.agentmail.translate import APPLIED_IF_UNCHANGED
from dragoman.protocols.agentmail.wire import (
    ANSWERS,
    LetterRef,
    Message,
    MessageType,
    OutgoingLetter,
    SendMail,
)
from dragoman.text.strict_json import get_field

# --- the dialect ------------------------------------------------------------------------------

NAME: Final = "agentmail"

_EVENTS: Final = frozenset(
    {mail.MailPosted, mail.MailRead, mail.MailAcked, mail.MailAnswered, mail.MailEscalated}
)
"""Events about letters."""

_NO_CHANGE: Final = "nothing_changed"

_NO_OPEN_QUESTION: Final = (
    "it answers no open question: not the letter that it replies to, none in its thread, none "
    "about its bead"
)

_ECHO_DETAIL: Final = (
    "a reply that repeats the type of its letter is delivered as a plain reply; {answer}to send a "
    "new {type}, write the subject without Re: or Fwd:"
)

_ANSWER_HINTS: Final = {
    question: f"answer it with a {answer}; " for answer, question in ANSWERS.items()
}

_ATTACHMENT_KEYS: Final = ("path", "data_uri")
"""Keys under which other servers give an attachment: the path of a file, or all of its data."""

_FIELD_NAMES: Final = {
    **same_field_names(SendMail),
    "thread": "thread_id",
    "body": "body_md",
    "due_in_ms": "ack_within_ms",
    "sent_at": "timestamp",
}
"""Field of a core command -> field of a letter, for refusals that name a field."""

_parser = Parser()


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """Build the Agent Mail dialect."""
    operations = (
        *_write_operations(choices),
        *queries.query_operations(choices),
        *waves.operations(choices),
    )
    send = operations[0]
    return Dialect(
        name=NAME,
        operations=operations,
        parse=lambda incoming: _parse_message(incoming, send),
        lint=Linter(
            lint,
            tuple(type.value for type in MessageType if type is not MessageType.UNKNOWN),
            accepts_any_text=True,
        ),
        events=_EVENTS,
        to_notice=to_notice,
        from_notice=from_notice,
        hint="an object with subject and body_md",
    )


# --- letters as they are received -------------------------------------------------------------


def _parse_message(incoming: RawMessage, send: Operation) -> ParsedMessage | None:
    """Recognize a letter: an object with a subject and a body, bare or wrapped like any message."""
    row = None if incoming.is_too_large else unwrap_letter(incoming.value)
    if row is None:
        return None
    original_text = Raw(incoming.text)
    letter = _parse_letter(row)
    if isinstance(letter, Fault):
        return ParsedMessage("mail.send", original_text, fault=letter)
    sender = letter.row.from_
    return ParsedMessage(
        kind=letter.message.type,
        original_text=original_text,
        sender="" if check_agent(sender) else sender,
        ordering_key=_ordering_key(letter),
        operation=send,
        message=letter,
        dedup_content=_content_key(letter.row),
    )


def _ordering_key(letter: OutgoingLetter) -> str:
    """Key of letters that keep their order: the bead or thread, or else the recipients.

    Empty where that depends on other letters.
    """
    row, message = letter.row, letter.message
    about = {name for name in (message.bead_id, row.thread_id) if name}
    if row.reply_to or message.type in ANSWERS or len(about) > 1:
        return ""
    return about.pop() if about else " ".join(translate.split_addresses(row.to))


def _content_key(letter: SendMail) -> bytes:
    """Content by which a repeated letter is recognized, in whatever form it comes (S-IDEM).

    A letter with neither id nor timestamp is new each time; one with an id may carry another
    timestamp when it is sent again.
    """
    if letter.id is None and not letter.timestamp:
        return b""
    return msgspec.json.encode(letter if letter.id is None else replace(letter, timestamp=""))


def _parse_letter(value: Any) -> OutgoingLetter | Fault:
    if rejection := rejection_reason(value):
        return Fault("invalid_field", rejection, "bcc")
    row = require_id(validate_shape(_to_internal(value), SendMail), "id", "letter id")
    if isinstance(row, Fault):
        return row
    foreign_sender = get_field(value, FOREIGN_FIELD_NAMES["from"])
    if foreign_sender and foreign_sender != row.from_:
        detail = (
            f"the row is from {quote_name(row.from_)}, and from {quote_name(f'{foreign_sender}')}"
        )
        return Fault("identity_mismatch", f"{detail}: name one sender", FOREIGN_FIELD_NAMES["from"])
    return OutgoingLetter(row, _parser.parse(value))


def _to_internal(value: Any) -> Any:
    """Convert a row of another server to our field names; null counts as absent (S-MAIL-11)."""
    if not isinstance(value, dict):
        return value
    row = {key: entry for key, entry in cast(dict[str, Any], value).items() if entry is not None}
    for own_name, foreign_name in FOREIGN_FIELD_NAMES.items():
        if foreign_name in row:
            row[own_name] = row.get(own_name) or row[foreign_name]
    if row.get("ack_required") in (0, 1):
        row["ack_required"] = bool(row["ack_required"])
    if isinstance(row.get("importance"), str):
        row["importance"] = row["importance"].lower()
    if isinstance(row.get("attachments"), list):
        row["attachments"] = [_attachment_path(one) for one in row["attachments"]]
    return row


def _attachment_path(attachment: Any) -> Any:
    """Return the path of another server's attachment; the rest stays in the original text."""
    candidates = (get_field(attachment, key) for key in _ATTACHMENT_KEYS)
    paths = [place for place in candidates if isinstance(place, str)]
    return next(filter(str.strip, paths), paths[0] if paths else attachment)


# --- operations that write --------------------------------------------------------------------


def _write_operations(choices: Choices) -> Iterator[Operation]:
    yield Operation(
        name="mail.send",
        input=SendMail,
        parse=_parse_letter,
        roles=MAY_WRITE,
        plan=partial(_plan_letter, choices),
        needs_io=lambda letter, _: translate.needs_lookup(letter),
        answer_place="own effect",
        reply=_send_reply,
        summary=(
            "Send a letter. A subject such as PROGRESS, HELP_REQUEST, OFFERING_READY or FAILED "
            "with a body in that form also moves the bead's task."
        ),
    )
    yield _mark_operation(
        "mail.ack", AckMail, "acknowledged", "Acknowledge a letter to you.", choices
    )
    yield _mark_operation("mail.read", ReadMail, "read", "Mark a letter to you as read.", choices)


def _plan_letter(
    choices: Choices, letter: OutgoingLetter, actor: Actor, facts: Facts
) -> Plan | Fault:
    """Plan a letter: it is posted, and moves the task that it is about if it may."""
    sender = letter.row.from_
    if sender not in ("", actor.name):
        detail = f"{actor.name} cannot send letters from {quote_name(sender)}"
        return Fault("identity_mismatch", detail, "from")
    commands = translate.post_commands(letter, actor, facts.store, choices)
    if isinstance(commands, Fault):
        return commands
    return Plan(
        commands,
        effect=translate.effect_commands(letter, actor, facts.store, choices),
        effect_satisfied_by=_satisfied_by(letter),
        field_names=_FIELD_NAMES,
    )


def _mark_operation(
    name: str, command: type[AckMail | ReadMail], mark: str, summary: str, choices: Choices
) -> Operation:
    """Build the operation that marks a letter."""
    # Teamspaces may hide a letter, which then counts as missing.
    needs_lookup = bool(choices.teamspaces)

    def plan(message: LetterRef, actor: Actor, facts: Facts) -> Plan | Fault:
        if not needs_lookup:
            return Plan((command(message.id),))
        is_shown = visible_to(find_reader(actor, choices.teamspaces), facts.store)
        found = find_letter(facts.store, message.id, is_shown)
        if isinstance(found, Refusal):
            return fault_from_refusal(found, "id")
        return Plan((command(found.id),))

    def reply(_: LetterRef, commands: Commands, __: Committed) -> Any:
        (marked,) = commands
        assert isinstance(marked, AckMail | ReadMail), "the only command marks a letter"
        return {"id": marked.mail, mark: True}

    return Operation(
        name=name,
        input=LetterRef,
        roles=MAY_WRITE,
        plan=plan,
        needs_io=lambda _, __: needs_lookup,
        reply=reply,
        summary=summary,
    )


def _send_reply(letter: OutgoingLetter, commands: Commands, accepted: Committed) -> Answer:
    posted = commands[0]
    assert isinstance(posted, PostMail), "the first command posts the letter"
    receipt = accepted.receipts[0]
    reply = {
        "id": receipt.stream.partition(":")[2],
        "thread_id": receipt.thread,
        "type": posted.kind,
        "bead_id": posted.bead,
        "effect": _effect_reply(letter, commands, accepted, posted),
    }
    problems = _reported_problems(letter.message, posted.kind)
    body = {**reply, "problems": problems} if problems else reply
    return Answer(body, tuple(_reply_warnings(body)))


def _reply_warnings(reply: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings about unreadable fields and an effect that did not apply.

    A refused effect is in the reply anyway.
    """
    for problem in reply.get("problems", ()):
        location = f" (line {problem['line']})" if problem["line"] else ""
        yield f"not understood: {problem['text']}{location}"
    effect = reply["effect"]
    if "detail" in effect and "code" not in effect:
        yield effect["detail"]


def _reported_problems(message: Message, kind: str) -> Any:
    """Problems to report: those of a letter whose type is known."""
    is_plain = kind == MessageType.UNKNOWN
    return () if is_plain else msgspec.to_builtins(message.problems)


def _effect_reply(
    letter: OutgoingLetter, commands: Commands, accepted: Committed, posted: PostMail
) -> dict[str, Any]:
    """Describe whether the effect was applied, why not if it was refused, and any remark."""
    type, declined = letter.message.type, accepted.declined
    if declined is None:
        applied = len(commands) > 1 or len(accepted.receipts) > len(commands)
        detail = "" if applied else _no_effect_detail(type, posted.kind)
        return {"applied": applied, **({"detail": detail} if detail else {})}
    if declined.code in _satisfied_by(letter):
        return {"applied": True}
    return {"applied": False, "code": declined.code, "detail": declined.detail}


def _satisfied_by(letter: OutgoingLetter) -> tuple[str, ...]:
    """Return the refusals of an effect that found the task already as requested."""
    return (_NO_CHANGE,) if letter.message.type in APPLIED_IF_UNCHANGED else ()


def _no_effect_detail(type: MessageType, kind: str) -> str:
    """Explain why a letter whose subject names a type has no effect, or return an empty text."""
    if type is not MessageType.UNKNOWN and kind == MessageType.UNKNOWN:
        return _ECHO_DETAIL.format(type=type, answer=_ANSWER_HINTS.get(type, ""))
    return _NO_OPEN_QUESTION if type in ANSWERS else ""
