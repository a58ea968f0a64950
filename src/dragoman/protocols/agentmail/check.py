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
"""Types whose form need not name a bead; an answer is found by its thread."""
_NOTHING: Final = ("", None, ())
_NAMES_BEAD: Final = frozenset({"bead_id", "issue_id"})


def missing(type: MessageType, parsed: Parsed, found: Found) -> Iterator[Problem]:
    """Yield a problem for each required field that is absent, at its empty label or its heading."""
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
    """Yield a problem for each field that stands only where its label does not count (S-MAIL-3).

    Strict parsing refuses nothing for it: a required field is reported as missing, and others are
    optional.
    """
    for field, line in found.misplaced.items():
        if getattr(parsed, field) in _NOTHING:
            yield problem("misplaced_field", field, line, right=_HOW[type][field])


def _depending(type: MessageType, parsed: Parsed) -> tuple[tuple[str, str], ...]:
    """Fields that are required only because of the value of another field."""
    if type is MessageType.SPAWN_REQUEST and parsed.resume:
        return (("partial_commit_sha", ""),)
    if type is MessageType.SPAWN_ACK and lower(parsed.status) == SPAWNED:
        return (("session", ""),)
    return ()


def _how(form: Form) -> dict[str, str]:
    """Describe the spelling of each field of a form."""
    how = {label.field: f"a line {label.word}: with its value" for label in form.head}
    for section in form.sections:
        under = f"under a heading ## {section.title}"
        inner = {label.field: f"a line {label.word}: {under}" for label in section.labels}
        how |= inner or {section.field: f"it {under}"}
    return how | {"guidance": "the answer as the body"}


_HOW: Final = {type: _how(form) for type, form in FORMS.items()}
