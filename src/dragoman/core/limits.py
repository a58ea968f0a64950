"""Limits of what a command may carry (S-LIMIT): a clear refusal, never a silent cut."""

from collections.abc import Iterator, Sequence, Sized
from math import isfinite
from typing import cast

from dragoman.core.errors import Refusal
from dragoman.core.timestamps import format_duration

MAX_TITLE = 500
MAX_BODY = 200_000
MAX_TEXT = 65_536
MAX_REASON = 4_000
MAX_LINKS = 1_000
MAX_DIALECTS = 16
MAX_QUEUES = 64
MAX_ATTEMPTS = 1_000
MAX_SUBJECT = 500
MAX_PAGE = 1_000
"""Items on a page, at every surface."""
MAX_PAGE_BYTES = 32 * 1024 * 1024
"""Bytes on a page of long items, turns above all: the page ends with the item that passes this."""
MAX_RECIPIENTS = 1_000
MAX_ATTACHMENTS = 64
MAX_BEADS = 500
MAX_RETRIES = 32
MAX_PATTERN_LENGTH = 240
MAX_PATTERNS = 32
"""Patterns of one reservation, or of one bead."""
MAX_WAVE_PATTERNS = 500
"""Patterns of all beads of a wave together: they are compared with each other."""
MAX_RESERVED_PATTERNS = 500
"""Patterns reserved at a time: each new one is compared with all of them."""
MAX_SKILLS = 256
"""Skills, constraints or places of an agent."""
MAX_SKILL_LENGTH = 120
MAX_CANDIDATES = 32
MAX_TRIES = 16
MAX_PRICE = 1_000_000.0
MAX_OPEN_REQUESTS = 100_000
MAX_UPDATES = 10_000
"""Updates kept of one intent."""
MAX_STORED_OUTPUT_BYTES = 2**24
"""Upper bound of a stored output, in bytes."""
MAX_POLICY_RULES = 500
"""Places, skills or phrases in a policy: each intent keeps its policy."""
WAIT_RANGE_MS = (1_000, 30 * 86_400_000)
MAX_TOKENS = 32
"""Valid tokens of an agent at a time."""
TOKEN_LIFETIME_RANGE_MS = (1_000, 366 * 86_400_000)
LEASE_RANGE_MS = (1_000, 7 * 86_400_000)
RESERVATION_RANGE_MS = (1_000, 86_400_000)
"""Files needed for longer are reserved again; forgotten ones are free the next day."""
MAX_JSON_DEPTH = 32
MAX_SAFE_INTEGER = 2**53 - 1
"""Every reader of JSON keeps whole numbers exactly up to here."""


def _invalid_field(field: str, problem: str) -> Refusal:
    return Refusal("invalid_field", f"{field} {problem}", path=field)


def check_text(field: str, text: str, maximum: int, *, minimum: int = 0) -> Refusal | None:
    """Refuse a text that cannot be stored and shown, or is too short or too long."""
    if len(text) > maximum:
        return _invalid_field(field, f"has {len(text)} characters; at most {maximum} are allowed")
    encoding_refusal = None if text.isascii() else check_unicode(field, text)
    is_short = len(text) < minimum or (minimum and not has_visible_text(text))
    if encoding_refusal is None and is_short:
        return _invalid_field(field, "is empty; give it a text")
    return encoding_refusal


def has_visible_text(text: str) -> bool:
    """True if a text has a visible character; blanks and invisible characters are none."""
    return text[:1].isalnum() or any(one.isprintable() and not one.isspace() for one in text)


def check_unicode(field: str, text: str) -> Refusal | None:
    """Refuse a text that cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"character {error.start + 1} is half of a surrogate pair"
        return _invalid_field(field, f"is not valid Unicode: {problem}")
    return None


def check_count(field: str, items: Sized, maximum: int) -> Refusal | None:
    """Refuse too many items."""
    if len(items) <= maximum:
        return None
    return _invalid_field(field, f"has {len(items)} items; at most {maximum} are allowed")


def iter_skill_faults(field: str, words: tuple[str, ...]) -> Iterator[Refusal | None]:
    """Faults of skills, constraints or places: too many, or one that is empty or too long."""
    yield check_count(field, words, MAX_SKILLS)
    for index, word in enumerate(words):
        yield check_text(f"{field}[{index}]", word, MAX_SKILL_LENGTH, minimum=1)


def check_texts(
    field: str, texts: Sequence[str], maximum: int, *, minimum: int = 0
) -> Refusal | None:
    """Refuse too many texts, or one that is too short or too long."""
    if not texts:
        return None
    faults = (
        check_text(f"{field}[{index}]", text, maximum, minimum=minimum)
        for index, text in enumerate(texts)
    )
    return check_count(field, texts, MAX_LINKS) or next(filter(None, faults), None)


def check_range(field: str, value: int, minimum: int, maximum: int) -> Refusal | None:
    """Refuse a number out of range."""
    if minimum <= value <= maximum:
        return None
    return _invalid_field(field, f"is {value}; it must be from {minimum} to {maximum}")


def check_duration(
    what: str, value: int, minimum: int, maximum: int, *, path: str = ""
) -> Refusal | None:
    """Refuse a duration, in milliseconds and in this field, that is out of range."""
    if minimum <= value <= maximum:
        return None
    return Refusal(
        "invalid_field",
        f"{what} is {format_duration(value)} long; it must be from {format_duration(minimum)} "
        f"to {format_duration(maximum)}",
        path=path,
    )


def check_json(field: str, value: object) -> Refusal | None:
    """Refuse a parsed JSON value that cannot be written again without loss."""
    if not value:
        return None
    level: list[object] = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        children: list[object] = []
        for part in level:
            refusal = _check_json_part(field, part, children)
            if refusal is not None:
                return refusal
        if not children:
            return None
        level = children
    return _invalid_field(field, f"is nested more than {MAX_JSON_DEPTH} deep")


def _check_json_part(field: str, part: object, children: list[object]) -> Refusal | None:
    """Refuse a value that is invalid in itself; its parts are added to `children`."""
    if isinstance(part, str):
        return None if part.isascii() else check_unicode(field, part)
    if isinstance(part, int):
        return check_range(field, part, -MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    if isinstance(part, dict):
        children += cast(dict[object, object], part)
        children += cast(dict[object, object], part).values()
    elif isinstance(part, list | tuple):
        children += cast(list[object], part)
    elif isinstance(part, float) and not isfinite(part):
        return _invalid_field(field, f"holds {part}, which is not a number in JSON")
    return None
