"""Values that the hub knows to be secret, found however they are written down."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from dragoman.text.linear import Anywhere, Linear, literally
from dragoman.text.redact.broken import Broken

SHORTEST: Final = 6
"""A shorter value would be found in ordinary words."""
_SHORTEST_PART: Final = 12
"""So long a piece of a value must be to be looked for by itself."""
_UNRESERVED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_LEFT_IN_URLS: Final = (b"", b"/", b"!*'()")
"""What programs leave as it is in a URL besides: some nothing, some the slash, some these."""
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_SPILL: Final = 3
"""So many characters beside a value in Base64 are partly made of it."""


class Secret(Struct, frozen=True):
    """A value that nobody is to see."""

    kind: str
    """What it is, in small letters, digits and underscores: a placeholder shows that."""
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.kind!r}, …)"


class Known:
    """Finds values in any of their spellings: plain, in JSON, in a URL, in Base64, in hexadecimal.

    A value of several lines is found by any of its longer lines, too, and one that is long enough
    although it was broken over lines.
    """

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._forms: dict[bytes, tuple[Secret, bool]] = {}
        for secret in secrets:
            if len(secret.value) < SHORTEST:
                continue
            for form, is_base64 in _spellings(secret.value.encode(errors="surrogatepass")):
                self._forms.setdefault(form, (secret, is_base64))
        self.longest_broken = max(
            (len(form) for form in self._forms if form.split()[1:]), default=0
        )
        """How long the longest spelling is that has white space in it."""
        self.longest = max(map(len, self._forms), default=0)
        pattern = b"|".join(map(literally, self._forms))
        self._search = Linear(pattern, longest=True, captures=False) if self._forms else None
        self._any = Anywhere(pattern) if self._forms else None
        self.broken = Broken(self._forms)

    def spans(self, data: bytes) -> Iterator[tuple[int, int, Secret]]:
        """Where they are."""
        if self._search is None:
            return
        whole = (found.span() for found in self._search.finditer(data))
        pieces = ((start, end, data[start:end]) for start, end in whole)
        for start, end, form in chain(pieces, self.broken.spans(data)):
            secret, is_base64 = self._forms[form]
            yield *(_with_spill(data, start, end) if is_base64 else (start, end)), secret

    def are_in(self, data: bytes) -> bool:
        """Whether there is one at all."""
        return self._any is not None and (self._any.is_in(data) or self.broken.may_be_in(data))


def _spellings(value: bytes) -> Iterator[tuple[bytes, bool]]:
    """Every way to write a value, and whether it is Base64, which spills over its ends."""
    yield value, False
    text = value.decode(errors="surrogatepass")
    for as_ascii in (True, False):
        once = json.dumps(text, ensure_ascii=as_ascii)[1:-1]
        yield once.encode(errors="surrogatepass"), False
        yield json.dumps(once)[1:-1].encode(), False
    yield text.replace("/", "\\/").encode(errors="surrogatepass"), False
    for left in _LEFT_IN_URLS:
        for hexadecimal in (b"%%%02X", b"%%%02x"):
            in_url = _percent(value, left, hexadecimal)
            yield in_url, False
            yield in_url.replace(b"%20", b"+"), False
    yield value.hex().encode(), False
    yield value.hex().upper().encode(), False
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            form = _middle(encode(bytes(before) + value), before, len(value))
            if len(form) >= SHORTEST:
                yield form, True
    lines = [line.strip() for line in value.split(b"\n")]
    for line in lines if len(lines) > 1 else ():
        if len(line) >= _SHORTEST_PART and not line.startswith(b"-----"):
            yield line, False


def _percent(value: bytes, left: bytes, hexadecimal: bytes) -> bytes:
    return b"".join(
        bytes((byte,)) if byte in _UNRESERVED + left else hexadecimal % byte for byte in value
    )


def _middle(encoded: bytes, before: int, size: int) -> bytes:
    """The characters of a Base64 text that are made of a value alone, whatever stands beside it."""
    first = -(-before * 8 // 6)
    last = (before + size) * 8 // 6
    return encoded[first:last]


def _with_spill(data: bytes, start: int, end: int) -> tuple[int, int]:
    least, most = max(0, start - _SPILL), min(len(data), end + _SPILL)
    while start > least and data[start - 1] in _BASE64:
        start -= 1
    while end < most and data[end] in _BASE64:
        end += 1
    return start, end
