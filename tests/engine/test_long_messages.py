"""Long messages, CBOR, replies that are looked up, and missing intents."""

import asyncio
import json
import threading
from typing import Any, cast

import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.base import Role
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.operation import (
    DEFAULT_LIMITS,
    UNREADABLE_CHARS_KEPT,
    Dialect,
    Facts,
    Fault,
    MessageLimits,
    Operation,
    ParsedMessage,
    Plan,
    RawMessage,
    max_message_bytes,
    stored_text,
    truncated_text,
    validate_shape,
)
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.agents import find_reputation
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.intents import find_intent, list_intents
from dragoman.engine.request import Accepted, Committed, Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.ledger.entry import read_line
from dragoman.text.strict_cbor import encode_cbor
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("DIALECT-DOORS")

WRITERS: frozenset[Role] = frozenset({"agent", "human"})


class LongNote(Struct, frozen=True):
    """Note of any length; only its first characters are stored."""

    text: str


def read(value: Any) -> LongNote | Fault:
    return validate_shape(value, LongNote)


def plan_note(note: LongNote, _: Actor, facts: Facts) -> Plan:
    """Plan a note whose reply is built from the store."""

    def reply_from_store(accepted: Committed) -> Any:
        return {"exists": facts.task_exists(accepted.receipts[0].task)}

    return Plan((NoteTask("one", note.text[:10]),), follow_up=reply_from_store)


SAY = Operation(
    name="say",
    input=LongNote,
    roles=WRITERS,
    plan=plan_note,
    limits=MessageLimits(4 * MAX_BYTES),
)


def parse_message(incoming: RawMessage) -> ParsedMessage | None:
    if incoming.is_too_large:
        return ParsedMessage(
            "say", truncated_text(incoming.text), fault=Fault("message_too_large", "too long")
        )
    value = incoming.value
    if isinstance(value, StrictJsonError) or not isinstance(value, dict):
        return None
    note = read(cast(dict[str, Any], value))
    return None if isinstance(note, Fault) else ParsedMessage("say", Raw(b"{}"), "", "", SAY, note)


def parse_nothing(_: RawMessage) -> ParsedMessage | None:
    """Recognise no message."""
    return None


LONG = Dialect(
    "long",
    (SAY,),
    parse_message,
)
SHORT = replace(LONG, operations=(replace(SAY, name="murmur", limits=DEFAULT_LIMITS),))


@pytest.fixture
def router(lab: Lab) -> Router:
    """Router for a dialect with long messages, after one without."""
    lab.do(HUMAN, CreateTask("One", id="one"))
    facts = StoreFacts(lab.store, lambda _, __: False)
    short = replace(SHORT, name="short", parse=parse_nothing)
    return Router(lab.hub, (short, LONG), facts)


def text(size: int) -> bytes:
    return json.dumps({"text": "x" * size}).encode()


@pytest.mark.parametrize("soon", [False, True])
def test_reply_may_be_looked_up_after_the_commit(router: Router, soon: bool) -> None:
    if soon:
        answer = asyncio.run(router.call_async("say", text(5), HUMAN))
    else:
        answer = router.call("say", text(5), HUMAN)
    assert isinstance(answer, Accepted)
    assert answer.reply == {"exists": True}


def test_dialect_may_allow_longer_messages(router: Router) -> None:
    assert isinstance(router.send(text(2 * MAX_BYTES), speaker=HUMAN), Accepted)
    assert isinstance(router.call("say", text(2 * MAX_BYTES), HUMAN), Accepted)
    rejected = router.send(text(5 * MAX_BYTES), speaker=HUMAN)
    assert isinstance(rejected, Rejected)
    assert rejected.code == "message_too_large"
    assert router.parse(text(5 * MAX_BYTES), dialect="short") is None


def test_long_message_is_parsed_outside_the_event_loop(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("One", id="one"))
    parse_threads: list[int] = []

    def recording_parse(incoming: RawMessage) -> ParsedMessage | None:
        parse_threads.append(threading.get_ident())
        return parse_message(incoming)

    facts = StoreFacts(lab.store, lambda _, __: False)
    router = Router(lab.hub, (replace(LONG, parse=recording_parse),), facts)

    async def send_and_call(size: int) -> tuple[bool, bool]:
        parse_threads.clear()
        await router.send_async(text(size), speaker=HUMAN)
        await router.call_async("say", text(size), HUMAN)
        by_sending, by_calling = parse_threads
        here = threading.get_ident()
        return by_sending == here, by_calling == here

    assert asyncio.run(send_and_call(5)) == (True, True)
    assert asyncio.run(send_and_call(2 * MAX_BYTES)) == (False, False)


def test_longest_message_is_the_largest_limit_of_the_dialects() -> None:
    assert max_message_bytes([LONG, SHORT]) == 4 * MAX_BYTES
    assert max_message_bytes([SHORT]) == MAX_BYTES


def test_long_message_is_stored_truncated() -> None:
    # Some more than is stored: text must be masked before it is cut.
    assert len(bytes(stored_text(RawMessage(text(2 * MAX_BYTES), 4 * MAX_BYTES)))) < 6_000
    assert bytes(stored_text(RawMessage(text(5)))) == text(5)


@proves("REDACT-REQUESTS")
def test_truncated_text_is_bounded_and_cuts_no_secret(router: Router, lab: Lab) -> None:
    # One secret spans the end of the stored text, where an earlier cut would have split it.
    secret = f"ghp_{'aB3dE5fG7h' * 3}aB3dE5"
    before = UNREADABLE_CHARS_KEPT - len(b'{"text": "') - 10
    message = json.dumps({"text": "x " * (before // 2) + secret + " y" * 5 * MAX_BYTES}).encode()

    assert isinstance(router.send(message, speaker=HUMAN), Rejected)

    *_, refused = all_entries(lab.store)
    line = read_line(refused.line)
    assert isinstance(line.original_text, Raw)
    stored = json.loads(bytes(line.original_text))
    assert len(stored) == UNREADABLE_CHARS_KEPT
    assert stored.startswith('{"text": "x x ')
    assert "ghp_" not in stored


def test_cbor_is_read_as_the_equivalent_json(router: Router) -> None:
    assert isinstance(router.send(encode_cbor({"text": "short"}), speaker=HUMAN), Accepted)
    incoming = RawMessage(encode_cbor({"text": "short"}))
    assert json.loads(incoming.text) == incoming.value == {"text": "short"}
    broken = RawMessage(b"\xa1\x61")
    assert isinstance(broken.value, StrictJsonError)


def test_missing_intents_and_standings_are_reported(lab: Lab) -> None:
    for name, code in (("i-1", "intent_not_found"), ("i 1", "invalid_id")):
        found = find_intent(lab.store, name)
        assert isinstance(found, Refusal)
        assert found.code == code
    assert find_reputation(lab.store, "alice") is None
    assert list_intents(lab.store, ListQuery("intents")) == []
    lab.do(ALICE, RegisterAgent("alice"), DescribeAgent("alice", ("sing",)))
    reputation = find_reputation(lab.store, "alice")
    assert reputation is not None
    assert reputation.name == "alice"
