"""Entropy: signs in its last turns that an agent is getting lost (S-SAOP-9).

Three signs: its confidence falls, the same error comes again and again, its actions form a
loop. Each is raised at one threshold and settles at another, so that a value that wavers about
one of them is not reported each time. It is a remark about turns: nothing is decided here.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import blake2b
from typing import Final, Literal

from msgspec import Struct

from dragoman.text.lazy_regex import lazy_regex

Sign = Literal["falling_confidence", "repeated_error", "loop"]

_ERROR_RE: Final = lazy_regex(
    r"\b(?:error|errno|exception|traceback|fail(?:ed|ure|ing)?|fatal|panic(?:ked)?|denied"
    r"|refused|not found|cannot|timed? ?out)\b",
    re.IGNORECASE,
)
_NO_ERROR_RE: Final = lazy_regex(
    r"\b(?:0|no|without(?: any)?)\s+(?:errors?|fail(?:ed|ures?|ing)?|exceptions?)\b"
    r"|\b(?:errors?|failed|failures?|exceptions?)\s*[:=]\s*0\b",
    re.IGNORECASE,
)
"""Phrases that say that there was no error."""
_VARYING_RE: Final = lazy_regex(r"0x[0-9a-f]+|\b[0-9a-f]{7,}\b|[0-9]+")
"""Parts that vary between two reports of the same thing: addresses, hashes, numbers."""
_VARYING_IN_ACTION_RE: Final = lazy_regex(r"0x[0-9a-f]+|\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,}\b")
"""Parts that vary between two equal actions: hashes and addresses, not which page is read."""
_SPACE_RE: Final = lazy_regex(r"\s+")
_MAX_INSPECTED: Final = 10_000
"""Characters inspected at both ends of a text: it may have megabytes."""
_MAX_LOOP_PERIOD: Final = 4


class Thresholds(Struct, frozen=True):
    """Thresholds at which a sign is raised, and at which it settles."""

    window: int = 8
    """Number of the last turns that are inspected."""
    min_turns: int = 4
    """Turns needed before confidence is judged."""
    max_fall: float = 0.05
    """Average fall of confidence per turn that is reported."""
    settled_fall: float = 0.01
    """Average fall of confidence per turn below which it is steady again."""
    max_repeats: int = 3
    """Occurrences of the same error that are reported; with two fewer it is over."""
    max_cycles: int = 2
    """Rounds of a loop that are reported."""


class ObservedTurn(Struct, frozen=True):
    """The parts of a turn that are judged."""

    index: int
    confidence: float | None
    """None: the agent did not state it."""
    action: str
    observation: str


class Finding(Struct, frozen=True):
    """A sign that passes its threshold, with the turns that show it."""

    sign: Sign
    detail: str
    turns: tuple[int, ...]
    measured: float
    threshold: float


class SettledSign(Struct, frozen=True):
    """A raised sign that has settled."""

    sign: Sign
    measured: float


def detect_signs(
    turns: Sequence[ObservedTurn], thresholds: Thresholds, raised: Collection[str]
) -> list[Finding | SettledSign]:
    """Detect what is new in the last turns, which are in order; `raised`: signs raised already."""
    last = turns[-thresholds.window :]
    return [
        finding
        for sign, detect in _DETECTORS.items()
        for finding in detect(last, thresholds, is_raised=sign in raised)
    ]


def _detect_falling_confidence(
    turns: Sequence[ObservedTurn], thresholds: Thresholds, *, is_raised: bool
) -> Iterator[Finding | SettledSign]:
    stated = {turn.index: turn.confidence for turn in turns if turn.confidence is not None}
    if len(stated) < max(2, thresholds.min_turns):
        return
    fall = round(-fit_slope([*stated.values()]), 4)
    if not is_raised and fall >= thresholds.max_fall:
        indexes = tuple(stated)
        first, last = indexes[0], indexes[-1]
        detail = (
            f"confidence fell from {stated[first]:g} in turn {first} to {stated[last]:g} in turn "
            f"{last}: by {fall:g} a turn"
        )
        yield Finding("falling_confidence", detail, indexes, fall, thresholds.max_fall)
    elif is_raised and fall < thresholds.settled_fall:
        yield SettledSign("falling_confidence", fall)


def _detect_repeated_error(
    turns: Sequence[ObservedTurn], thresholds: Thresholds, *, is_raised: bool
) -> Iterator[Finding | SettledSign]:
    errors = [(turn, extract_error(turn.observation)) for turn in turns]
    counted = Counter(error for _, error in errors if error)
    error, count = max(counted.items(), key=lambda one: one[1], default=("", 0))
    if not is_raised and count >= thresholds.max_repeats:
        indexes = tuple(turn.index for turn, other in errors if other == error)
        detail = f"the same error {count} times in {len(turns)} turns: {error[:200]}"
        yield Finding("repeated_error", detail, indexes, count, thresholds.max_repeats)
    elif is_raised and count < thresholds.max_repeats - 1:
        yield SettledSign("repeated_error", count)


def _detect_loop(
    turns: Sequence[ObservedTurn], thresholds: Thresholds, *, is_raised: bool
) -> Iterator[Finding | SettledSign]:
    digests = [
        f"{digest_text(turn.action, _VARYING_IN_ACTION_RE)} {digest_text(turn.observation)}"
        for turn in turns
    ]
    period, cycles = find_final_loop(digests)
    if not is_raised and cycles >= thresholds.max_cycles:
        round_ = turns[-period * cycles :]
        steps = " → ".join(turn.action[:60] or "nothing" for turn in round_[:period])
        detail = f"the last {period} turns were repeated {cycles} times: {steps}"
        indexes = tuple(turn.index for turn in round_)
        yield Finding("loop", detail, indexes, cycles, thresholds.max_cycles)
    elif is_raised and cycles < thresholds.max_cycles:
        yield SettledSign("loop", cycles)


_DETECTORS: Final[dict[Sign, Callable[..., Iterator[Finding | SettledSign]]]] = {
    "falling_confidence": _detect_falling_confidence,
    "repeated_error": _detect_repeated_error,
    "loop": _detect_loop,
}


def fit_slope(values: Sequence[float]) -> float:
    """Slope of the least-squares line through values at equal distances."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    spread = sum((place - middle) ** 2 for place in range(len(values)))
    rise = sum((place - middle) * (value - mean) for place, value in enumerate(values))
    return rise / spread


