"""A message as it came, before anybody knows in which dialect, and what is kept of its words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError, parse_json, to_json

SAID_OF_UNREADABLE = 1_000
"""So many characters of what is no JSON are kept for whoever looks for the reason."""
_LOOKED_BEYOND = 4_096
"""So many more are looked at: a secret must not be cut where it is kept no more."""
_WRAPPERS: Final = ("payload", "message", "content")
"""The fields of an event under which a message may come."""
_UNREAD: Final = object()


class Incoming:
    """A message as it came: bytes (JSON or CBOR), text, or an object that was parsed elsewhere.

    It is parsed when a dialect asks for that, once for all of them.
    """

    def __init__(
        self,
        raw: bytes | str | Mapping[str, Any],
        most_bytes: int = MOST_BYTES,
        *,
        any_whole: bool = False,
    ) -> None:
        self.most_bytes = most_bytes
        self.any_whole = any_whole
        self._fault: StrictJsonError | None = None
        self._value: Any = _UNREAD
        self.text = raw if isinstance(raw, bytes) else self._written(raw)
        if is_cbor_map(self.text):
            self._read_cbor()

    @property
    def is_too_large(self) -> bool:
        """Whether it is not even to be looked at."""
        return len(self.text) > self.most_bytes

    @property
    def value(self) -> Any:
        """The JSON value; the error why there is none that can be trusted."""
        # No cached_property: before Python 3.12 all of them share a lock, so that every message
        # would wait for a long one that is parsed in a thread.
        if self._value is _UNREAD:
            self._value = self._fault or self._parsed()
        return self._value

    def _parsed(self) -> Any:
        try:
            return parse_json(self.text, self.most_bytes, any_whole=self.any_whole)
        except StrictJsonError as fault:
            return fault

    def _read_cbor(self) -> None:
        """The same as JSON, which is what the ledger keeps."""
        try:
            self.text = to_json(parse_cbor(self.text, self.most_bytes))
        except StrictJsonError as fault:
            self._fault = fault

    def _written(self, raw: str | Mapping[str, Any]) -> bytes:
        if isinstance(raw, str):
            # A half surrogate pair is told by the parser, as the broken UTF-8 that it becomes.
            return raw.encode(errors="surrogatepass")
        try:
            return to_json(raw)
        except StrictJsonError as fault:
            self._fault = fault
            return ascii(raw)[: SAID_OF_UNREADABLE + _LOOKED_BEYOND].encode()


def layers(value: Any) -> Iterator[Any]:
    """A JSON value, and what may be the message in it if it is none itself."""
    yield value
    if isinstance(value, dict):
        parts = cast(Mapping[str, Any], value)
        yield from (parts.get(name) for name in _WRAPPERS)


def beginning(text: bytes) -> msgspec.Raw:
    """What is no JSON, as a JSON string of its first characters.

    It is cut to what is kept of it when its secrets are out.
    """
    most = SAID_OF_UNREADABLE + _LOOKED_BEYOND
    shown = text[: 4 * most].decode(errors="replace")[:most]
    return msgspec.Raw(msgspec.json.encode(shown))


def kept_words(incoming: Incoming) -> msgspec.Raw:
    """What the ledger keeps of a message: all of it, or its beginning where it is of unusual length
    or no JSON.
    """
    text = incoming.text
    is_whole = len(text) <= MOST_BYTES and not isinstance(incoming.value, StrictJsonError)
    return msgspec.Raw(text) if is_whole else beginning(text)
