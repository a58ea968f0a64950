"""Replay: a state folded in memory equals the one replayed from its lines."""

from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.core.base import Event
from dragoman.core.task_state import TaskCreated
from dragoman.core.trace import TurnLog
from dragoman.ledger.entry import CODEC, WRITTEN_AS
from dragoman.ledger.stream_state import ALLOWED_STATES, FOLDS, encode_state, fold, is_same_state
from tests.ledger.type_strategies import values_of_type
from tests.requirements import proves

pytestmark = proves("VERIFY-AS-REPLAYED")

CASES = [(event, state) for event in FOLDS for state in ALLOWED_STATES[event]]
"""Every event, with every kind of state that it can change."""

S = TypeVar("S")
EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples // 20


def read_back(state: S) -> S:
    """Encode a state and decode it."""
    return msgspec.json.decode(encode_state(state), type=type(state))


def read_event_back(event: Event) -> Event:
    """Encode an event and decode it."""
    return CODEC.decode(*WRITTEN_AS[type(event)], msgspec.json.encode(event))


@pytest.mark.parametrize(
    ("event_type", "state_type"), CASES, ids=[f"{e.__name__}-{s.__name__}" for e, s in CASES]
)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_event_changes_a_state_alike_in_memory_and_in_a_replay(
    event_type: type[Event], state_type: type[Any], data: st.DataObject
) -> None:
    event, state = data.draw(values_of_type(event_type)), data.draw(values_of_type(state_type))
    at = data.draw(st.integers(0, 1 << 45))
    in_memory = fold(state, event, at)
    after_replay = fold(read_back(state), read_event_back(event), at)
    assert encode_state(read_back(in_memory)) == encode_state(read_back(after_replay))


def test_rows_are_equal_if_they_decode_to_the_same_state() -> None:
    as_integer, as_float = (encode_state(TurnLog("T", 3, {"loop": value})) for value in (2, 2.0))
    assert as_integer != as_float
    assert is_same_state("turns:T", as_integer, as_float)
    assert not is_same_state("turns:T", as_integer, encode_state(TurnLog("T", 3, {"loop": 3})))
    created = fold(None, TaskCreated("T", "TASK-2026-02-09-001", "a title", "ready"), 1)
    encoded = encode_state(created)
    assert is_same_state("task:T", encoded, encoded[:-1] + b',"priority":"normal"}')
    assert not is_same_state("task:T", encoded, encoded[:-1] + b',"priority":"low"}')


@pytest.mark.parametrize("other", [b"", b"{}", b"{"])
def test_unreadable_row_equals_no_other(other: bytes) -> None:
    state = encode_state(TurnLog("T"))
    assert not is_same_state("turns:T", state, other)
    assert is_same_state("turns:T", other, other)
