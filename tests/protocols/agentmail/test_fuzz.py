"""Fuzzing of the parser: any bytes or text parse without exceptions, in linear time."""

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocols.agentmail import MailError, Message, Parser
from dragoman.protocols.agentmail.errors import PROBLEM_NAMES
from dragoman.protocols.agentmail.grammar import continuation_lines
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from tests.conftest import LONG_RUN
from tests.protocols.agentmail.letters import row
from tests.requirements import proves

pytestmark = proves("MAIL-FUZZ")

ROUNDS = 1_000_000 if os.environ.get(LONG_RUN) else 4_000
CORPUS = [
    json.dumps(row(kind, id=7, to=["ada"], timestamp="2026-01-31T10:00:00Z"))
    for kind in MESSAGE_TYPES
]
PIECES = [
    "\\n",
    "\\n## ",
    "\\n- ",
    "```",
    "~~~",
    "**",
    "#",
    ":",
    ",",
    "\\\\",
    '"',
    "{",
    "]",
    "\\ud800",
    "\\r",
    "\\u2028",
    "Bead: ",
    "Files:",
    "DONE",
    "99%",
    "null",
    "[",
    "ß",
    "\x00",
]


def cut(chance: random.Random, text: str) -> str:
    """Remove a piece."""
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randrange(60) :]


def insert(chance: random.Random, text: str) -> str:
    """Insert a piece."""
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(PIECES) * chance.choice([1, 1, 2, 50]) + text[at:]


def move(chance: random.Random, text: str) -> str:
    """Insert a piece of this or another letter."""
    other = chance.choice([text, chance.choice(CORPUS)])
    start, at = chance.randrange(len(other) + 1), chance.randrange(len(text) + 1)
    return text[:at] + other[start : start + chance.randrange(80)] + text[at:]


def case(chance: random.Random, text: str) -> str:
    """Swap the case of a piece."""
    start = chance.randrange(len(text) + 1)
    end = start + chance.randrange(40)
    return text[:start] + text[start:end].swapcase() + text[end:]


MUTATORS = [cut, insert, insert, move, case]


def mutated(chance: random.Random) -> bytes:
    """Mutate a letter of the corpus a few times, sometimes also one of its bytes."""
    text = chance.choice(CORPUS)
    for _ in range(chance.randrange(1, 5)):
        text = chance.choice(MUTATORS)(chance, text)
    data = bytearray(text.encode())
    if data and chance.random() < 0.05:
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def test_every_mutation_parses_with_known_problems() -> None:
    chance = random.Random(63)
    parser, met = Parser(), Counter[str]()
    for _ in range(ROUNDS):
        message = parser.parse(mutated(chance))
        met.update([message.type, *(problem.name for problem in message.problems)])

    assert set(met) <= {*MESSAGE_TYPES, "UNKNOWN", *PROBLEM_NAMES}
    assert set(met) >= {
        *MESSAGE_TYPES,
        "UNKNOWN",
        "not_a_row",
        "unknown_type",
        "bad_value",
        "two_types",
    }


