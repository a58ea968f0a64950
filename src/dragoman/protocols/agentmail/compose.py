"""Compose letters from their fields, and render them to a subject and a body.

A composed letter passes strict parsing and gives the same fields back. Texts are cleaned when the
letter is composed: control characters become visible, surrounding space is dropped, one-line fields
stay on one line, and names and files lose code or bold marks around them. Rendering changes nothing
more: text under headings is escaped, commas within a file name are escaped, and a labelled line
holds only one label.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from dragoman.protocols.agentmail import grammar, wire
from dragoman.protocols.agentmail.errors import make_problem, quote
from dragoman.protocols.agentmail.parse import conditional_fields
from dragoman.protocols.agentmail.wire import MessageType, Parsed
from dragoman.text.safe_text import safe_text


class Draft(Struct, frozen=True):
    """A complete letter without recipients and thread."""

    type: MessageType
    parsed: Parsed

    @property
    def ack_required(self) -> bool:
        """Default of the type for requesting an acknowledgement."""
        return wire.ACK_REQUIRED[self.type]


class Rendered(Struct, frozen=True):
    """Subject and body of a letter, ready to send."""

    subject: str
    body_md: str


# --- drafts -----------------------------------------------------------------------------------

_FIXED_STATUS: Final = {
    MessageType.OFFERING_READY: "DONE",
    MessageType.DONE: "DONE",
    MessageType.FAILED: "FAILED",
}
"""Type -> the only status that it can have."""

_BEAD_FIELDS: Final = ("bead_id", "issue_id")

_EMPTY: Final = ("", (), None)


def draft_fields(type: MessageType) -> tuple[str, ...]:
    fixed = (*_BEAD_FIELDS, *(("status",) if type in _FIXED_STATUS else ()))
    return tuple(field for field, _ in grammar.FORMS[type].fields if field not in fixed)


def draft(type: MessageType | str, bead: str = "", **fields: Any) -> Draft:
    """Compose a letter; raise ValueError where strict parsing would refuse it.

    Fields are named as in `Parsed`. A value is given as it is parsed, or as a letter has it:
    `context_usage` is 45 or "45%".
    """
    type, known = MessageType(type), draft_fields(MessageType(type))
    values = _fixed_fields(type, bead)
    for field, value in fields.items():
        if field not in known:
            raise ValueError(f"{quote(field)} is no field of a {type}: it has {', '.join(known)}")
        values[field] = _clean_value(type, field, value)
    parsed = Parsed(**values)
    needed = grammar.FORMS[type].required + conditional_fields(type, parsed)
    for field in (
        *(() if type in grammar.NO_BEAD_NEEDED else ("bead_id",)),
        *(name for name, _ in needed),
    ):
        if getattr(parsed, field) in _EMPTY:
            raise ValueError(f"{field} is empty: a {type} requires it")
    first = parsed.guidance.partition("\n")[0]
    if (
        not parsed.bead_id
        and grammar.parse_labelled_line(first, grammar.FORMS[type].head_section.fields_by_label)[0]
    ):
        raise ValueError(
            f"guidance begins with {quote(first)}: pass the bead, or change the first line"
        )
    return Draft(type, parsed)


def partial_draft(type: MessageType, bead: str, fields: Mapping[str, Any]) -> Draft:
    """Compose a letter of those fields that it can say, and leave the others out."""
    values = _fixed_fields(type, bead)
    for field, value in fields.items():
        if value not in _EMPTY:
            with suppress(ValueError):
                values[field] = _clean_value(type, field, value)
    return Draft(type, Parsed(**values))


def _fixed_fields(type: MessageType, bead: str) -> dict[str, Any]:
    """Fields that follow from the type and the bead."""
    values: dict[str, Any] = {"bead_id": _clean_word(bead)}
    if type in grammar.SPAWN_TYPES:
        values["issue_id"] = values["bead_id"]
    if type in _FIXED_STATUS:
        values["status"] = _FIXED_STATUS[type]
    return values


def _clean_value(type: MessageType, field: str, value: Any) -> Any:
    """Clean a text, or parse a value from its text."""
    kind = grammar.VALUE_KINDS[type].get(field)
    if kind is None:
        return (
            _clean_text(value) if field in grammar.FORMS[type].text_fields else _clean_line(value)
        )
    if field in ("files", "files_touched") and not isinstance(value, str):
        return tuple(grammar.clean_file_name(name) for path in value if (name := _clean_line(path)))
    text = _clean_line(value if isinstance(value, str) else kind.format(value))
    parsed, problem = kind.parse(text)
    if problem:
        raise ValueError(make_problem(problem, field, shown=text, right=kind.allowed).text)
    return parsed


def _clean_text(text: str) -> str:
    return safe_text(text).strip()


def _clean_line(text: str) -> str:
    return safe_text(_clean_text(text), one_line=True)


def _clean_word(text: str) -> str:
    return grammar.strip_markup(_clean_line(text))


# --- rendering --------------------------------------------------------------------------------


def render(letter: Draft) -> Rendered:
    """Render the subject and the body of a letter."""
    type, parsed = letter.type, letter.parsed
    form = grammar.FORMS[type]
    blocks = ["\n".join(_render_labels(type, form.head, parsed))]
    if form.is_guidance:
        bead_line = [f"Bead: {parsed.bead_id}"] if parsed.bead_id else []
        blocks = [*bead_line, parsed.guidance]
    blocks += filter(None, (_render_section(type, section, parsed) for section in form.sections))
    return Rendered(_render_subject(parsed.bead_id, type), "\n\n".join(blocks) + "\n")


def _render_subject(bead_id: str, type: MessageType) -> str:
    """Put the bead in brackets before the type, if it can be parsed back from there."""
    is_plain = len(bead_id.split()) == 1 and "]" not in bead_id
    return (
        f"[{bead_id}] {type}"
        if is_plain and grammar.ascii_upper(bead_id) not in wire.MESSAGE_TYPES
        else str(type)
    )


def _render_section(type: MessageType, section: grammar.Section, parsed: Parsed) -> str:
    if section.kind == "labels":
        inner = "\n".join(_render_labels(type, section.labels, parsed, section.bullet))
    elif section.kind == "list":
        inner = "\n".join(map(grammar.format_list_item, getattr(parsed, section.field)))
    else:
        inner = grammar.escape_text(getattr(parsed, section.field))
    return f"## {section.title}\n{inner}" if inner else ""


def _render_labels(
    type: MessageType, labels: tuple[grammar.Label, ...], parsed: Parsed, bullet: str = ""
) -> Iterator[str]:
    for label in labels:
        value, kind = getattr(parsed, label.field), grammar.VALUE_KINDS[type].get(label.field)
        if value not in _EMPTY:
            yield f"{bullet}{label.word}: {kind.format(value) if kind else value}"
