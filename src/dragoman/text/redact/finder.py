"""Finds secrets in text: all detectors combined.

Known values, formats of credentials, named values and private keys; also in Base64, escaped, and
behind terminal colours.
"""

import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from dragoman.text.keyed_digest import keyed_digest
from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.linear_regex import AnyRegex, LinearRegex, Match
from dragoman.text.redact.known import KnownValues, Secret
from dragoman.text.redact.likelihood import MARK, PLACEHOLDER, is_only_words
from dragoman.text.redact.named_values import ASSIGNED_FORM, find_assignments
from dragoman.text.redact.normalized_text import (
    ANY_ESCAPED,
    ANY_HIDDEN,
    NormalizedText,
    join_continued_lines,
    may_have_hidden,
    remove_hidden,
    separate_at_hidden,
    sequence_payloads,
    unescape,
    unescape_lines,
)
from dragoman.text.redact.positional_secrets import (
    ANY_COMMAND,
    ANY_LOGIN,
    find_command_passwords,
    find_cookies,
    find_headers,
    find_url_logins,
    find_user_passwords,
    find_variables,
)
from dragoman.text.redact.private_keys import KEY_STARTS, find_private_keys
from dragoman.text.redact.rules import ANY_RULE, find_prefixed

_ENCODED: Final = LinearRegex(rb"[A-Za-z0-9+/]{27,}={0,2}|[A-Za-z0-9_-]{40,}={0,2}", captures=False)
"""Long enough to hold a credential of twenty characters in Base64, and longer than a UUID."""
_BREAK: Final = rb"(?:[ \t]{0,8}(?:[\r\n]|\\{1,3}[nr])){1,8}[ \t]{0,16}"
"""Line break, also as JSON writes it, with blanks beside it and empty lines behind it."""
_LINE: Final = rb"[A-Za-z0-9+/]{16,}"
_LINES: Final = rb"(?:" + _LINE + _BREAK + rb")+"
_WRAPPED: Final = LinearRegex(
    _LINES + rb"(?:[A-Za-z0-9+/]+={0,2}(?:[ \t]{0,8}[\r\n]|[\\\"'<]|[ \t]{0,8}\z))?", captures=False
)
"""Base64 in lines, each of which may be too short to show anything."""
_ENDS: Final = lazy_regex(rb"[\s\"'<]+|\\+[nr]?")
"""Separators between such lines."""
_OPEN_LINES: Final = LinearRegex(
    rb"(?:" + _LINES + rb"|" + _LINE + rb"[ \t]{1,8})(?:[A-Za-z0-9+/]+={0,2}[ \t]{0,8})?\z",
    captures=False,
)
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_GROUP: Final = 4
"""Characters of Base64 that are decoded together."""
_FIRST: Final = 3 * _GROUP
"""Characters that a run always has behind a foreign prefix."""
_MAX_DEPTH: Final = 2
"""Depth of encodings within encodings that are searched."""
_DIGEST_BYTES: Final = 4
_MAX_ROUNDS: Final = 8
"""Rounds in which adjacent secrets, each hidden by its neighbour, are found one after the other."""
_JOINING: Final = lazy_regex(r"[^\t\n !-*,.:-@\[-^`{-~]")
_ENDING: Final = lazy_regex(r"[\s\"'<>/@\\]")

_BY_FORM: Final = b"|".join((ANY_RULE, *(begin.encode() for begin in KEY_STARTS)))
_BY_PLACE: Final = rb"|".join((ANY_LOGIN, ANY_COMMAND))
_BY_NAME: Final = rb"(?i:" + ASSIGNED_FORM + rb")"
_FORM, _PLACE, _NAME, _HIDDEN, _ESCAPED = range(5)
_FAMILIES: Final = AnyRegex(_BY_FORM, _BY_PLACE, _BY_NAME, ANY_HIDDEN, ANY_ESCAPED)
"""Every secret needs a match of one of these, unless it is encoded."""
_ANY_ENCODED: Final = AnyRegex(_ENCODED.pattern)
"""Encoded text has an expression of its own: together they would have far too many states."""


class Found(NamedTuple):
    """A secret that was found."""

    kind: str
    digest: str
    start: int
    """Start and end in the text."""
    end: int

    @property
    def placeholder(self) -> str:
        """Placeholder of this secret."""
        return placeholder(self.kind, self.digest)


def placeholder(kind: str, digest: str) -> str:
    """Placeholder of a secret."""
    return f"[REDACTED:{kind}:{digest}]"


class Masked(Struct, frozen=True):
    """A redacted text, and the secrets that were found."""

    text: str
    found: tuple[Found, ...] = ()


class _Span(NamedTuple):
    """A secret in bytes."""

    start: int
    end: int
    rank: int
    """Of two that overlap the lower rank gives the kind, or else the longer one."""
    kind: str
    secret: bytes
    """Input of the digest: the secret itself, however it is written."""


_Detector = Callable[[bytes], Iterable[tuple[int, int, str]]]

