"""A subject: the type that it names and the bead that it is about (S-MAIL-1, S-MAIL-2)."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dragoman.core.ids import check_task_id
from dragoman.protocols.agentmail.lines import unmarked
from dragoman.protocols.agentmail.words import TYPES, MessageType
from dragoman.text.ascii_case import upper

IsKnown = Callable[[str], bool]
"""Tells whether a word names a task."""

_REPLY: Final = re.compile(r"(?:(?:[Rr][Ee]|[Ff][Ww][Dd]?)\s*+:\s*+)++")
_REPLY_STARTS: Final = frozenset("rRfF")
_BEHIND_ID: Final = re.compile(r"[:\s]*+")
_WORD: Final = re.compile(r"\w++(?![-.]\w)")
"""A whole word; `DONE-ish` does not begin with the word DONE."""
_CAPITALS: Final = re.compile(rf"(?<!\w)(?<!\w[-.])(?:{'|'.join(TYPES)})(?!\w|[-.]\w)")
"""A message type as a whole word in capitals."""
_TELLING: Final = frozenset("0123456789-.")
"""A word before a colon without any of these is an id only if it names a task."""
_LONGEST_ID: Final = 128


class Subject(Struct, frozen=True, gc=False):
    """Parsed subject."""

    type: MessageType
    bead_id: str
    others: tuple[MessageType, ...] = ()
    """Further types that the subject names; strict parsing refuses them."""


def knows_none(_: str) -> bool:
    """Default of `is_known`, where no tasks are known."""
    return False


def read_subject(subject: str, is_known: IsKnown = knows_none) -> Subject:
    """Parse the type, in its place or else the first in capitals, and the id before it."""
    alone = TYPES.get(subject)
    if alone is not None:
        return Subject(alone, "")
    text = subject.strip()
    bead_id, rest = _id_and_rest(_without_reply(text), is_known)
    if bead_id and rest in TYPES:
        return Subject(TYPES[rest], bead_id)
    in_place = _leading_type(rest)
    found = _CAPITALS.finditer(text)
    capitals = [TYPES[word[0]] for word in found if _ends(text, word.end())]
    named = dict.fromkeys(([in_place] if in_place else []) + capitals)
    first, *others = named or (MessageType.UNKNOWN,)
    return Subject(first, bead_id, tuple(others))


def is_reply(subject: str) -> bool:
    """Tell whether a subject begins with `Re:` or `Fwd:`, possibly after the id."""
    text = subject.strip()
    if text.startswith("["):
        text = _behind_id(text.partition("]")[2])
    return _REPLY.match(text) is not None


def _without_reply(text: str) -> str:
    if text[:1] not in _REPLY_STARTS:
        return text
    found = _REPLY.match(text)
    return text[found.end() :] if found else text


def _behind_id(rest: str) -> str:
    """Strip blanks and colons behind a bracket."""
    return _BEHIND_ID.sub("", rest, count=1)


def _id_and_rest(text: str, is_known: IsKnown) -> tuple[str, str]:
    """Split `[id] rest` or `id: rest`; a text without an id is all rest."""
    if text.startswith("["):
        inner, closed, rest = text[1:].partition("]")
        inner = unmarked(inner.strip())
        if closed and upper(inner) not in TYPES and len(inner.split()) <= 1:
            return inner, _without_reply(_behind_id(rest))
        return "", text
    word, colon, rest = text.partition(":")
    word = unmarked(word.rstrip())
    if colon and _is_id(word, is_known) and (rest[:1].strip() == "" or _leading_type(rest)):
        return word, rest.strip()
    return "", text


def _is_id(word: str, is_known: IsKnown) -> bool:
    if len(word) > _LONGEST_ID or upper(word) in TYPES or check_task_id(word) is not None:
        return False
    return not _TELLING.isdisjoint(word) or is_known(word)


def _leading_type(text: str) -> MessageType | None:
    """Return the type with which a text begins, in any case, or None."""
    found = _WORD.match(text)
    if found is None or not _ends(text, found.end()):
        return None
    return TYPES.get(upper(found[0]))


def _ends(text: str, end: int) -> bool:
    """Tell whether a word ends here; a combining accent belongs to the letter before it."""
    return not unicodedata.category(text[end : end + 1] or " ").startswith("M")