def test_strict_parsing_raises_only_mail_error_or_agrees_with_lenient() -> None:
    chance = random.Random(64)
    lenient, strict = Parser(), Parser(strict=True)
    accepted, refusals = 0, list[MailError]()
    for _ in range(ROUNDS // 4):
        text = mutated(chance)
        try:
            message = strict.parse(text)
        except MailError as error:
            refusals.append(error)
        else:
            assert message == lenient.parse(text)
            accepted += 1
    assert all(refusal.problems for refusal in refusals)
    assert accepted > ROUNDS // 100


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = ["id", "subject", "body_md", "from", "to", "cc", "timestamp", "ack_required", "read"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_any_value_parses(value: Any) -> None:
    assert isinstance(Parser().parse(value), Message)


@given(st.binary() | st.text(st.characters(exclude_categories=[])))
def test_any_bytes_and_any_text_parse(raw: bytes | str) -> None:
    assert isinstance(Parser().parse(raw), Message)
    assert all(isinstance(message, Message) for message in Parser().parse_many(raw))


@pytest.mark.parametrize("kind", MESSAGE_TYPES)
@given(
    subject=st.text(st.characters(exclude_categories=[])),
    body=st.lists(
        st.sampled_from(["## Problem", "## Changes", "Bead:", "Files:", "- ", "```", "\n", "x"])
    ).map("".join),
)
def test_any_subject_and_any_body_parse(kind: str, subject: str, body: str) -> None:
    Parser().parse({"subject": subject, "body_md": body})
    assert Parser().parse({"subject": f"{kind} {subject}", "body_md": body}).type == kind


# --- cost of parsing

MEBIBYTE = 1024 * 1024
BODIES = {
    "nothing": "\n",
    "returns": "\r",
    "spaces": " ",
    "one long line": "x",
    "colons": ":",
    "labels": "Bead:\n",
    "long labels": "Bead: " + "x" * 50 + "\n",
    "bold": "**",
    "bold lines": "**Bead: x**\n",
    "bullets": "- ",
    "empty lists": "Files touched:\n",
    "lists": "Files touched:\n- x\n\n",
    "list with gaps": "Files touched:\n\n\n\n\n",
    "commas": ",",
    "hashes": "#",
    "headings": "# x\n",
    "known headings": "## Problem\n",
    "known lists": "## Files Touched\nx\n",
    "deep headings": "## Problem\n### x\n",
    "fences": "```\n",
    "unclosed fences": "```x\n",
    "longer fences": "~~~~~~~~\n~~~\n",
    "backticks": "`",
    "backslashes": "\\",
    "escapes": "\\# x\n",
    "text with escapes": "## Problem\n" + "\\# x\n" * 20,
}
SUBJECTS = {
    "types": "DONE",
    "types apart": "DONE ",
    "replies": "Re: ",
    "brackets": "[",
    "colons": "a-1:",
    "joined": "DONE-",
}
LETTERS = {
    **{name: ("HELP_REQUEST", "", piece) for name, piece in BODIES.items()},
    **{f"subject: {name}": (piece, "DONE", "") for name, piece in SUBJECTS.items()},
    "commas escaped": ("PROGRESS", "", "\\,"),
    "guidance": ("HELP_RESPONSE", "", " \n"),
    "empty texts": ("PROGRESS", "", "Status:\n"),
}


def large_letter(subject: str, end: str, body: str, length: int) -> dict[str, str]:
    """Build a letter of this length by repeating a piece."""
    if not body:
        return {"subject": subject * (length // len(subject)) + end, "body_md": ""}
    start = "Files touched: " if body == "\\," else ""
    return {"subject": subject + end, "body_md": start + body * (length // len(body))}


def count_calls(raw: dict[str, str]) -> int:
    """Count the function calls, Python's and ours, while a letter is parsed."""
    counted = 0

    def count(*_: Any) -> None:
        nonlocal counted
        counted += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        Parser().parse(raw)
    finally:
        sys.setprofile(before)
    return counted


@pytest.mark.parametrize("piece", LETTERS.values(), ids=LETTERS)
def test_parsing_is_linear_in_length(piece: tuple[str, str, str]) -> None:
    one, two = (count_calls(large_letter(*piece, length)) for length in (8_192, 16_384))
    assert two <= 2 * one + 100


@pytest.mark.parametrize("piece", LETTERS.values(), ids=LETTERS)
def test_mebibyte_letters_parse(piece: tuple[str, str, str]) -> None:
    raw = large_letter(*piece, MEBIBYTE)
    message = Parser().parse(json.dumps(raw))
    assert (message.subject, message.body) == (raw["subject"], raw["body_md"])


class CountingLabels(Sequence[str]):
    """A thousand empty labels that count how often they are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        if index >= len(self):
            raise IndexError
        self.reads += 1
        return "Status:"

    def __len__(self) -> int:
        return 1_000


def test_continuation_lines_are_read_from_their_label_on() -> None:
    # Skipping the lines before it makes no calls, but would make parsing quadratic in the labels.
    lines = CountingLabels()
    assert list(continuation_lines(lines, 900, {"Status": "status", "status": "status"})) == []
    assert lines.reads <= 2