_DETECTORS: Final[tuple[tuple[_Detector, int], ...]] = (
    (find_private_keys, _FORM),
    (find_prefixed, _FORM),
    (find_url_logins, _PLACE),
    (find_headers, _PLACE),
    (find_cookies, _PLACE),
    (find_user_passwords, _PLACE),
    (find_command_passwords, _PLACE),
    (find_variables, _PLACE),
    (find_assignments, _NAME),
)
"""Detectors in the order of how specific they are, each with its family. Which families can match
is found out once per text: in most texts few can, and each detector would search for its own."""


class Finder:
    """Finds secrets. Several threads may use it at once."""

    def __init__(self, known: Sequence[Secret], key: bytes, *, known_only: bool) -> None:
        self.known = KnownValues(known)
        self._key = key
        self.known_only = known_only
        """True if rules are off."""

    def mask(self, text: str) -> Masked:
        """Replace the secrets of a text, also those that show only when others are masked."""
        found = self.find(text)
        masked = tuple(found)
        for _ in range(_MAX_ROUNDS):
            if not any(_may_hide_another(text, one) for one in found):
                break
            text = replace_found(text, found)
            found = self.find(text)
            masked += tuple(found)
        return Masked(replace_found(text, found) if found else text, masked)

    def find(self, text: str) -> list[Found]:
        """Find the secrets of a text, in their order; no two overlap."""
        data = text.encode(errors="surrogatepass")
        families = self._families(data)
        if not families and not self._may_match(data, ()):
            return []
        spans = self._find_normalized(data, _MAX_DEPTH, families)
        spans = _without_taken(spans, _find_placeholders(data))
        places = _character_spans(data, spans)
        return [
            Found(span.kind, self.digest(span.secret), start, end)
            for (start, end), span in zip(places, spans, strict=True)
        ]

    def may_contain(self, data: bytes) -> bool:
        """Check whether a text, or JSON, may contain a secret; a no is quick and certain."""
        return self._may_match(data, self._families(data))

    def digest(self, secret: bytes) -> str:
        """Digest that is equal for equal secrets, however they are written."""
        return keyed_digest(self._key, unescape(secret))[:_DIGEST_BYTES].hex()

    def _families(self, data: bytes) -> Sequence[int]:
        """Families of secrets that can be in a text."""
        return () if self.known_only else _FAMILIES.which(data)

    def _may_match(self, data: bytes, families: Sequence[int]) -> bool:
        if families or self.known.matches(data):
            return True
        if self.known_only:  # colours may still hide known values
            return bool(self.known.longest) and may_have_hidden(data)
        if _ANY_ENCODED.matches(data):
            return True
        wrapped = _find_wrapped(data)
        return any(len(_split_lines(data[slice(*found.span())])) > 1 for found in wrapped)

    def _find_normalized(
        self, data: bytes, depth: int, families: Sequence[int] | None = None
    ) -> list[_Span]:
        """Find the secrets of a text without its hidden characters, and with them as separators.

        `families`: those that can match, where they are known.
        """
        if families is None:
            families = self._families(data)
        is_hidden = may_have_hidden(data) if self.known_only else _HIDDEN in families
        if not is_hidden:
            return _merge_spans(self._detect(data, depth, families))
        seen, inside = remove_hidden(data), sequence_payloads(data)
        found = _to_original(seen, _merge_spans(self._detect(seen.data, depth)))
        if not self.known_only:  # known values need no border
            parted = separate_at_hidden(data)
            found = _merge_readings(
                _to_original(parted, _merge_spans(self._detect(parted.data, 0))), found
            )
        if inside is not None:
            found = _merge_spans(
                [*found, *_to_original(inside, self._find_normalized(inside.data, depth))]
            )
        return found

    def _detect(
        self, data: bytes, depth: int, families: Sequence[int] | None = None
    ) -> list[_Span]:
        spans = [
            _Span(start, end, 0, secret.kind, secret.value.encode(errors="surrogatepass"))
            for start, end, secret in self.known.find(data)
        ]
        if self.known_only:
            return spans
        families = self._families(data) if families is None else families
        for rank, (detect, family) in enumerate(_DETECTORS, start=1):
            if family in families:
                spans += (_Span(s, e, rank, kind, data[s:e]) for s, e, kind in detect(data))
        if depth:
            spans += self._find_escaped(data, depth, is_escaped=_ESCAPED in families)
            spans += self._find_encoded(data, depth)
        return spans

    def _find_escaped(self, data: bytes, depth: int, *, is_escaped: bool) -> list[_Span]:
        """Find secrets in lines that differ when unescaped, or joined."""
        found = list[_Span]()
        unescaped = unescape_lines(data) if is_escaped else None
        for reading in filter(None, (unescaped, join_continued_lines(data))):
            found += _to_original(reading, self._find_normalized(reading.data, depth - 1))
        return found

    def _find_encoded(self, data: bytes, depth: int) -> Iterator[_Span]:
        for found in _ENCODED.finditer(data):
            start, end = found.span()
            if best := self._find_decoded(data[start:end], depth):
                yield _Span(start, end, len(_DETECTORS) + 1, best.kind, best.secret)
        for found in _find_wrapped(data):
            start, end = found.span()
            lines = _split_lines(data[start:end])
            if len(lines) > 1 and (best := self._find_decoded(b"".join(lines), depth)):
                end = data.rindex(lines[-1], start, end) + len(lines[-1])
                yield _Span(start, end, len(_DETECTORS) + 1, best.kind, best.secret)

    def _find_decoded(self, run: bytes, depth: int) -> _Span | None:
        """Best secret in a run of Base64, whatever foreign prefix it has."""
        for inside in _decode_run(run):
            if hits := self._detect(inside, depth - 1):
                return min(hits, key=lambda span: (span.rank, span.start))
        return None


