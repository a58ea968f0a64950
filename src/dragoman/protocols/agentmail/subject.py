"""A subject: the type that it names and the bead that it is about (S-MAIL-1, S-MAIL-2)."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from dragoman.core.ids import check_task_id
from dragoman.protocols.agentmail.words import TYPES, MessageType

IsKnown = Callable[[str], bool]
"""Whether a word names a task."""

_REPLY: Final = re.compile(r"(?:(?:re|fwd?)\s*+:\s*+)++", re.IGNORECASE | re.ASCII)
_REPLY_STARTS: Final = frozenset("rRfF")
_WORD: Final = re.compile(r"\w++")
_TELLING: Final = frozenset("0123456789-.")
"""A word before a colon that has none of these is an id only if a task is named so."""
_LONGEST_ID: Final = 128


class Subject(Struct, frozen=True, gc=False):
    """What a subject says."""

    type: MessageType
    bead_id: str
    others: tuple[MessageType, ...] = ()
    """More types that it names; strict mode wants none."""


def read_subject(subject: str, is_known: IsKnown) -> Subject:
    """The type in its place, else the first in capitals; and the id before it."""
    alone = TYPES.get(subject)
    if alone is not None:
        return Subject(alone, "")
    text = subject.strip()
    bead_id, rest = _id_and_rest(_without_reply(text), is_known)
    if bead_id and rest in TYPES:
        return Subject(TYPES[rest], bead_id)
    in_place = _leading_type(rest)
    capitals = [type for _, type in sorted(_capitals(text))]
    named = dict.fromkeys(([in_place] if in_place else []) + capitals)
    first, *others = named or (MessageType.UNKNOWN,)
    return Subject(first, bead_id, tuple(others))


def is_reply(subject: str) -> bool:
    """Whether a subject is another's with `Re:` or `Fwd:` before it, or after the id."""
    text = subject.strip()
    if text.startswith("["):
        text = text.partition("]")[2].lstrip(": \t")
    return _REPLY.match(text) is not None


def _without_reply(text: str) -> str:
    if text[:1] not in _REPLY_STARTS:
        return text
    found = _REPLY.match(text)
    return text[found.end() :] if found else text


def _id_and_rest(text: str, is_known: IsKnown) -> tuple[str, str]:
    """`[id] rest` or `id: rest`; what has no id is all rest."""
    if text.startswith("["):
        inner, closed, rest = text[1:].partition("]")
        inner = inner.strip()
        if closed and inner.upper() not in TYPES and len(inner.split()) <= 1:
            return inner, _without_reply(rest.lstrip(": \t"))
        return "", text
    word, colon, rest = text.partition(":")
    word = word.rstrip()
    if colon and _is_id(word, is_known) and (rest[:1].strip() == "" or _leading_type(rest)):
        return word, rest.strip()
    return "", text


def _is_id(word: str, is_known: IsKnown) -> bool:
    if len(word) > _LONGEST_ID or word.upper() in TYPES or check_task_id(word) is not None:
        return False
    return not _TELLING.isdisjoint(word) or is_known(word)


def _leading_type(text: str) -> MessageType | None:
    """The type with which a text begins, in any case."""
    found = _WORD.match(text)
    if found is None or _is_joined(text, found.end(), 1):
        return None
    word = found[0]
    # Not every letter whose capitals are ASCII is: ß becomes SS.
    return TYPES.get(word.upper()) if word.isascii() else None


def _capitals(text: str) -> Iterator[tuple[int, MessageType]]:
    """Where each type stands first as a whole word in capitals."""
    for word, type in TYPES.items():
        at = text.find(word)
        while at >= 0:
            if not (_is_joined(text, at - 1, -1) or _is_joined(text, at + len(word), 1)):
                yield at, type
                break
            at = text.find(word, at + 1)


def _is_joined(text: str, at: int, step: int) -> bool:
    """Whether the sign at a word's edge makes it a part of a longer word, as in `DONE-ish`."""
    return _is_letter(text, at) or (
        0 <= at < len(text) and text[at] in "-." and _is_letter(text, at + step)
    )


def _is_letter(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")
