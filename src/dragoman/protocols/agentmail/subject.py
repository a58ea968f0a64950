"""A subject: the type that it names and the bead that it is about (S-MAIL-1, S-MAIL-2)."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dragoman.core.ids import check_task_id
from dragoman.protocols.agentmail.lines import strip_markup
from dragoman.protocols.agentmail.words import MESSAGE_TYPES, MessageType
from dragoman.text.ascii_case import ascii_upper

IsKnown = Callable[[str], bool]
"""Tells whether a word names a task."""

_REPLY_PREFIX: Final = re.compile(r"(?:(?:[Rr][Ee]|[Ff][Ww][Dd]?)\s*+:\s*+)++")
_REPLY_STARTS: Final = frozenset("rRfF")
_ID_SEPARATOR: Final = re.compile(r"[:\s]*+")
_LEADING_WORD: Final = re.compile(r"\w++(?![-.]\w)")
"""A whole word; `DONE-ish` does not begin with the word DONE."""
_CAPITALIZED_TYPE: Final = re.compile(
    rf"(?<!\w)(?<!\w[-.])(?:{'|'.join(MESSAGE_TYPES)})(?!\w|[-.]\w)"
)
"""A message type as a whole word in capitals."""
_ID_CHARACTERS: Final = frozenset("0123456789-.")
"""A word before a colon without any of these is an id only if it names a task."""
_MAX_ID_CHARS: Final = 128


class Subject(Struct, frozen=True, gc=False):
    """Parsed subject."""

    type: MessageType
    bead_id: str
    other_types: tuple[MessageType, ...] = ()
    """Further types that the subject names; strict parsing refuses them."""


def no_known_tasks(_: str) -> bool:
    """Default of `is_known`, where no tasks are known."""
    return False


def parse_subject(subject: str, is_known: IsKnown = no_known_tasks) -> Subject:
    """Parse the type, in its place or else the first in capitals, and the id before it."""
    whole = MESSAGE_TYPES.get(subject)
    if whole is not None:
        return Subject(whole, "")
    text = subject.strip()
    bead_id, rest = _split_id(_strip_reply_prefix(text), is_known)
    if bead_id and rest in MESSAGE_TYPES:
        return Subject(MESSAGE_TYPES[rest], bead_id)
    leading = _leading_type(rest)
    matches = _CAPITALIZED_TYPE.finditer(text)
    capitals = [MESSAGE_TYPES[word[0]] for word in matches if _is_word_end(text, word.end())]
    types = dict.fromkeys(([leading] if leading else []) + capitals)
    first, *others = types or (MessageType.UNKNOWN,)
    return Subject(first, bead_id, tuple(others))


def is_reply(subject: str) -> bool:
    """Tell whether a subject begins with `Re:` or `Fwd:`, possibly after the id."""
    text = subject.strip()
    if text.startswith("["):
        text = _strip_id_separator(text.partition("]")[2])
    return _REPLY_PREFIX.match(text) is not None


def _strip_reply_prefix(text: str) -> str:
    if text[:1] not in _REPLY_STARTS:
        return text
    prefix = _REPLY_PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def _strip_id_separator(rest: str) -> str:
    """Strip blanks and colons behind a bracket."""
    return _ID_SEPARATOR.sub("", rest, count=1)


def _split_id(text: str, is_known: IsKnown) -> tuple[str, str]:
    """Split `[id] rest` or `id: rest`; a text without an id is all rest."""
    if text.startswith("["):
        inner, closed, rest = text[1:].partition("]")
        inner = strip_markup(inner.strip())
        if closed and ascii_upper(inner) not in MESSAGE_TYPES and len(inner.split()) <= 1:
            return inner, _strip_reply_prefix(_strip_id_separator(rest))
        return "", text
    word, colon, rest = text.partition(":")
    word = strip_markup(word.rstrip())
    if colon and _is_bead_id(word, is_known) and (rest[:1].strip() == "" or _leading_type(rest)):
        return word, rest.strip()
    return "", text


def _is_bead_id(word: str, is_known: IsKnown) -> bool:
    if (
        len(word) > _MAX_ID_CHARS
        or ascii_upper(word) in MESSAGE_TYPES
        or check_task_id(word) is not None
    ):
        return False
    return not _ID_CHARACTERS.isdisjoint(word) or is_known(word)


def _leading_type(text: str) -> MessageType | None:
    """Return the type with which a text begins, in any case, or None."""
    found = _LEADING_WORD.match(text)
    if found is None or not _is_word_end(text, found.end()):
        return None
    return MESSAGE_TYPES.get(ascii_upper(found[0]))


def _is_word_end(text: str, end: int) -> bool:
    """Tell whether a word ends here; a combining accent belongs to the letter before it."""
    return not unicodedata.category(text[end : end + 1] or " ").startswith("M")
