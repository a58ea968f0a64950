"""Composition of typed letters from `--field NAME=VALUE` options."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from dragoman.protocols.agentmail import Checks, Draft, MessageType, Rendered, compose
from dragoman.protocols.agentmail.grammar import NO_BEAD_NEEDED
from dragoman.protocols.agentmail.parse import is_reply, parse_subject
from dragoman.surfaces.cli.context import raise_usage_error

# --- fields -----------------------------------------------------------------------------------

_TRUE: Final = frozenset({"pass", "true", "yes", "ok", "passed"})

_FALSE: Final = frozenset({"fail", "false", "no", "failed"})

Fields = Mapping[str, Any]


def _parse_number(text: str) -> int:
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError(f"{text!a} is not a whole number")
    return int(digits)


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)


class FieldKind(Struct, frozen=True):
    """The way in which the value of a field is typed and parsed."""

    description: str
    parse: Callable[[str], Any]


def _choice_kind(yes: str, no: str) -> FieldKind:
    def parse(text: str) -> bool:
        word = text.lower()
        if word not in _TRUE | _FALSE:
            raise ValueError(f"{text!a} is neither {yes} nor {no}")
        return word in _TRUE

    return FieldKind(f"{yes} or {no}", parse)


_NUMBER: Final = FieldKind("a whole number", _parse_number)

_NAMES: Final = FieldKind("with commas between them", _parse_names)

_CHECK: Final = _choice_kind("PASS", "FAIL")

FIELD_KINDS: Final[Mapping[str, FieldKind]] = {
    "context_usage": _NUMBER,
    "internal_attempts": _NUMBER,
    "files": _NAMES,
    "files_touched": _NAMES,
    "tests": _CHECK,
    "lint": _CHECK,
    "build": _CHECK,
    "resume": _choice_kind("true", "false"),
}
"""Field -> how its value is typed; any other is a text."""


class LetterForm(Struct, frozen=True):
    """Fields of a letter type, and the function that composes it."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    compose: Callable[[str, dict[str, Any]], Draft]


def _fill_checks(compose_draft: Callable[..., Draft]) -> Callable[[str, dict[str, Any]], Draft]:
    def write(bead: str, fields: dict[str, Any]) -> Draft:
        checks = Checks(*(fields.pop(name) for name in ("tests", "lint", "build")))
        return compose_draft(bead, checks=checks, **fields)

    return write


def _compose_failed(bead: str, fields: dict[str, Any]) -> Draft:
    partial = (fields.pop("commit", ""), fields.pop("files", ()))
    return compose.failed(bead, partial=partial, **fields)


def _fill_fields(compose_draft: Callable[..., Draft]) -> Callable[[str, dict[str, Any]], Draft]:
    return lambda bead, given: compose_draft(bead, **given)


_COMPLETION_FIELDS: Final = ("commit", "files", "tests", "lint", "build", "summary")

LETTER_FORMS: Final[Mapping[str, LetterForm]] = {
    MessageType.BEAD_ACCEPTED: LetterForm(
        ("title", "started_at"), (), _fill_fields(compose.bead_accepted)
    ),
    MessageType.PROGRESS: LetterForm(
        ("step", "status", "context_usage"), ("files_touched",), _fill_fields(compose.progress)
    ),
    MessageType.HELP_REQUEST: LetterForm(
        ("issue_type", "problem", "what_tried", "question"),
        ("files_touched",),
        _fill_fields(compose.help_request),
    ),
    MessageType.HELP_RESPONSE: LetterForm(("guidance",), (), _fill_fields(compose.help_response)),
    MessageType.OFFERING_READY: LetterForm(
        _COMPLETION_FIELDS, (), _fill_checks(compose.offering_ready)
    ),
    MessageType.DONE: LetterForm(_COMPLETION_FIELDS, (), _fill_checks(compose.done)),
    MessageType.FAILED: LetterForm(
        ("failure_type", "reason", "internal_attempts"),
        ("commit", "files", "recommendation"),
        _compose_failed,
    ),
    MessageType.CHECKPOINT: LetterForm(
        ("reason", "commit", "progress", "context_usage", "next_steps"),
        (),
        _fill_fields(compose.checkpoint),
    ),
    MessageType.SPAWN_REQUEST: LetterForm(
        ("orchestrator", "resume"), ("checkpoint",), _fill_fields(compose.spawn_request)
    ),
    MessageType.SPAWN_ACK: LetterForm(("status",), ("session",), _fill_fields(compose.spawn_ack)),
}
"""Letter type -> its required and optional fields and its composer."""

LETTER_TYPES: Final = tuple(str(type) for type in LETTER_FORMS)


def make_subject(type: str, bead: str, typed: str = "") -> str:
    """Make the subject of a letter of this type; ends the call if it would name another type."""
    subject = _join_subject(type, bead, typed)
    others = ", ".join(parse_subject(subject).other_types)
    if others:
        raise_usage_error(
            f"--subject {typed[:60]!a} names {others} beside --type {type}: write it in small "
            "letters, or leave it out"
        )
    if is_reply(subject):
        raise_usage_error(
            f"--subject {typed[:60]!a} would make it a reply that only repeats a type: leave "
            "out Re: or Fwd:; --reply-to ID says what it replies to"
        )
    return subject


def _join_subject(type: str, bead: str, typed: str) -> str:
    """The typed subject, prefixed with bead and type unless it names them."""
    plain = f"[{bead}] {type}" if bead else type
    if not typed:
        return plain
    parsed = parse_subject(typed)
    if parsed.type != type or (bead and parsed.bead_id not in ("", bead)):
        return f"{plain}: {typed}"
    return f"[{bead}] {typed}" if bead and not parsed.bead_id else typed


def compose_letter(type: str, bead: str, assignments: tuple[str, ...]) -> Rendered:
    """Compose a letter from its fields; ends the call if they are wrong."""
    form, fields = LETTER_FORMS[type], dict[str, Any]()
    known = (*form.required, *form.optional)
    if not bead and type not in NO_BEAD_NEEDED:
        raise_usage_error(f"{type} is about a bead: name it with --bead ID")
    for one in assignments:
        name, sign, text = one.partition("=")
        if not sign or name not in known:
            raise_usage_error(f"--field {one[:60]!a}: {type} has {', '.join(known)}, as NAME=VALUE")
        if name in fields:
            raise_usage_error(f"--field {name} is given twice")
        fields[name] = _parse_field(name, text)
    missing = [name for name in form.required if name not in fields]
    if missing:
        raise_usage_error(f"{type} needs {', '.join(missing)}: add --field {missing[0]}=…")
    try:
        return compose.render(form.compose(bead, fields))
    except ValueError as error:
        raise_usage_error(f"{error}")


def _parse_field(name: str, text: str) -> Any:
    try:
        return FIELD_KINDS[name].parse(text) if name in FIELD_KINDS else text
    except ValueError as error:
        raise_usage_error(f"--field {name}: {error}")
