"""Letters of a type, written from fields that were typed one by one."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from dragoman.protocols.agentmail import Checks, Draft, MessageType, Rendered, compose
from dragoman.protocols.agentmail.check import NO_BEAD_NEEDED
from dragoman.protocols.agentmail.subject import is_reply, read_subject
from dragoman.surfaces.cli.call import wrong_usage

_TRUE: Final = frozenset({"pass", "true", "yes", "ok", "passed"})
_FALSE: Final = frozenset({"fail", "false", "no", "failed"})

Fields = Mapping[str, Any]


def _number(text: str) -> int:
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError(f"{text!a} is not a whole number")
    return int(digits)


def _files(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)


class Kind(Struct, frozen=True):
    """The way in which the value of a field is typed and parsed."""

    told: str
    read: Callable[[str], Any]


def _either(yes: str, no: str) -> Kind:
    def read(text: str) -> bool:
        word = text.lower()
        if word not in _TRUE | _FALSE:
            raise ValueError(f"{text!a} is neither {yes} nor {no}")
        return word in _TRUE

    return Kind(f"{yes} or {no}", read)


_NUMBER: Final = Kind("a whole number", _number)
_NAMES: Final = Kind("with commas between them", _files)
_CHECK: Final = _either("PASS", "FAIL")
KINDS: Final[Mapping[str, Kind]] = {
    "context_usage": _NUMBER,
    "internal_attempts": _NUMBER,
    "files": _NAMES,
    "files_touched": _NAMES,
    "tests": _CHECK,
    "lint": _CHECK,
    "build": _CHECK,
    "resume": _either("true", "false"),
}
"""Field -> how its value is typed; any other is a text."""


class Form(Struct, frozen=True):
    """Fields of a letter type, and the function that composes it."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    write: Callable[[str, dict[str, Any]], Draft]


def _with_checks(make: Callable[..., Draft]) -> Callable[[str, dict[str, Any]], Draft]:
    def write(bead: str, given: dict[str, Any]) -> Draft:
        checks = Checks(*(given.pop(name) for name in ("tests", "lint", "build")))
        return make(bead, checks=checks, **given)

    return write


def _failed(bead: str, given: dict[str, Any]) -> Draft:
    partial = (given.pop("commit", ""), given.pop("files", ()))
    return compose.failed(bead, partial=partial, **given)


def _plain(make: Callable[..., Draft]) -> Callable[[str, dict[str, Any]], Draft]:
    return lambda bead, given: make(bead, **given)


_COMPLETION: Final = ("commit", "files", "tests", "lint", "build", "summary")
FORMS: Final[Mapping[str, Form]] = {
    MessageType.BEAD_ACCEPTED: Form(("title", "started_at"), (), _plain(compose.bead_accepted)),
    MessageType.PROGRESS: Form(
        ("step", "status", "context_usage"), ("files_touched",), _plain(compose.progress)
    ),
    MessageType.HELP_REQUEST: Form(
        ("issue_type", "problem", "what_tried", "question"),
        ("files_touched",),
        _plain(compose.help_request),
    ),
    MessageType.HELP_RESPONSE: Form(("guidance",), (), _plain(compose.help_response)),
    MessageType.OFFERING_READY: Form(_COMPLETION, (), _with_checks(compose.offering_ready)),
    MessageType.DONE: Form(_COMPLETION, (), _with_checks(compose.done)),
    MessageType.FAILED: Form(
        ("failure_type", "reason", "internal_attempts"),
        ("commit", "files", "recommendation"),
        _failed,
    ),
    MessageType.CHECKPOINT: Form(
        ("reason", "commit", "progress", "context_usage", "next_steps"),
        (),
        _plain(compose.checkpoint),
    ),
    MessageType.SPAWN_REQUEST: Form(
        ("orchestrator", "resume"), ("checkpoint",), _plain(compose.spawn_request)
    ),
    MessageType.SPAWN_ACK: Form(("status",), ("session",), _plain(compose.spawn_ack)),
}
"""Letter type -> its required and optional fields and its composer."""

TYPES: Final = tuple(str(type) for type in FORMS)


def subject_of(type: str, bead: str, typed: str = "") -> str:
    """Make the subject of a letter of this type; ends the call if it would name another type."""
    subject = _joined(type, bead, typed)
    others = ", ".join(read_subject(subject).others)
    if others:
        wrong_usage(
            f"--subject {typed[:60]!a} names {others} beside --type {type}: write it in small "
            "letters, or leave it out"
        )
    if is_reply(subject):
        wrong_usage(
            f"--subject {typed[:60]!a} would make it a reply that only repeats a type: leave "
            "out Re: or Fwd:; --reply-to ID says what it replies to"
        )
    return subject


def _joined(type: str, bead: str, typed: str) -> str:
    """The typed subject, prefixed with bead and type unless it names them."""
    plain = f"[{bead}] {type}" if bead else type
    if not typed:
        return plain
    named = read_subject(typed)
    if named.type != type or (bead and named.bead_id not in ("", bead)):
        return f"{plain}: {typed}"
    return f"[{bead}] {typed}" if bead and not named.bead_id else typed


def composed(type: str, bead: str, given: tuple[str, ...]) -> Rendered:
    """Compose a letter from its fields; ends the call if they are wrong."""
    form, fields = FORMS[type], dict[str, Any]()
    known = (*form.required, *form.optional)
    if not bead and type not in NO_BEAD_NEEDED:
        wrong_usage(f"{type} is about a bead: name it with --bead ID")
    for one in given:
        name, sign, text = one.partition("=")
        if not sign or name not in known:
            wrong_usage(f"--field {one[:60]!a}: {type} has {', '.join(known)}, as NAME=VALUE")
        if name in fields:
            wrong_usage(f"--field {name} is given twice")
        fields[name] = _read(name, text)
    missing = [name for name in form.required if name not in fields]
    if missing:
        wrong_usage(f"{type} needs {', '.join(missing)}: add --field {missing[0]}=…")
    try:
        return compose.render(form.write(bead, fields))
    except ValueError as error:
        wrong_usage(f"{error}")


def _read(name: str, text: str) -> Any:
    try:
        return KINDS[name].read(text) if name in KINDS else text
    except ValueError as error:
        wrong_usage(f"--field {name}: {error}")
