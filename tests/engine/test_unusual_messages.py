"""Messages that are longer than others, or CBOR; answers that are looked up; missing intents."""

import asyncio
import json
import threading
from typing import Any, cast

import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask, DescribeAgent, NoteTask, RegisterAgent
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.core.events import Role
from dragoman.engine.facts import StoreFacts
from dragoman.engine.faults import Fault, in_shape
from dragoman.engine.incoming import SAID_OF_UNREADABLE, Incoming, beginning, kept_words
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.operation import (
    USUAL,
    Bounds,
    Commands,
    Dialect,
    Facts,
    Heard,
    Linted,
    Operation,
    longest_message,
)
from dragoman.engine.plan import Taken, Turned
from dragoman.engine.ports import ListQuery
from dragoman.engine.reads.ask import entries
from dragoman.engine.reads.intents import find_intent, find_standing, intents_on
from dragoman.engine.request import Accepted
from dragoman.ledger.entry import read_line
from dragoman.text.strict_cbor import to_cbor
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("DIALECT-DOORS")

WRITERS: frozenset[Role] = frozenset({"agent", "human"})


class Word(Struct, frozen=True):
    """A note of any length; its beginning is kept."""

    text: str


def read(value: Any) -> Word | Fault:
    return in_shape(value, Word)


def noted(_: Word, __: Actor, facts: Facts, accepted: Accepted) -> tuple[Commands, Any]:
    """What the answer is made of is in the store only."""
    return (), {"exists": facts.task_exists(accepted.receipts[0].task)}


SAY = Operation(
    name="say",
    shape=Word,
    read=read,
    commands=lambda word: (NoteTask("one", word.text[:10]),),
    reply=lambda _, __, accepted: accepted,
    after=noted,
    roles=WRITERS,
    bounds=Bounds(4 * MOST_BYTES),
)


def hear(incoming: Incoming) -> Heard | None:
    if incoming.is_too_large:
        return Heard("say", beginning(incoming.text), fault=Fault("message_too_large", "too long"))
    value = incoming.value
    if isinstance(value, StrictJsonError) or not isinstance(value, dict):
        return None
    read_ = read(cast(dict[str, Any], value))
    return None if isinstance(read_, Fault) else Heard("say", Raw(b"{}"), "", "", SAY, read_)


def mute(_: Incoming) -> Heard | None:
    """Nothing is of this dialect."""
    return None


def lint(value: Any, kind: str, strict: bool) -> Linted:
    return Linted(value == kind, kind, strict)


LONG = Dialect(
    "long", (SAY,), hear, lint, {code: code for code in REFUSALS}, {}, bounds=Bounds(4 * MOST_BYTES)
)


@pytest.fixture
def interpreter(lab: Lab) -> Interpreter:
    """Give one that knows the dialect with long words, and one without before it."""
    lab.do(HUMAN, CreateTask("One", id="one"))
    facts = StoreFacts(lab.store, lambda _, __: False)
    short = replace(LONG, name="short", hear=mute, bounds=USUAL)
    return Interpreter(lab.hub, (short, LONG), facts)


def text(size: int) -> bytes:
    return json.dumps({"text": "x" * size}).encode()


@pytest.mark.parametrize("soon", [False, True])
def test_an_answer_may_be_looked_up_when_all_is_done(interpreter: Interpreter, soon: bool) -> None:
    if soon:
        answer = asyncio.run(interpreter.call_soon("say", text(5), HUMAN))
    else:
        answer = interpreter.call("say", text(5), HUMAN)
    assert isinstance(answer, Taken)
    assert answer.reply == {"exists": True}


def test_a_dialect_may_have_longer_messages_than_others(interpreter: Interpreter) -> None:
    assert isinstance(interpreter.send(text(2 * MOST_BYTES), speaker=HUMAN), Taken)
    assert isinstance(interpreter.call("say", text(2 * MOST_BYTES), HUMAN), Taken)
    told = interpreter.send(text(5 * MOST_BYTES), speaker=HUMAN)
    assert isinstance(told, Turned)
    assert told.code == "message_too_large"
    assert interpreter.hear(text(5 * MOST_BYTES), dialect="short") is None


def test_a_long_message_is_read_beside_the_event_loop(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("One", id="one"))
    heard_in: list[int] = []

    def noting(incoming: Incoming) -> Heard | None:
        heard_in.append(threading.get_ident())
        return hear(incoming)

    facts = StoreFacts(lab.store, lambda _, __: False)
    interpreter = Interpreter(lab.hub, (replace(LONG, hear=noting),), facts)

    async def speak(size: int) -> tuple[bool, bool]:
        heard_in.clear()
        await interpreter.send_soon(text(size), speaker=HUMAN)
        await interpreter.call_soon("say", text(size), HUMAN)
        by_sending, by_calling = heard_in
        here = threading.get_ident()
        return by_sending == here, by_calling == here

    assert asyncio.run(speak(5)) == (True, True)
    assert asyncio.run(speak(2 * MOST_BYTES)) == (False, False)


def test_the_longest_message_is_that_of_any_dialect() -> None:
    assert longest_message([LONG, replace(LONG, bounds=USUAL)]) == 4 * MOST_BYTES
    assert longest_message([replace(LONG, bounds=USUAL)]) == MOST_BYTES


def test_of_a_long_message_the_beginning_is_kept() -> None:
    # Some more than is kept: what is masked must not be cut before.
    assert len(bytes(kept_words(Incoming(text(2 * MOST_BYTES), 4 * MOST_BYTES)))) < 6_000
    assert bytes(kept_words(Incoming(text(5)))) == text(5)


@proves("REDACT-REQUESTS")
def test_of_a_long_message_the_ledger_has_a_thousand_characters_and_no_cut_secret(
    interpreter: Interpreter, lab: Lab
) -> None:
    # One secret stands across the end of what is kept, where a cut before would have halved it.
    secret = f"ghp_{'aB3dE5fG7h' * 3}aB3dE5"
    before = SAID_OF_UNREADABLE - len(b'{"text": "') - 10
    words = json.dumps({"text": "x " * (before // 2) + secret + " y" * 5 * MOST_BYTES}).encode()

    assert isinstance(interpreter.send(words, speaker=HUMAN), Turned)

    *_, refused = entries(lab.store)
    line = read_line(refused.line)
    assert isinstance(line.said, Raw)
    kept = json.loads(bytes(line.said))
    assert len(kept) == SAID_OF_UNREADABLE
    assert kept.startswith('{"text": "x x ')
    assert "ghp_" not in kept


def test_cbor_is_read_as_the_json_that_it_says(interpreter: Interpreter) -> None:
    assert isinstance(interpreter.send(to_cbor({"text": "short"}), speaker=HUMAN), Taken)
    incoming = Incoming(to_cbor({"text": "short"}))
    assert json.loads(incoming.text) == incoming.value == {"text": "short"}
    broken = Incoming(b"\xa1\x61")
    assert isinstance(broken.value, StrictJsonError)


def test_intents_and_standings_that_there_are_none_of(lab: Lab) -> None:
    for name, code in (("i-1", "intent_not_found"), ("i 1", "invalid_id")):
        found = find_intent(lab.store, name)
        assert isinstance(found, Refusal)
        assert found.code == code
    assert find_standing(lab.store, "alice") is None
    assert intents_on(lab.store, ListQuery("intents")) == []
    lab.do(ALICE, RegisterAgent("alice"), DescribeAgent("alice", ("sing",)))
    standing = find_standing(lab.store, "alice")
    assert standing is not None
    assert standing.name == "alice"
