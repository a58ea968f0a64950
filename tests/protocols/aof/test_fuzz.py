"""Fuzzing of AOF/1: any bytes or mutation is answered or ignored, without exceptions."""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.errors import REFUSALS
from dragoman.engine.operation import RawMessage
from dragoman.engine.request import Rejected
from dragoman.protocols.aof import dialect
from dragoman.protocols.aof.parse import ShapedMessage, fast_parse, parse_envelope
from dragoman.text.strict_json import parse_json
from tests.conftest import LONG_RUN
from tests.protocols.aof.hub import MESSAGES, AofHub
from tests.requirements import proves

pytestmark = proves("AOF-FUZZ")

ROUNDS = 1_000_000 if os.environ.get(LONG_RUN) else 4_000
HUB_ROUNDS = ROUNDS // 8
CORPUS = [json.dumps(make()) for make in MESSAGES.values()]

Scalar = str | int | float | None
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**53,
    10**30,
    "",
    "x",
    "../../etc/passwd",
    "\ud800",
    "\x00",
    "\u202e",
    "x" * 5_000,
    [],
    ["x"],
    {},
    {"protocol": "aof"},
    [[[[[[]]]]]],
]


def replace_value(chance: random.Random, text: str) -> str:
    """Replace a value somewhere in the tree."""
    tree = json.loads(text)
    node: Any = tree
    while True:
        is_object = hasattr(node, "keys")
        keys: list[Any] = list(node if is_object else range(len(node)))
        if not keys:
            return text
        key = chance.choice(keys)
        inner: Any = node[key]
        if not isinstance(inner, Scalar) and chance.random() < 0.7:
            node = inner
            continue
        if is_object and chance.random() < 0.2:
            del node[key]
        else:
            node[key] = chance.choice(VALUES)
        return json.dumps(tree)


def swap_words(chance: random.Random, text: str) -> str:
    """Replace a part of one message by a part of another."""
    parts = chance.choice(CORPUS).split('"')
    return text.replace(chance.choice(text.split('"')), chance.choice(parts), 1)


def cut(chance: random.Random, text: str) -> str:
    """Remove a piece."""
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randrange(40) :]


def insert(chance: random.Random, text: str) -> str:
    """Insert a piece."""
    at = chance.randrange(len(text) + 1)
    piece = chance.choice(
        ['"', "{", "}", "[", ",", ":", "\\u", "\\ud800", "NaN", "0", "AOF/1 ", "ß"]
    )
    return text[:at] + piece * chance.choice([1, 1, 2, 60]) + text[at:]


def double(chance: random.Random, text: str) -> str:
    """Duplicate a piece."""
    start = chance.randrange(len(text) + 1)
    end = start + chance.randrange(80)
    return text[:end] + text[start:end] + text[end:]


def wrap(chance: random.Random, text: str) -> str:
    """Wrap the message in another form."""
    forms: list[Callable[[str], str]] = [
        lambda inner: "AOF/1 " + inner,
        lambda inner: json.dumps({"content": inner}),
        lambda inner: '{"payload":' + inner + "}",
    ]
    return chance.choice(forms)(text)


MUTATORS = [replace_value, replace_value, swap_words, cut, insert, double, wrap]


def mutate(chance: random.Random) -> bytes:
    """Mutate a message of the corpus a few times, sometimes also one of its bytes."""
    text = chance.choice(CORPUS)
    for _ in range(chance.randrange(1, 4)):
        mutator = chance.choice(MUTATORS)
        try:
            text = mutator(chance, text)
        except ValueError:
            continue  # text that is no JSON any more cannot be changed as a tree
    data = bytearray(text.encode(errors="surrogatepass"))
    if data and chance.random() < 0.1:
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def test_every_mutation_parses_or_has_a_known_fault() -> None:
    chance = random.Random(57)
    parse = dialect().parse
    counts: Counter[str] = Counter()
    for _ in range(ROUNDS):
        parsed = parse(RawMessage(mutate(chance)))
        counts["not ours" if parsed is None else parsed.fault.code if parsed.fault else "fine"] += 1

    assert set(counts) <= {"not ours", "fine", *REFUSALS}
    assert set(counts) >= {"not ours", "fine", "invalid_json", "invalid_envelope", "unknown_type"}


def test_every_mutation_gets_a_known_reply_and_readable_lines() -> None:
    chance = random.Random(58)
    hub = AofHub()
    codes: set[str] = set()
    for _ in range(HUB_ROUNDS):
        answer = hub.send(mutate(chance))
        codes |= {answer.code} if isinstance(answer, Rejected) else set()
        hub.lab.clock.advance(1_000)

    assert codes <= set(REFUSALS)
    assert len(codes) > 4
    assert hub.lines()


@given(st.binary())
@pytest.mark.parametrize("prefix", [b"", b"AOF/1 ", b'{"protocol":"aof",'])
def test_any_bytes_are_refused_or_ignored(prefix: bytes, noise: bytes) -> None:
    parsed = dialect().parse(RawMessage(prefix + noise))
    assert parsed is None or parsed.fault is not None


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_refused_or_ignored(text: str) -> None:
    dialect().parse(RawMessage(text))
    dialect().parse(RawMessage("AOF/1 " + text))
    dialect().parse(RawMessage({"content": text, "protocol": text}))


@proves("JSON-STRICT", "AOF-ENVELOPE")
def test_fast_parse_agrees_with_the_full_parse() -> None:
    chance = random.Random(59)
    count = 0
    for _ in range(ROUNDS):
        text = mutate(chance)
        fast = fast_parse(text)
        if fast is None:
            continue
        full = parse_envelope(parse_json(text), fast.original_text)
        assert isinstance(full, ShapedMessage)
        assert (fast.message, fast.content) == (full.message, full.content)
        count += 1
    assert count > ROUNDS // 50


@proves("JSON-STRICT")
def test_encoder_writes_each_character_in_its_shortest_form() -> None:
    # This makes the comparison of lengths in `at_a_glance` sufficient.
    for code in (*range(0xD800), *range(0xE000, 0x10000), 0x1F600):
        character = chr(code)
        forms = (json.dumps(character), json.dumps(character, ensure_ascii=False))
        shortest = min(len(form.encode()) for form in forms)
        assert len(msgspec.json.encode(character)) <= shortest


@pytest.mark.parametrize("text", CORPUS)
@proves("JSON-STRICT")
def test_fast_parse_refuses_duplicate_keys(text: str) -> None:
    assert fast_parse(text.encode()) is not None
    pairs = list(re.finditer(r'"\w+": (?:"[^"]*"|\d+|true|false|\[[^]]*\])', text))
    assert len(pairs) >= 9
    for pair in pairs:
        twice = text[: pair.end()] + ", " + pair[0] + text[pair.end() :]
        assert fast_parse(twice.encode()) is None
