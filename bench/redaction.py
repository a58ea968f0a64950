"""Redaction: megabytes of log text in a second, and how much of a corpus is found and is right."""

import json
from base64 import b64encode
from html import escape
from pathlib import Path
from time import perf_counter
from urllib.parse import quote

from dragoman.text.redact import Redactor, Secret
from tests.text import secrets_corpus as corpus

KEY = b"key of the benchmark"
GOALS = {"all": 10.0, "known": 50.0}
"""Megabytes in a second, with all rules and where only known values are looked for."""
_BLOCK = 65_536


def megabytes(rules: str, seconds: float) -> float:
    """Megabytes of ordinary lines in a second, in pieces, as the output of programs comes."""
    known = [Secret("known", value) for value in corpus.values()]
    stream = Redactor(known, KEY, known_only=rules == "known").stream()
    text = "\n".join(corpus.log_lines(20_000))
    blocks = [text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK)]
    start, done = perf_counter(), 0
    while (passed := perf_counter() - start) < seconds:
        for block in blocks:
            stream.feed(block)
        done += len(text)
    return done / passed / 1e6


def known_found(_: Path, __: float) -> float:
    """Of a hundred known values in any spelling, so many are found."""
    found = list[bool]()
    for value in corpus.values():
        redactor = Redactor([Secret("known", value)], KEY, known_only=True)
        plain = value.encode()
        encoded = (
            b64encode(b"u:" + plain).decode(),
            plain.hex(),
            "".join(map("%{:02x}".format, plain)),
        )
        spelled = (value, json.dumps(value), quote(value), quote(quote(value)), escape(value))
        found += (bool(redactor.text(f"<{text}>").found) for text in (*spelled, *encoded))
    return 100 * sum(found) / len(found)


def prefixed_found(_: Path, __: float) -> float:
    """Of a hundred credentials with a form of their own, so many are found."""
    return 100 * corpus.recall(Redactor(key=KEY), corpus.prefixed())


def generic_found(_: Path, __: float) -> float:
    """Of a hundred secrets that only a name tells, so many are found."""
    return 100 * corpus.recall(Redactor(key=KEY), corpus.generic())


def rightly_masked(_: Path, __: float) -> float:
    """Of a hundred lines in which something is masked, so many held a secret.

    One line in twenty holds one: more than in most logs, and less than in some.
    """
    redactor = Redactor(key=KEY)
    secret = [case.text for case in corpus.generic(each=30)]
    clean = corpus.clean_lines(19 * len(secret))
    rightly = sum(bool(redactor.text(line).found) for line in secret)
    wrongly = sum(bool(redactor.text(line).found) for line in clean)
    return 100 * rightly / (rightly + wrongly)
