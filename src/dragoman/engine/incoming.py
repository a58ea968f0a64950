"""A message as it came, before anybody knows in which dialect, and what is kept of its words."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError, parse_json, to_json

SAID_OF_UNREADABLE = 1_000
"""Number of characters that are kept of a message that is not JSON, to find out the reason."""
_LOOKED_BEYOND = 4_096
"""Number of further characters that are redacted: truncation must not cut a secret in two."""
_WRAPPERS: Final = ("payload", "message", "content")
"""Fields of an event in which a message may be wrapped."""
_UNREAD: Final = object()


class Incoming:
    """A message as received: bytes (JSON or CBOR), text, or an object that was parsed elsewhere.

    It is parsed when a dialect asks for its value, once for all of them.
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
        """True if it is longer than anything that is parsed."""
        return len(self.text) > self.most_bytes

    @property
    def value(self) -> Any:
        """The JSON value, or the error that its parser found."""
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
        """Transcode to JSON, which is what the ledger keeps."""
        try:
            self.text = to_json(parse_cbor(self.text, self.most_bytes))
        except StrictJsonError as fault:
            self._fault = fault

    def _written(self, raw: str | Mapping[str, Any]) -> bytes:
        if isinstance(raw, str):
            # An unpaired surrogate is reported by the parser, as the broken UTF-8 that it becomes.
            return raw.encode(errors="surrogatepass")
        try:
            return to_json(raw)
        except StrictJsonError as fault:
            self._fault = fault
            return ascii(raw)[: SAID_OF_UNREADABLE + _LOOKED_BEYOND].encode()


def layers(value: Any) -> Iterator[Any]:
    """A JSON value, and the values of its fields in which a message may be wrapped."""
    yield value
    if isinstance(value, dict):
        parts = cast(Mapping[str, Any], value)
        yield from (parts.get(name) for name in _WRAPPERS)


def beginning(text: bytes) -> msgspec.Raw:
    """The first characters of a text that is not JSON, as a JSON string.

    It is truncated to what is kept after its secrets are masked.
    """
    most = SAID_OF_UNREADABLE + _LOOKED_BEYOND
    shown = text[: 4 * most].decode(errors="replace")[:most]
    return msgspec.Raw(msgspec.json.encode(shown))


def kept_words(incoming: Incoming) -> msgspec.Raw:
    """The text that the ledger keeps: all of it, or its first characters if it is very long or not
    JSON."""
    text = incoming.text
    is_whole = len(text) <= MOST_BYTES and not isinstance(incoming.value, StrictJsonError)
    return msgspec.Raw(text) if is_whole else beginning(text)
