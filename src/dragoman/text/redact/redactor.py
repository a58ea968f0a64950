"""Takes secrets out of text, of JSON values, and of text that comes in pieces.

Each becomes `[REDACTED:kind:digest]`. The digest is keyed: equal secrets look equal, and nobody can
find out by guessing what one was. Text that was redacted once stays as it is.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.text.redact.assignments import is_option, key_names_secret, names_secret
from dragoman.text.redact.blocks import PRIVATE_KEY
from dragoman.text.redact.commands import KIND, in_arguments
from dragoman.text.redact.finder import Finder, Found, placeholder
from dragoman.text.redact.forms import WHICH
from dragoman.text.redact.known import Secret
from dragoman.text.redact.lines import OVER, begun, of_key
from dragoman.text.redact.looks import is_placeholder, looks_random
from dragoman.text.redact.stream import Stream
from dragoman.text.strict_json import below

_SAID_BY: Final = {"value": ("name", "key"), "text": ("element",)}
"""A field -> those beside it that say what it is; a browser types `text` into an `element`."""
_OF_ELEMENT: Final = " field"
"""What is typed into a `Password field` is the password, and nothing about it."""
_PAIR: Final = 2
_REMEMBERED: Final = 1_024
"""Of so many keys it is known what they hold: the same ones come again and again."""
_LATELY: Final = 32
_SHORT: Final = 16_384
"""Of so many texts that are no longer than this it is known what they hold: the words of a message
stand in what it asks for, too, and are looked through once."""


class Masked(Struct, frozen=True):
    """A text without secrets, and what was taken out of it."""

    text: str
    found: tuple[Found, ...] = ()


class MaskedLine(Struct, frozen=True):
    """A line without secrets, the kinds of those it had, and what is to be known for the next."""

    text: str
    kinds: tuple[str, ...]
    since: int
    """How many lines came since the last one of a private key that has not ended; OVER: none."""


class MaskedTree(Struct, frozen=True):
    """A JSON value without secrets, and where which kind was taken out."""

    value: Any
    found: tuple[tuple[str, str], ...] = ()
    """Path and kind of each."""


class Redactor:
    """Takes secrets out. Several threads may use it at once."""

    def __init__(
        self, known: Sequence[Secret] = (), key: bytes = b"", *, known_only: bool = False
    ) -> None:
        """`key`: what the digests are keyed with; `known_only`: no rules, only what is known."""
        self._finder = Finder(known, key, known_only=known_only)
        self._known = known
        self._key = key
        self._known_only = known_only
        self._key_text = lru_cache(_REMEMBERED)(self.text)
        self._lately = lru_cache(_LATELY)(self.text)

    def knowing(self, *secrets: Secret) -> "Redactor":
        """One that knows these values, too."""
        known = (*self._known, *secrets)
        return Redactor(known, self._key, known_only=self._known_only)

    def text(self, text: str) -> Masked:
        """A whole text without secrets."""
        found = self._finder.find(text)
        if not found:
            return Masked(text)
        pieces, end = list[str](), 0
        for one in found:
            pieces += (text[end : one.start], one.placeholder)
            end = one.end
        return Masked("".join((*pieces, text[end:])), tuple(found))

    def stream(self, held: str = "") -> Stream:
        """For a text that comes in pieces; `held`: what an earlier stream of it has held back."""
        return Stream(self._finder, held)

    def line(self, line: str, since: int = OVER) -> MaskedLine:
        """A line that is kept as it comes; `since`: that of the line before it."""
        size = 0
        if since != OVER:
            size, since = of_key(line, since)
        rest, text, kinds = line[size:], "", list[str]()
        if size:
            digest = self._finder.digest(_as_bytes(line[:size]))
            text, kinds = placeholder(PRIVATE_KEY, digest), [PRIVATE_KEY]
        masked = self.text(rest)
        kinds += (one.kind for one in masked.found)
        if not self._known_only and (begins := begun(rest)) != OVER:
            since = begins
        return MaskedLine(text + masked.text, tuple(kinds), since)

    def may_hold(self, data: bytes) -> bool:
        """Whether it is worth to look into a text, also in JSON; a no is quick, and is meant."""
        return self._finder.may_hold(data)

    def knows(self, data: bytes) -> bool:
        """Whether a value that is known is in a text, or may be."""
        return self._finder.known.are_in(data)

    def tree(self, value: Any, path: str = "") -> MaskedTree:
        """A JSON value without secrets: in its texts, and where a key names one. `path`: its own,
        which the paths of what was found begin with."""
        found = list[tuple[str, str]]()
        walked = self._walked(value, path, "", found)
        return MaskedTree(walked, tuple(found)) if found else MaskedTree(value)

    def _walked(self, value: Any, path: str, name: str, found: list[tuple[str, str]]) -> Any:
        if isinstance(value, str):
            text, kinds = self._named(name, value)
            found += ((path, kind) for kind in kinds)
            return text
        if isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            return {
                self._name(key, path, found): self._walked(
                    item, below(path, key), _name_in(fields, key, name), found
                )
                for key, item in fields.items()
            }
        if isinstance(value, list | tuple):
            items = cast(Sequence[Any], value)
            named = enumerate(zip(items, _names_of(items, name), strict=False))
            walked = [self._walked(item, below(path, at), of, found) for at, (item, of) in named]
            return walked if self._known_only else self._as_command(walked, path, found)
        return value

    def _as_command(self, items: list[Any], path: str, found: list[tuple[str, str]]) -> list[Any]:
        """A list without the passwords that a program is given in it."""
        texts = [_as_bytes(item) if isinstance(item, str) else b"" for item in items]
        for number, start in in_arguments(texts):
            before, secret = texts[number][:start], texts[number][start:]
            instead = placeholder(KIND, self._finder.digest(secret))
            items[number] = before.decode(errors="surrogatepass") + instead
            found.append((below(path, number), KIND))
        return items

    def _name(self, key: str, path: str, found: list[tuple[str, str]]) -> str:
        masked = self._key_text(key)
        found += ((path, one.kind) for one in masked.found)
        return masked.text

    def _named(self, name: str, value: str) -> tuple[str, list[str]]:
        """A text that a key stands before, and the kinds of what was taken out."""
        masked = self._lately(value) if len(value) <= _SHORT else self.text(value)
        kind = "" if self._known_only or not name else key_names_secret(name)
        if kind and looks_random(masked.text):
            digest = self._finder.digest(_as_bytes(value))
            return placeholder(kind, digest), [kind]
        return masked.text, [one.kind for one in masked.found]


def _name_in(fields: dict[str, Any], key: str, name: str) -> str:
    """What a field of an object of this name is called: by its key, by another field that
    describes it, or like the object where it only says which of several it is."""
    by = _SAID_BY.get(key.lower(), ())
    said = next((said for one, said in fields.items() if one.lower() in by), None)
    if isinstance(said, str):
        return said.removesuffix(_OF_ELEMENT)
    return name if key.lower() in WHICH and key_names_secret(name) else key


def _names_of(items: Sequence[Any], name: str) -> Iterator[str]:
    """What the items of a list of this name are called: like the list, by the option before them,
    or by the first of a pair."""
    is_pair = len(items) == _PAIR
    yield name
    for item in items:
        is_text = isinstance(item, str)
        names_next = is_text and (is_option(item) or (is_pair and key_names_secret(item)))
        yield item if names_next else name


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable of the environment holds a secret, by its name or by its looks."""
    if names_secret(name):
        return not is_placeholder(value) and not value.startswith(("/", "."))
    return bool(Redactor().text(value).found)