def open_base64_start(data: bytes) -> int:
    """Start of lines of Base64 that may go on when more text comes; -1: none."""
    found = _OPEN_LINES.search(data)
    return -1 if found is None else found.start()


def _find_wrapped(data: bytes) -> Iterable[Match]:
    """Runs of Base64 in lines, which need a line break."""
    is_broken = b"\n" in data or b"\r" in data or b"\\" in data
    return _WRAPPED.finditer(data) if is_broken else ()


def _split_lines(data: bytes) -> list[bytes]:
    return [line for line in _ENDS.split(data) if line]


def _decode_run(run: bytes) -> Iterator[bytes]:
    """Texts that a run of Base64 may decode to: its first characters may be foreign."""
    run = run.rstrip(b"=").translate(_URL_SAFE)
    for before in range(_GROUP):
        if not binascii.a2b_base64(run[before : before + _FIRST]).isascii():
            continue  # this rules out most runs at once
        part = run[before:]
        whole = part[: len(part) - (len(part) % _GROUP == 1)]
        inside = binascii.a2b_base64(whole + b"=" * (-len(whole) % _GROUP))
        if inside.isascii():
            yield inside


def _to_original(reading: NormalizedText, spans: Iterable[_Span]) -> list[_Span]:
    """Map spans of a normalized text to the original."""
    return [
        span._replace(start=reading.original_start(span.start), end=reading.original_end(span.end))
        for span in spans
    ]


def _find_placeholders(data: bytes) -> list[tuple[int, int]]:
    """Spans of placeholders."""
    if MARK not in data:
        return []
    return [found.span() for found in PLACEHOLDER.finditer(data)]


def _without_taken(spans: list[_Span], taken: list[tuple[int, int]]) -> list[_Span]:
    """Trim spans at taken ones; in their middle they may contain taken ones."""
    if not taken:
        return spans
    starts = [start for start, _ in taken]
    kept = list[_Span]()
    for span in spans:
        start, end = span.start, span.end
        while (at := bisect_right(starts, start) - 1) >= 0 and start < taken[at][1]:
            start = taken[at][1]
        while (at := bisect_left(starts, end) - 1) >= 0 and start < end <= taken[at][1]:
            end = taken[at][0]
        if start < end:
            kept.append(span._replace(start=start, end=end))
    return kept


def _may_hide_another(text: str, found: Found) -> bool:
    """Check whether another secret may show when this one is masked: one that goes on with what
    stands directly beside it, or behind a character in it at which a value ends.
    """
    before, behind = text[found.start - 1 : found.start], text[found.end : found.end + 1]
    if _JOINING.match(before) or _JOINING.match(behind):
        return True
    return _ENDING.search(text, found.start, found.end) is not None


def replace_found(text: str, found: Sequence[Found]) -> str:
    """Replace what was found in a text by its placeholders."""
    pieces, end = list[str](), 0
    for one in found:
        pieces += (text[end : one.start], one.placeholder)
        end = one.end
    return "".join((*pieces, text[end:]))


def _merge_spans(spans: list[_Span]) -> list[_Span]:
    """Merge overlapping spans, in order."""
    merged = list[_Span]()
    for span in sorted(spans):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            continue
        last = merged[-1]
        named = min(last, span, key=lambda one: (one.rank, one.start - one.end))
        merged[-1] = named._replace(start=last.start, end=max(last.end, span.end))
    return merged


def _merge_readings(separated: list[_Span], joined: list[_Span]) -> list[_Span]:
    """Merge the secrets of two readings of a text: hidden characters as separators of words, or
    ignored. One that goes on behind such a character is whole, unless only words follow.
    """
    ends = {span.start: span for span in separated}
    kept = list[_Span]()
    for span in joined:
        shorter = ends.get(span.start)
        if shorter is not None and shorter.end < span.end:
            rest = span.secret.removeprefix(shorter.secret).decode(errors="replace")
            if is_only_words(rest):
                continue
            del ends[span.start]
        kept.append(span)
    return _merge_spans([*kept, *ends.values()])


def _character_spans(data: bytes, spans: list[_Span]) -> Iterator[tuple[int, int]]:
    """Convert spans of bytes to spans of characters."""
    if data.isascii():
        yield from ((span.start, span.end) for span in spans)
        return
    at_byte = at_character = 0

    def move(to: int) -> int:
        nonlocal at_byte, at_character
        at_character += len(data[at_byte:to].decode(errors="surrogatepass"))
        at_byte = to
        return at_character

    for span in spans:
        yield move(span.start), move(span.end)
