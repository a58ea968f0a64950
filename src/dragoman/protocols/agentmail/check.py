"""What a letter of each type must say, in strict mode (S-MAIL-4), and where it says it."""

from collections.abc import Iterator
from typing import Final

from dragoman.protocols.agentmail.body import ParsedBody
from dragoman.protocols.agentmail.forms import FORMS, Form
from dragoman.protocols.agentmail.problems import make_problem
from dragoman.protocols.agentmail.shapes import Parsed, Problem
from dragoman.protocols.agentmail.words import SPAWNED, MessageType
from dragoman.text.ascii_case import ascii_lower

NO_BEAD_NEEDED: Final = frozenset({MessageType.HELP_RESPONSE, MessageType.UNKNOWN})
"""Types whose form need not name a bead; an answer is found by its thread."""
_EMPTY_VALUES: Final = ("", None, ())
_BEAD_FIELDS: Final = frozenset({"bead_id", "issue_id"})


def find_missing_fields(type: MessageType, parsed: Parsed, body: ParsedBody) -> Iterator[Problem]:
    """Yield a problem for each required field that is absent, at its empty label or its heading."""
    if not parsed.bead_id and type not in NO_BEAD_NEEDED:
        line = body.line_numbers.get("bead_id") or body.line_numbers.get("issue_id", 0)
        yield make_problem("missing_bead_id", "bead_id", line)
    required = FORMS[type].required + _conditional_fields(type, parsed)
    for field, title in required:
        if field in _BEAD_FIELDS or field in body.values:
            continue
        line = body.line_numbers.get(field) or body.heading_lines.get(title, 0)
        yield make_problem("missing_field", field, line, right=_FIELD_HINTS[type][field])


def find_misplaced_fields(type: MessageType, parsed: Parsed, body: ParsedBody) -> Iterator[Problem]:
    """Yield a problem for each field that stands only where its label does not count (S-MAIL-3).

    Strict parsing refuses nothing for it: a required field is reported as missing, and others are
    optional.
    """
    for field, line in body.misplaced_lines.items():
        if getattr(parsed, field) in _EMPTY_VALUES:
            yield make_problem("misplaced_field", field, line, right=_FIELD_HINTS[type][field])


def _conditional_fields(type: MessageType, parsed: Parsed) -> tuple[tuple[str, str], ...]:
    """Fields that are required only because of the value of another field."""
    if type is MessageType.SPAWN_REQUEST and parsed.resume:
        return (("partial_commit_sha", ""),)
    if type is MessageType.SPAWN_ACK and ascii_lower(parsed.status) == SPAWNED:
        return (("session", ""),)
    return ()


def _describe_fields(form: Form) -> dict[str, str]:
    """Describe the spelling of each field of a form."""
    hints = {label.field: f"a line {label.word}: with its value" for label in form.head}
    for section in form.sections:
        location = f"under a heading ## {section.title}"
        inner = {label.field: f"a line {label.word}: {location}" for label in section.labels}
        hints |= inner or {section.field: f"it {location}"}
    return hints | {"guidance": "the answer as the body"}


_FIELD_HINTS: Final = {type: _describe_fields(form) for type, form in FORMS.items()}
