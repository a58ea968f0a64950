"""What a letter of each type must say, in strict mode (S-MAIL-4), and where it says it."""

from collections.abc import Iterator
from typing import Final

from dragoman.protocols.agentmail.body import Found
from dragoman.protocols.agentmail.forms import FORMS, Form
from dragoman.protocols.agentmail.problems import problem
from dragoman.protocols.agentmail.shapes import Parsed, Problem
from dragoman.protocols.agentmail.words import SPAWNED, MessageType
from dragoman.text.ascii_case import lower

NO_BEAD_NEEDED: Final = frozenset({MessageType.HELP_RESPONSE, MessageType.UNKNOWN})
"""An answer is found by its thread; its form names no bead."""
_NOTHING: Final = ("", None, ())
_NAMES_BEAD: Final = frozenset({"bead_id", "issue_id"})


def missing(type: MessageType, parsed: Parsed, found: Found) -> Iterator[Problem]:
    """Each field that is not there, at its empty label or at the heading where it should stand."""
    if not parsed.bead_id and type not in NO_BEAD_NEEDED:
        line = found.lines.get("bead_id") or found.lines.get("issue_id", 0)
        yield problem("missing_bead_id", "bead_id", line)
    required = FORMS[type].required + _depending(type, parsed)
    for field, title in required:
        if field in _NAMES_BEAD or field in found.words:
            continue
        line = found.lines.get(field) or found.headings.get(title, 0)
        yield problem("missing_field", field, line, right=_HOW[type][field])


def misplaced(type: MessageType, parsed: Parsed, found: Found) -> Iterator[Problem]:
    """Each field that is told only where its label does not count (S-MAIL-3).

    Strict mode refuses nothing for it: what it wants is missing then, and the rest is free.
    """
    for field, line in found.misplaced.items():
        if getattr(parsed, field) in _NOTHING:
            yield problem("misplaced_field", field, line, right=_HOW[type][field])


def _depending(type: MessageType, parsed: Parsed) -> tuple[tuple[str, str], ...]:
    """What only some letters of a type must say."""
    if type is MessageType.SPAWN_REQUEST and parsed.resume:
        return (("partial_commit_sha", ""),)
    if type is MessageType.SPAWN_ACK and lower(parsed.status) == SPAWNED:
        return (("session", ""),)
    return ()


def _how(form: Form) -> dict[str, str]:
    """How each field of a form is written."""
    how = {label.field: f"a line {label.word}: with its value" for label in form.head}
    for section in form.sections:
        under = f"under a heading ## {section.title}"
        inner = {label.field: f"a line {label.word}: {under}" for label in section.labels}
        how |= inner or {section.field: f"it {under}"}
    return how | {"guidance": "the answer as the body"}


_HOW: Final = {type: _how(form) for type, form in FORMS.items()}
