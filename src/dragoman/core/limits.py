"""Bounds of what a command may carry (S-LIMIT): beyond them a clear refusal, never a silent cut."""

from collections.abc import Iterator, Sequence, Sized
from math import isfinite
from typing import cast

from dragoman.core.errors import Refusal
from dragoman.core.moments import duration

TITLE = 500
BODY = 200_000
TEXT = 65_536
REASON = 4_000
LINKS = 1_000
DIALECTS = 16
QUEUES = 64
ATTEMPTS = 1_000
SUBJECT = 500
PAGE = 1_000
"""Items on a page, at every surface."""
PAGE_BYTES = 32 * 1024 * 1024
"""Bytes on a page of long items, turns above all: the page ends with the item that passes this."""
RECIPIENTS = 1_000
ATTACHMENTS = 64
BEADS = 500
RETRIES = 32
PATTERN = 240
PATTERNS = 32
"""Patterns of one reservation, or of one bead."""
WAVE_PATTERNS = 2_000
"""Patterns of all beads of a wave together: they are compared with each other."""
RESERVED = 500
"""Patterns reserved at a time: each new one is compared with all of them."""
RESERVED_EACH = 100
"""Patterns reserved by one agent, so that none can use up what all share."""
SKILLS = 256
"""Skills, constraints or places of an agent."""
SKILL = 120
CANDIDATES = 32
TRIES = 16
PRICE = 1_000_000.0
OPEN_REQUESTS = 100_000
FOLLOWERS = 64
"""Intents that may follow up one."""
UPDATES = 10_000
"""Updates kept of one intent."""
KEPT = 2**24
"""Upper bound of a stored output, in bytes."""
RULES = 500
"""Places, skills or phrases in a policy: each intent keeps its policy."""
WAIT_MS = (1_000, 30 * 86_400_000)
TOKENS = 32
"""Valid tokens of an agent at a time."""
TOKEN_MS = (1_000, 366 * 86_400_000)
OVERLAP_MS = (1_000, 7 * 86_400_000)
"""Time for which a replaced key may stay valid."""
TTL_MS = (1_000, 7 * 86_400_000)
AGENT_RESERVES_MS = (1_000, 86_400_000)
"""An agent renews what it needs for longer, and what it forgets is free the next day."""
DEPTH = 32
WHOLE = 2**53 - 1
"""Every reader of JSON keeps whole numbers exactly up to here."""


def _unfit(field: str, why: str) -> Refusal:
    return Refusal("invalid_field", f"{field} {why}", path=field)


def check_text(field: str, text: str, most: int, *, least: int = 0) -> Refusal | None:
    """Refuse a text that cannot be stored and shown, or is too short or too long."""
    if len(text) > most:
        return _unfit(field, f"has {len(text)} characters; at most {most} are allowed")
    unwritable = None if text.isascii() else check_unicode(field, text)
    if unwritable is None and least and not _shows(text, least):
        return _unfit(field, "is empty; give it a text")
    return unwritable


def _shows(text: str, least: int) -> bool:
    """True if a text has a visible character; blanks and invisible characters are none."""
    if len(text) < least:
        return False
    return text[0].isalnum() or any(one.isprintable() and not one.isspace() for one in text)


def check_unicode(field: str, text: str) -> Refusal | None:
    """Refuse a text that cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"character {error.start + 1} is half of a surrogate pair"
        return _unfit(field, f"is not valid Unicode: {half}")
    return None


def check_count(field: str, items: Sized, most: int) -> Refusal | None:
    """Refuse too many items."""
    if len(items) <= most:
        return None
    return _unfit(field, f"has {len(items)} items; at most {most} are allowed")


def faults_of_words(field: str, words: tuple[str, ...]) -> Iterator[Refusal | None]:
    """Faults of skills, constraints or places: too many, or one that is empty or too long."""
    yield check_count(field, words, SKILLS)
    for index, word in enumerate(words):
        yield check_text(f"{field}[{index}]", word, SKILL, least=1)


def check_texts(field: str, texts: Sequence[str], most: int, *, least: int = 0) -> Refusal | None:
    """Refuse too many texts, or one that is too short or too long."""
    if not texts:
        return None
    faults = (
        check_text(f"{field}[{index}]", text, most, least=least) for index, text in enumerate(texts)
    )
    return check_count(field, texts, LINKS) or next(filter(None, faults), None)


def check_range(field: str, value: int, least: int, most: int) -> Refusal | None:
    """Refuse a number out of range."""
    if least <= value <= most:
        return None
    return _unfit(field, f"is {value}; it must be from {least} to {most}")


def check_duration(
    what: str, value: int, least: int, most: int, *, path: str = ""
) -> Refusal | None:
    """Refuse a duration, in milliseconds and in this field, that is out of range."""
    if least <= value <= most:
        return None
    return Refusal(
        "invalid_field",
        f"{what} is {duration(value)} long; it must be from {duration(least)} to {duration(most)}",
        path=path,
    )


def check_json(field: str, value: object) -> Refusal | None:
    """Refuse a parsed JSON value that cannot be written again without loss."""
    if not value:
        return None
    level: list[object] = [value]
    for _ in range(DEPTH + 1):
        inside: list[object] = []
        for part in level:
            refusal = _check_part(field, part, inside)
            if refusal is not None:
                return refusal
        if not inside:
            return None
        level = inside
    return _unfit(field, f"is nested more than {DEPTH} deep")


def _check_part(field: str, part: object, inside: list[object]) -> Refusal | None:
    """Refuse a value that is invalid in itself; its parts are added to `children`."""
    if isinstance(part, str):
        return None if part.isascii() else check_unicode(field, part)
    if isinstance(part, int):
        return check_range(field, part, -WHOLE, WHOLE)
    if isinstance(part, dict):
        inside += cast(dict[object, object], part)
        inside += cast(dict[object, object], part).values()
    elif isinstance(part, list | tuple):
        inside += cast(list[object], part)
    elif isinstance(part, float) and not isfinite(part):
        return _unfit(field, f"holds {part}, which is not a number in JSON")
    return None
