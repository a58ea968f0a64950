"""Values of fields: what their words mean, and which of them nobody can make sense of."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from dragoman.protocols.agentmail import words
from dragoman.protocols.agentmail.lines import split_list, strip_markup
from dragoman.protocols.agentmail.words import MessageType
from dragoman.text.ascii_case import ascii_lower, ascii_upper

_MAX_DIGITS: Final = 9
_MAX_PERCENT: Final = 100
_PERCENT: Final = re.compile(
    r"(?<![\w.,+\N{MINUS SIGN}-])([0-9]{1,9})(?:\.0++)?\s*+(?:%|percent(?!\w))", re.IGNORECASE
)
"""A whole percentage, but not the end of a fraction or of a negative number."""
_PERCENT_END: Final = re.compile(r"\d\s*+(?:%|percent(?!\w))", re.IGNORECASE)
"""End of any percentage."""
_DIGIT: Final = re.compile(r"\d")
_DATE_TIME_SEPARATORS: Final = ("T", "t", " ")
"""Accepted between date and time; Python would accept any character."""

ParsedValue = tuple[Any, str]
"""Value, and the name of its problem or an empty text."""
ValueParser = Callable[[Any], ParsedValue]


def is_timestamp(text: str) -> bool:
    """Tell whether this is a calendar date with a time in ISO 8601, with or without an offset."""
    try:
        date = datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        return False
    # No week dates: few readers know them.
    spellings = (date, date.replace("-", ""))
    return text.startswith(
        tuple(form + separator for form in spellings for separator in _DATE_TIME_SEPARATORS)
    )


def _parse_timestamp(text: str) -> ParsedValue:
    return text, "" if is_timestamp(text) else "bad_timestamp"


def _parse_integer(text: str) -> int | None:
    """Parse a whole number in ASCII digits; int() would also take 4_5 and other scripts' digits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MAX_DIGITS:
        return None
    return int(text)


def _parse_percentage(text: str) -> ParsedValue:
    number = _parse_integer(text.removesuffix("%").rstrip())
    if number is None:
        return _find_percentage(text), "bad_percentage"
    return number, "" if 0 <= number <= _MAX_PERCENT else "bad_percentage"


def _find_percentage(text: str) -> int | None:
    """Find the only percentage in a longer text such as `about 45% of 200k`; no end of a range."""
    match = _PERCENT.search(text)
    if match is None or _DIGIT.search(text, 0, match.start()):
        return None
    return int(match[1]) if len(_PERCENT_END.findall(text)) == 1 else None


def _parse_count(text: str) -> ParsedValue:
    number = _parse_integer(text)
    return number, "" if number is not None and number >= 0 else "bad_number"


def _parse_verdict(text: str) -> ParsedValue:
    verdict = words.VERDICTS.get(ascii_lower(text))
    return verdict, "bad_verdict" if verdict is None else ""


def _parse_files(paths: str | tuple[str, ...]) -> ParsedValue:
    parts = split_list(paths) if isinstance(paths, str) else paths
    return tuple(clean_file_name(part) for part in parts), ""


def clean_file_name(part: str) -> str:
    """Strip code marks from a file name; stars are part of a name."""
    return strip_markup(part, ("`",))


def _parse_word(text: str) -> ParsedValue:
    return text, ""


def _enum_parser(allowed: tuple[str, ...]) -> ValueParser:
    """Build a parser of an enumeration, which returns any word in upper case."""

    def parse(text: str) -> ParsedValue:
        word = ascii_upper(text)
        return word, "" if word in allowed else "bad_value"

    return parse


def _parse_spawn_status(text: str) -> ParsedValue:
    """Keep the spelling (see SPEC.md)."""
    return text, "" if ascii_lower(text) in words.SPAWN_STATUSES else "bad_value"


def _parse_failed_status(text: str) -> ParsedValue:
    """Return FAILED, whatever the status says."""
    return "FAILED", "" if ascii_upper(text) in words.FAILED_STATUSES else "bad_value"


def _parser_without_markup(parse: ValueParser) -> ValueParser:
    """Let a parser accept a value in code or bold marks."""
    return lambda text: parse(strip_markup(text))


_VALUE_PARSERS: Final[Mapping[str, ValueParser]] = {
    "bead_id": _parse_word,
    "issue_id": _parse_word,
    "commit_sha": _parse_word,
    "partial_commit_sha": _parse_word,
    "orchestrator": _parse_word,
    "session": _parse_word,
    "started_at": _parse_timestamp,
    "context_usage": _parse_percentage,
    "internal_attempts": _parse_count,
    "tests_pass": _parse_verdict,
    "lint_pass": _parse_verdict,
    "build_pass": _parse_verdict,
    "resume": _parse_verdict,
    "issue_type": _enum_parser(words.ISSUE_TYPES),
    "failure_type": _enum_parser(words.FAILURE_TYPES),
    "checkpoint_reason": _enum_parser(words.CHECKPOINT_REASONS),
}
_STATUS_PARSERS: Final[Mapping[MessageType, ValueParser]] = {
    MessageType.OFFERING_READY: _enum_parser(words.COMPLETED_STATUSES),
    MessageType.DONE: _enum_parser(words.COMPLETED_STATUSES),
    MessageType.FAILED: _parse_failed_status,
    MessageType.SPAWN_ACK: _parse_spawn_status,
}
"""Parsers of `status`, by type; in other types it is free text."""

_LIST_PARSERS: Final[dict[str, ValueParser]] = {
    "files_touched": _parse_files,
    "files": _parse_files,
}


def _value_parsers_of(type: MessageType) -> Iterator[tuple[str, ValueParser]]:
    yield from _VALUE_PARSERS.items()
    if type in _STATUS_PARSERS:
        yield "status", _STATUS_PARSERS[type]


FIELD_PARSERS: Final[Mapping[MessageType, Mapping[str, ValueParser]]] = {
    type: _LIST_PARSERS
    | {field: _parser_without_markup(read) for field, read in _value_parsers_of(type)}
    for type in MessageType
}
"""Type -> field -> parser of its value; a field that is not listed is text."""

ALLOWED_VALUES: Final[Mapping[str, str]] = {
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
