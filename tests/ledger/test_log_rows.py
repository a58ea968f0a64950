"""Rows of the agent logs: which events have one, and their keys."""

from dragoman.core.events import TaskNoted, TraceRecorded, TurnRecorded
from dragoman.ledger.logs import Log, log_of, split_key
from dragoman.ledger.transitions import transition_id
from tests.requirements import proves

pytestmark = proves("SAOP-TABLES")


def test_log_key_is_parsed_back_into_its_parts() -> None:
    turn = log_of(TurnRecorded("a/b", 2, 7, "developer", 0.5, {}, "d", masked=True))
    event = log_of(TraceRecorded("0a-1", "s", "ANY", {}, "e"))

    assert turn == Log("a/b", 2, 7, None, "d", True)
    assert event == Log("", 0, None, "0a-1", "e", False)
    assert turn is not None
    assert event is not None
    assert split_key(turn.key) == ("a/b", 2, 7)
    assert split_key(event.key) == "0a-1"
    assert log_of(TaskNoted("x")) is None


def test_transition_id_follows_from_its_hash() -> None:
    assert transition_id(b"\xff" * 32) == "ffffffff-ffff-8fff-bfff-ffffffffffff"
