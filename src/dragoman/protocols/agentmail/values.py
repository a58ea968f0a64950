"""Values of fields: what their words mean, and which of them nobody can make sense of."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from dragoman.protocols.agentmail import words
from dragoman.protocols.agentmail.lines import parts_of, unmarked
from dragoman.protocols.agentmail.words import MessageType
from dragoman.text.ascii_case import lower, upper

_MOST_DIGITS: Final = 9
_MOST_PERCENT: Final = 100
_PERCENT: Final = re.compile(
    r"(?<![\w.,+\N{MINUS SIGN}-])([0-9]{1,9})(?:\.0++)?\s*+(?:%|percent(?!\w))", re.IGNORECASE
)
"""A whole percentage, but not the end of a fraction or of a negative number."""
_PERCENT_SIGN: Final = re.compile(r"\d\s*+(?:%|percent(?!\w))", re.IGNORECASE)
"""End of any percentage."""
_DIGIT: Final = re.compile(r"\d")
_BEFORE_A_TIME: Final = ("T", "t", " ")
"""Accepted between date and time; Python would accept any character."""

Reading = tuple[Any, str]
"""Value, and the name of its problem or an empty text."""
Read = Callable[[Any], Reading]


def is_moment(text: str) -> bool:
    """Tell whether this is a calendar date with a time in ISO 8601, with or without an offset."""
    try:
        date = datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        return False
    # No week dates: few readers know them.
    written = (date, date.replace("-", ""))
    return text.startswith(tuple(form + mark for form in written for mark in _BEFORE_A_TIME))


def _moment(text: str) -> Reading:
    return text, "" if is_moment(text) else "bad_timestamp"


def _number(text: str) -> int | None:
    """Parse a whole number in ASCII digits; int() would also take 4_5 and other scripts' digits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        return None
    return int(text)


def _percentage(text: str) -> Reading:
    number = _number(text.removesuffix("%").rstrip())
    if number is None:
        return _percentage_within(text), "bad_percentage"
    return number, "" if 0 <= number <= _MOST_PERCENT else "bad_percentage"


def _percentage_within(text: str) -> int | None:
    """Find the only percentage in a longer text such as `about 45% of 200k`; no end of a range."""
    found = _PERCENT.search(text)
    if found is None or _DIGIT.search(text, 0, found.start()):
        return None
    return int(found[1]) if len(_PERCENT_SIGN.findall(text)) == 1 else None


def _count(text: str) -> Reading:
    number = _number(text)
    return number, "" if number is not None and number >= 0 else "bad_number"


def _verdict(text: str) -> Reading:
    verdict = words.VERDICTS.get(lower(text))
    return verdict, "bad_verdict" if verdict is None else ""


def _files(listed: str | tuple[str, ...]) -> Reading:
    parts = parts_of(listed) if isinstance(listed, str) else listed
    return tuple(file_name(part) for part in parts), ""


def file_name(part: str) -> str:
    """Strip code marks from a file name; stars are part of a name."""
    return unmarked(part, ("`",))


def _word(text: str) -> Reading:
    return text, ""


def _one_of(allowed: tuple[str, ...]) -> Read:
    """Build a parser of an enumeration, which returns any word in upper case."""

    def read(text: str) -> Reading:
        word = upper(text)
        return word, "" if word in allowed else "bad_value"

    return read


def _spawn_status(text: str) -> Reading:
    """Keep the spelling (see SPEC.md)."""
    return text, "" if lower(text) in words.SPAWN_STATUSES else "bad_value"


def _failed(text: str) -> Reading:
    """Return FAILED, whatever the status says."""
    return "FAILED", "" if upper(text) in words.FAILED else "bad_value"


def _unmarked(read: Read) -> Read:
    """Let a parser accept a value in code or bold marks."""
    return lambda text: read(unmarked(text))


_WORDS: Final[Mapping[str, Read]] = {
    "bead_id": _word,
    "issue_id": _word,
    "commit_sha": _word,
    "partial_commit_sha": _word,
    "orchestrator": _word,
    "session": _word,
    "started_at": _moment,
    "context_usage": _percentage,
    "internal_attempts": _count,
    "tests_pass": _verdict,
    "lint_pass": _verdict,
    "build_pass": _verdict,
    "resume": _verdict,
    "issue_type": _one_of(words.ISSUE_TYPES),
    "failure_type": _one_of(words.FAILURE_TYPES),
    "checkpoint_reason": _one_of(words.CHECKPOINT_REASONS),
}
_STATUS: Final[Mapping[MessageType, Read]] = {
    MessageType.OFFERING_READY: _one_of(words.COMPLETED),
    MessageType.DONE: _one_of(words.COMPLETED),
    MessageType.FAILED: _failed,
    MessageType.SPAWN_ACK: _spawn_status,
}
"""Parsers of `status`, by type; in other types it is free text."""

_LISTS: Final[dict[str, Read]] = {"files_touched": _files, "files": _files}


def _fields(type: MessageType) -> Iterator[tuple[str, Read]]:
    yield from _WORDS.items()
    if type in _STATUS:
        yield "status", _STATUS[type]


READ: Final[Mapping[MessageType, Mapping[str, Read]]] = {
    type: _LISTS | {field: _unmarked(read) for field, read in _fields(type)} for type in MessageType
}
"""Type -> field -> parser of its value; a field that is not listed is text."""

ALLOWED: Final[Mapping[str, str]] = {
    "issue_type": ", ".join(words.ISSUE_TYPES),
    "failure_type": ", ".join(words.FAILURE_TYPES),
    "checkpoint_reason": ", ".join(words.CHECKPOINT_REASONS),
    "tests_pass": "PASS or FAIL",
    "lint_pass": "PASS or FAIL",
    "build_pass": "PASS or FAIL",
    "resume": "true or false",
}
ALLOWED_STATUS: Final[Mapping[MessageType, str]] = {
    MessageType.OFFERING_READY: "DONE",
    MessageType.DONE: "DONE",
    MessageType.FAILED: "FAILED",
    MessageType.SPAWN_ACK: ", ".join(words.SPAWN_STATUSES),
}
"""Field -> its allowed words, for messages about a wrong one."""
