"""A message as received, before its dialect is known, and the text of it that the ledger keeps."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, encode_json, parse_json

UNREADABLE_CHARS_KEPT = 1_000
"""Number of characters that are kept of a message that is not JSON, to find out the reason."""
_LOOKAHEAD_CHARS = 4_096
"""Number of further characters that are redacted: truncation must not cut a secret in two."""
_ENVELOPE_FIELDS: Final = ("payload", "message", "content")
"""Fields of an event in which a message may be wrapped."""
_UNPARSED: Final = object()


class RawMessage:
    """A message as received: bytes (JSON or CBOR), text, or an object that was parsed elsewhere.

    It is parsed when a dialect asks for its value, once for all of them.
    """

    def __init__(
        self,
        raw: bytes | str | Mapping[str, Any],
        max_bytes: int = MAX_BYTES,
        *,
        allow_big_integers: bool = False,
    ) -> None:
        self.max_bytes = max_bytes
        self.allow_big_integers = allow_big_integers
        self._fault: StrictJsonError | None = None
        self._value: Any = _UNPARSED
        self.text = raw if isinstance(raw, bytes) else self._encode(raw)
        if is_cbor_map(self.text):
            self._decode_cbor()

    @property
    def is_too_large(self) -> bool:
        """True if it is longer than anything that is parsed."""
        return len(self.text) > self.max_bytes

    @property
    def value(self) -> Any:
        """The JSON value, or the error that its parser found."""
        # No cached_property: before Python 3.12 all of them share a lock, so that every message
        # would wait for a long one that is parsed in a thread.
        if self._value is _UNPARSED:
            self._value = self._fault or self._parse()
        return self._value

    def _parse(self) -> Any:
        try:
            return parse_json(self.text, self.max_bytes, allow_big_integers=self.allow_big_integers)
        except StrictJsonError as fault:
            return fault

    def _decode_cbor(self) -> None:
        """Transcode to JSON, which is what the ledger keeps."""
        try:
            self.text = encode_json(parse_cbor(self.text, self.max_bytes))
        except StrictJsonError as fault:
            self._fault = fault

    def _encode(self, raw: str | Mapping[str, Any]) -> bytes:
        if isinstance(raw, str):
            # An unpaired surrogate is reported by the parser, as the broken UTF-8 that it becomes.
            return raw.encode(errors="surrogatepass")
        try:
            return encode_json(raw)
        except StrictJsonError as fault:
            self._fault = fault
            return ascii(raw)[: UNREADABLE_CHARS_KEPT + _LOOKAHEAD_CHARS].encode()


def candidate_messages(value: Any) -> Iterator[Any]:
    """A JSON value, and the values of its fields in which a message may be wrapped."""
    yield value
    if isinstance(value, dict):
        parts = cast(Mapping[str, Any], value)
        yield from (parts.get(name) for name in _ENVELOPE_FIELDS)


def truncated_text(text: bytes) -> msgspec.Raw:
    """The first characters of a text that is not JSON, as a JSON string.

    It is truncated to what is kept after its secrets are masked.
    """
    limit = UNREADABLE_CHARS_KEPT + _LOOKAHEAD_CHARS
    shown = text[: 4 * limit].decode(errors="replace")[:limit]
    return msgspec.Raw(msgspec.json.encode(shown))


def stored_text(raw: RawMessage) -> msgspec.Raw:
    """The text that the ledger keeps: all of it, or its first characters if it is very long or not
    JSON."""
    text = raw.text
    is_whole = len(text) <= MAX_BYTES and not isinstance(raw.value, StrictJsonError)
    return msgspec.Raw(text) if is_whole else truncated_text(text)
