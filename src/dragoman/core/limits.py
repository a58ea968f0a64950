"""Bounds of what a command may carry (S-LIMIT): beyond them a clear refusal, never a silent cut."""

from collections.abc import Sized

from dragoman.core.errors import Refusal

TITLE = 500
BODY = 200_000
TEXT = 65_536
REASON = 4_000
LINKS = 1_000
ATTEMPTS = 1_000
TTL_MS = (1_000, 7 * 86_400_000)


def check_text(field: str, text: str, most: int, *, least: int = 0) -> Refusal | None:
    """None when the text can be stored and shown and is neither too short nor too long."""
    if len(text) > most:
        return Refusal(
            "invalid_field", f"{field} has {len(text)} characters; at most {most} are allowed"
        )
    if len(text) < least or (least and not text.strip()):
        return Refusal("invalid_field", f"{field} is empty; give it a text")
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return Refusal(
            "invalid_field",
            f"{field} is not valid Unicode: character {error.start + 1} is half of a pair",
        )
    return None


def check_count(field: str, items: Sized, most: int) -> Refusal | None:
    """None when there are not too many."""
    if len(items) <= most:
        return None
    return Refusal("invalid_field", f"{field} has {len(items)} items; at most {most} are allowed")


def check_range(field: str, value: int, least: int, most: int) -> Refusal | None:
    """None when the number lies within its bounds."""
    if least <= value <= most:
        return None
    return Refusal("invalid_field", f"{field} is {value}; it must be from {least} to {most}")
