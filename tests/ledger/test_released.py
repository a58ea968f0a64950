"""The frozen format: a stored ledger of each release verifies, replays and is written the same."""

import json
from hashlib import sha256
from itertools import groupby
from typing import Any, get_args

import msgspec
import pytest

from dragoman.core.events import EVENT_NAMES, AnyEvent
from dragoman.engine.ports import Changes, NewEntry, Row, Session
from dragoman.engine.verify import check_ledger, check_views
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line
from dragoman.ledger.tree import EMPTY, extend, root
from dragoman.ledger.views import FOLD, encode_state, names_of, refold, shelve
from dragoman.store.memory import MemoryStore
from tests.ledger.released import (
    START,
    Stored,
    entries_of,
    golden_entries,
    golden_states,
    plain,
    play,
    states_of,
)
from tests.requirements import proves

ENTRIES = golden_entries()
ROOT = "83f3e90b74723f9e7615317dc2d51ad65598dc35454ae51c478795509e1dd8fd"
"""The Merkle root over the golden ledger, as RFC 9162 has it."""

FIELDS = ["stream", "version", "event", "v", "at", "actor", "cause", "body", "via", "said"]


def fields(entry: Stored) -> dict[str, Any]:
    """The line, read by somebody who knows nothing of dragoman."""
    return json.loads(entry.line)


def streams() -> dict[str, list[Stored]]:
    """The golden entries of each stream, in order."""
    by_stream: dict[str, list[Stored]] = {}
    for entry in ENTRIES:
        by_stream.setdefault(entry.stream, []).append(entry)
    return by_stream


def without_sentence(entry: Stored) -> object:
    """What must not change: of a refusal all but its sentence, which may come to be better said."""
    if entry.event != "command.refused":
        return entry
    line = fields(entry)
    line["body"]["detail"] = ""
    return entry.position, entry.stream, entry.version, json.dumps(line)


def loaded() -> MemoryStore:
    """A store that holds the golden ledger, as if an older release had written it."""
    store = MemoryStore("released")
    numbers = {stream: number for number, stream in enumerate(streams(), 1)}
    rows: list[Row] = []
    names: list[tuple[str, str, int]] = []
    for stream, entries in streams().items():
        lines = [entry.line.encode() for entry in entries]
        state = refold(lines)
        assert state is not None
        last = entries[-1]
        rows.append(
            Row(
                numbers[stream],
                stream,
                last.version,
                bytes.fromhex(last.hash),
                FOLD,
                encode_state(state),
                shelf=shelve(state, START * 2),
            )
        )
        for line in map(read_line, lines):
            bound = names_of(CODEC.decode(line.event, line.v, line.body))
            names += [(name, kind, numbers[stream]) for name, kind in bound]
    entries = [
        NewEntry(
            numbers[entry.stream],
            entry.version,
            entry.event,
            entry.line.encode(),
            bytes.fromhex(entry.previous),
            bytes.fromhex(entry.hash),
        )
        for entry in ENTRIES
    ]

    def write(session: Session) -> None:
        session.write(Changes(entries=entries, streams=rows, names=names))

    store.transact(write)
    return store


@proves("LEDGER-RELEASED", "LEDGER-LINE", "LEDGER-NAMES", "LEDGER-SAID", "LEDGER-POSITION")
def test_the_same_script_still_writes_the_same_bytes() -> None:
    store = MemoryStore("released")
    play(store)
    written = entries_of(store)
    assert list(map(without_sentence, written)) == list(map(without_sentence, ENTRIES))


@proves("LEDGER-RELEASED")
def test_it_still_replays_into_the_recorded_states() -> None:
    replayed = {
        stream: plain(refold(entry.line.encode() for entry in entries))
        for stream, entries in streams().items()
    }
    assert json.loads(json.dumps(replayed)) == golden_states()


@proves("LEDGER-RELEASED", "MODEL-REPLAY")
def test_the_script_ends_in_the_recorded_states_too() -> None:
    store = MemoryStore("released")
    play(store)
    states = states_of(store)
    for name in golden_states():
        if name.startswith("task:"):
            assert json.loads(json.dumps(states[name])) == golden_states()[name]
    assert set(states) == set(golden_states())