def find_final_loop(digests: Sequence[str]) -> tuple[int, int]:
    """Shortest period of at least two turns with which a sequence ends, and its rounds.

    Two are a loop, A-B-A-B; a turn that only repeats itself counts as a period of two.
    """
    best = (0, 1)
    for period in range(2, _MAX_LOOP_PERIOD + 1):
        if len(digests) < 2 * period:
            break
        pattern, rounds = digests[-period:], 1
        while digests[-period * (rounds + 1) : -period * rounds] == pattern:
            rounds += 1
        if rounds > best[1]:
            best = (period, rounds)
    return best


def extract_error(text: str) -> str:
    """First line that names an error, without its varying parts."""
    for line in _head_and_tail(text).splitlines():
        if _ERROR_RE.search(_NO_ERROR_RE.sub("", line)):
            return normalize_text(line)
    return ""


def digest_text(text: str, varying: re.Pattern[str] = _VARYING_RE) -> str:
    """Digest that is equal for texts that differ only in varying parts."""
    text_without_varying = normalize_text(_head_and_tail(text), varying)
    return blake2b(text_without_varying.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _head_and_tail(text: str) -> str:
    if len(text) <= 2 * _MAX_INSPECTED:
        return text
    return f"{text[:_MAX_INSPECTED]}\n{text[-_MAX_INSPECTED:]}"


def normalize_text(text: str, varying: re.Pattern[str] = _VARYING_RE) -> str:
    """Text without its varying parts, in lower case."""
    return _SPACE_RE.sub(" ", varying.sub("#", text.lower())).strip()
