"""The redactor: masks secrets in text, JSON values, and text that comes in pieces.

Each becomes `[REDACTED:kind:digest]`. The digest is keyed: equal secrets look equal, and guessing
does not reveal one. Text that was redacted once stays as it is.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.text.redact.finder import Finder, Masked, placeholder
from dragoman.text.redact.known import Secret
from dragoman.text.redact.likelihood import is_placeholder, looks_random
from dragoman.text.redact.named_values import VARIANT_FIELDS, is_option, kind_of_key, kind_of_name
from dragoman.text.redact.positional_secrets import LOGIN_KIND, find_argument_passwords, is_password
from dragoman.text.redact.private_keys import (
    NO_OPEN_KEY,
    PRIVATE_KEY,
    key_prefix_length,
    lines_since_key_start,
)
from dragoman.text.redact.rules import VARIABLES
from dragoman.text.redact.stream import Stream
from dragoman.text.strict_json import child_path

_DESCRIBING_FIELDS: Final = {"value": ("name", "key"), "text": ("element",)}
"""Field -> fields beside it that describe it; a browser types `text` into an `element`."""
_FIELD_SUFFIX: Final = " field"
"""A `Password field` holds the password, and nothing about it."""
_PAIR: Final = 2
_REMEMBERED: Final = 1_024
"""Number of keys whose redaction is cached: the same ones come again and again."""
_CACHED_TEXTS: Final = 32
_SHORT: Final = 16_384
"""Longest text whose redaction is cached: the words of a message are also in its commands."""


class MaskedLine(Struct, frozen=True):
    """A redacted line, the kinds of its secrets, and the state for the next line."""

    text: str
    kinds: tuple[str, ...]
    since: int
    """Lines since the last one of an open private key; NO_OPEN_KEY: none is open."""


class MaskedTree(Struct, frozen=True):
    """A redacted JSON value, and the places of its secrets."""

    value: Any
    found: tuple[tuple[str, str], ...] = ()
    """Path and kind of each."""


class Redactor:
    """Masks secrets. Several threads may use it at once."""

    def __init__(
        self, known: Sequence[Secret] = (), key: bytes = b"", *, known_only: bool = False
    ) -> None:
        """`key` is the key of the digests; `known_only` turns the rules off."""
        self._known: Sequence[Secret] = ()
        self._key = key
        self._known_only = known_only
        self.learn(*known)

    def learn(self, *secrets: Secret) -> None:
        """Mask these values, too, for everybody who has this redactor."""
        known = (*self._known, *(one for one in secrets if one not in self._known))
        self._finder = Finder(known, self._key, known_only=self._known_only)
        self._known = known
        self._redact_key_cached = lru_cache(_REMEMBERED)(self.text)
        self._redact_cached = lru_cache(_CACHED_TEXTS)(self.text)

    def knowing(self, *secrets: Secret) -> "Redactor":
        """Return a redactor that knows these values, too."""
        known = (*self._known, *secrets)
        return Redactor(known, self._key, known_only=self._known_only)

    def text(self, text: str) -> Masked:
        """Redact a whole text."""
        return self._finder.mask(text)

    def stream(self, carry_over: str = "") -> Stream:
        """Redact a text that comes in pieces; `carry_over` is that of an earlier stream of the same
        text.
        """
        return Stream(self._finder, carry_over)

    def line(self, line: str, lines_since: int = NO_OPEN_KEY) -> MaskedLine:
        """Redact a line that is recorded at once; `lines_since` is the state after the line
        before."""
        size = 0
        if lines_since != NO_OPEN_KEY:
            size, lines_since = key_prefix_length(line, lines_since)
        rest, text, kinds = line[size:], "", list[str]()
        if size:
            digest = self._finder.digest(_as_bytes(line[:size]))
            text, kinds = placeholder(PRIVATE_KEY, digest), [PRIVATE_KEY]
        masked = self.text(rest)
        kinds += (one.kind for one in masked.found)
        if not self._known_only and (begins := lines_since_key_start(rest)) != NO_OPEN_KEY:
            lines_since = begins
        return MaskedLine(text + masked.text, tuple(kinds), lines_since)

    def may_contain(self, data: bytes) -> bool:
        """Check whether a text, or JSON, may contain a secret; a no is quick and certain."""
        return self._finder.may_contain(data)

    def knows(self, data: bytes) -> bool:
        """Check whether a known value is in a text, or may be."""
        return self._finder.known.matches(data)

    def tree(self, value: Any, path: str = "") -> MaskedTree:
        """Redact a JSON value: its texts, and values behind the key of a secret. `path` is a prefix
        for the paths of findings.
        """
        found = list[tuple[str, str]]()
        walked = self._redact_value(value, path, "", found)
        return MaskedTree(walked, tuple(found)) if found else MaskedTree(value)

    def _redact_value(self, value: Any, path: str, name: str, found: list[tuple[str, str]]) -> Any:
        if isinstance(value, str):
            text, kinds = self._redact_named(name, value)
            found += ((path, kind) for kind in kinds)
            return text
        if isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            return {
                self._redact_key(key, path, found): self._redact_value(
                    item, child_path(path, key), _field_name(fields, key, name), found
                )
                for key, item in fields.items()
            }
        if isinstance(value, list | tuple):
            items = cast(Sequence[Any], value)
            named = enumerate(zip(items, _item_names(items, name), strict=False))
            walked = [
                self._redact_value(item, child_path(path, at), of, found)
                for at, (item, of) in named
            ]
            return walked if self._known_only else self._redact_arguments(walked, path, found)
        return value

    def _redact_arguments(
        self, items: list[Any], path: str, found: list[tuple[str, str]]
    ) -> list[Any]:
        """Mask the passwords in a list of arguments."""
        texts = [_as_bytes(item) if isinstance(item, str) else b"" for item in items]
        for number, start in find_argument_passwords(texts):
            before, secret = texts[number][:start], texts[number][start:]
            instead = placeholder(LOGIN_KIND, self._finder.digest(secret))
            items[number] = before.decode(errors="surrogatepass") + instead
            found.append((child_path(path, number), LOGIN_KIND))
        return items

    def _redact_key(self, key: str, path: str, found: list[tuple[str, str]]) -> str:
        masked = self._redact_key_cached(key)
        found += ((path, one.kind) for one in masked.found)
        return masked.text

    def _redact_named(self, name: str, value: str) -> tuple[str, list[str]]:
        """Redact a text behind a key; the kinds of its secrets."""
        masked = self._redact_cached(value) if len(value) <= _SHORT else self.text(value)
        kind = "" if self._known_only or not name else kind_of_key(name)
        is_secret = is_password if name in VARIABLES else looks_random
        if kind and is_secret(masked.text):
            digest = self._finder.digest(_as_bytes(value))
            return placeholder(kind, digest), [kind]
        return masked.text, [one.kind for one in masked.found]


def _field_name(fields: dict[str, Any], key: str, name: str) -> str:
    """Name of an object's field: its key, another field that describes it, or the name of the
    object where the key only says which of several it is.
    """
    by = _DESCRIBING_FIELDS.get(key.lower(), ())
    description = next((value for one, value in fields.items() if one.lower() in by), None)
    if isinstance(description, str):
        return description.removesuffix(_FIELD_SUFFIX)
    return name if key.lower() in VARIANT_FIELDS and kind_of_key(name) else key


def _item_names(items: Sequence[Any], name: str) -> Iterator[str]:
    """Names of a list's items: that of the list, the option before an item, or the first of a
    pair."""
    is_pair = len(items) == _PAIR
    yield name
    for item in items:
        is_text = isinstance(item, str)
        names_next = is_text and (is_option(item) or (is_pair and kind_of_key(item)))
        yield item if names_next else name


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def is_secret_variable(name: str, value: str) -> bool:
    """Check whether an environment variable holds a secret, by its name or its value."""
    if kind_of_name(name):
        return not is_placeholder(value) and not value.startswith(("/", "."))
    return bool(Redactor().text(value).found)