@proves("LEDGER-RELEASED", "LEDGER-TREE")
def test_it_still_verifies_and_has_the_recorded_root() -> None:
    store = loaded()
    tree = extend(EMPTY, (entry.hash for entry in store.entries(0, 1_000)))
    assert root(tree).hex() == ROOT
    signed = Checkpoint("released", tree.size, ROOT, (), "", "")
    assert list(check_ledger(store, [signed], lambda _: None)) == []
    assert list(check_views(store, lambda _: None)) == []


@proves("LEDGER-CHAIN", "LEDGER-RELEASED")
def test_each_hash_covers_the_previous_hash_of_its_stream_and_the_whole_line() -> None:
    for entries in streams().values():
        previous = bytes(32)
        for version, entry in enumerate(entries, 1):
            assert entry.previous == previous.hex()
            previous = sha256(previous + entry.line.encode()).digest()
            assert (entry.version, entry.hash) == (version, previous.hex())


@proves("LEDGER-POSITION", "LEDGER-RELEASED")
def test_positions_have_no_gaps_and_are_not_in_the_line() -> None:
    assert [entry.position for entry in ENTRIES] == list(range(1, len(ENTRIES) + 1))
    assert all("position" not in fields(entry) for entry in ENTRIES)


@proves("LEDGER-LINE", "LEDGER-RELEASED")
def test_a_line_is_one_line_of_json_with_its_fields_in_order() -> None:
    for entry in ENTRIES:
        assert "\n" not in entry.line
        line = fields(entry)
        assert list(line) == [name for name in FIELDS if name in line]
        assert set(FIELDS) - set(line) <= {"via", "said"}
        assert (line["stream"], line["version"], line["event"]) == (
            entry.stream,
            entry.version,
            entry.event,
        )
        assert line["v"] == 1
        assert START < line["at"] < START + 200_000
        assert ": " not in entry.line[:40], "no blanks"


@proves("LEDGER-NAMES", "LEDGER-RELEASED")
def test_every_kind_of_event_is_in_it_under_its_own_name() -> None:
    assert {entry.event for entry in ENTRIES} == set(EVENT_NAMES.values())
    assert {type(_event(entry)) for entry in ENTRIES} == set(get_args(AnyEvent))
    assert {entry.stream.partition(":")[0] for entry in ENTRIES} == {"task", "actor"}
    for entry in ENTRIES:
        assert "dragoman." not in entry.line
        assert "Task" not in entry.event


def _event(entry: Stored) -> AnyEvent:
    line = read_line(entry.line.encode())
    return CODEC.decode(line.event, line.v, line.body)


@proves("REFUSAL-RECORDED", "LEDGER-RELEASED")
def test_refusals_live_with_their_actor_and_nothing_else_does() -> None:
    for entry in ENTRIES:
        line = fields(entry)
        is_refusal = entry.event == "command.refused"
        assert entry.stream.startswith("actor:") is is_refusal
        if is_refusal:
            assert entry.stream == f"actor:{line['actor']}"
            assert set(line["body"]) == {"command", "target", "code", "detail"}


@proves("LEASE-FENCE", "LEDGER-RELEASED")
def test_the_token_of_a_stream_rises_by_one_with_every_claim() -> None:
    for entries in streams().values():
        claims = [fields(entry)["body"] for entry in entries if entry.event == "task.claimed"]
        assert [claim["fence"] for claim in claims] == list(range(1, len(claims) + 1))
        assert [claim["attempt"] for claim in claims] == list(range(1, len(claims) + 1))


@proves("LEDGER-SAID", "LEDGER-RELEASED")
def test_the_original_words_stand_on_the_first_entry_of_their_request() -> None:
    said: dict[int, Any] = {}
    for _, entries in groupby(ENTRIES, key=lambda entry: fields(entry)["cause"]):
        first, *rest = entries
        assert all("said" not in fields(entry) for entry in rest)
        if "said" in fields(first):
            said[first.position] = fields(first)["said"]
    assert list(said.values()) == [
        {"title": "Write the parser", "x-unknown": {"kept": [1, 2, None]}},
        "a tuple",
        {"type": "DONE"},
    ]
    assert '{"title":"Write the parser","x-unknown":{"kept":[1,2,null]}}' in ENTRIES[0].line


@proves("LEDGER-RELEASED")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry.position))
def test_the_body_says_again_what_it_said(entry: Stored) -> None:
    """No field of a stored body is lost on reading, so nothing released was dropped."""
    body = fields(entry)["body"]
    assert json.loads(msgspec.json.encode(_event(entry))) == body
