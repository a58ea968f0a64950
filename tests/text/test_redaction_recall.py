"""Frozen recall of redaction per class of secrets, and its false alarms on clean text.

The numbers were measured once. No change may lower one of them by more than half a point, take a
class or a case away, or add a false alarm.
"""

import itertools
from collections.abc import Sequence

import pytest

from dragoman.text.redact import NO_OPEN_KEY, Redactor, Secret
from tests.requirements import proves
from tests.text import recall_corpus, secrets_corpus

pytestmark = proves("REDACT-RECALL", "REDACT-KEPT")

ALL = Redactor([Secret("known", value) for value in recall_corpus.KNOWN], b"k" * 32)
TOLERANCE = 0.005
FROZEN = {
    "prefixed": (1037, 1037),
    "named": (387, 387),
    "named, any secret": (535, 540),
    "named, quotes in it": (9, 9),
    "logins and command lines": (116, 116),
    "logins in URLs": (84, 84),
    "known values": (99, 99),
    "known values over lines": (132, 132),
    "nested: base64": (81, 81),
    "nested: base64 in lines": (81, 81),
    "nested: base64 in base64": (81, 81),
    "nested: base64 in JSON": (81, 81),
    "nested: base64 in a URL": (81, 81),
    "nested: URL": (81, 81),
    "nested: URL in a URL": (81, 81),
    "nested: JSON": (81, 81),
    "nested: JSON in JSON": (81, 81),
    "nested: JSON in JSON in JSON": (81, 81),
    "nested: HTML": (81, 81),
    "nested: HTML in JSON": (81, 81),
    "nested: JSON in a URL": (81, 81),
    "nested: JSON of numbers": (81, 81),
    "nested: HTML of numbers": (81, 81),
    "nested: URL of numbers": (81, 81),
    "nested: bytes of C": (81, 81),
    "nested: octal": (81, 81),
    "terminal: colours": (288, 288),
    "terminal: sequences": (48, 48),
    "private keys": (600, 600),
    "private keys of PuTTY": (60, 60),
}
"""Class -> number of secrets that were found, and of its cases."""
FROZEN_SPLIT = {"at any place": (3947, 3947), "into pieces of three": (350, 350)}
"""The same for some cases of every class whose text comes in chunks."""
FROZEN_LINES = (126, 144)
"""The same for the lines of private keys in a terminal, which are recorded one by one."""
FROZEN_FALSE_ALARMS = (0, 4_036)
"""Clean texts in which something was masked, and clean texts."""


def check(frozen: tuple[int, int], found: Sequence[bool]) -> None:
    """Compare with frozen numbers."""
    assert len(found) == frozen[1], "the cases are not those that were measured"
    assert sum(found) / len(found) >= frozen[0] / frozen[1] - TOLERANCE


def redact_in_chunks(text: str, *borders: int) -> str:
    """Redact a text in chunks with these borders."""
    stream = ALL.stream()
    pieces = [stream.feed(text[a:b]) for a, b in itertools.pairwise([0, *borders, len(text)])]
    return "".join(pieces) + stream.close()


def test_no_class_has_disappeared() -> None:
    assert list(recall_corpus.CLASSES) == list(FROZEN)


@pytest.mark.parametrize("name", FROZEN)
def test_recall_of_a_class_is_not_lower_than_it_was(name: str) -> None:
    cases = recall_corpus.CLASSES[name]()
    check(FROZEN[name], [case.is_masked(ALL.text(case.text).text) for case in cases])


def test_recall_of_secrets_that_chunks_split_is_not_lower_than_it_was() -> None:
    at_any_place, into_pieces = list[bool](), list[bool]()
    for case in recall_corpus.split_cases():
        size = len(case.text)
        for border in range(1, size, 1 + size // 12):
            at_any_place.append(case.is_masked(redact_in_chunks(case.text, border)))
        into_pieces.append(case.is_masked(redact_in_chunks(case.text, *range(3, size, 3))))
    check(FROZEN_SPLIT["at any place"], at_any_place)
    check(FROZEN_SPLIT["into pieces of three"], into_pieces)


def test_recall_of_private_keys_line_by_line_is_not_lower_than_it_was() -> None:
    found = list[bool]()
    for lines, secrets in recall_corpus.terminal_lines():
        lines_since, shown = NO_OPEN_KEY, list[str]()
        for line in lines:
            masked = ALL.line(line, lines_since)
            lines_since = masked.since
            shown.append(masked.text)
        found += (secrets_corpus.is_removed(secret, "\n".join(shown)) for secret in secrets)
    check(FROZEN_LINES, found)


def test_clean_text_has_no_more_false_alarms_than_before() -> None:
    texts = recall_corpus.clean_texts()
    assert len(texts) == FROZEN_FALSE_ALARMS[1]
    assert sum(ALL.text(text).text != text for text in texts) <= FROZEN_FALSE_ALARMS[0]
    whole = "\n".join(texts)
    masked = redact_in_chunks(whole, *range(500, len(whole), 500))
    assert masked == whole
