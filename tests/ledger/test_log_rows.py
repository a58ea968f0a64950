"""Rows of the agent logs: which events have one, and their keys."""

from dragoman.core.task_state import TaskNoted
from dragoman.core.trace import TraceRecorded, TurnRecorded
from dragoman.ledger.entry import transition_id
from dragoman.ledger.stream_state import LogRow, log_row, parse_log_key
from tests.requirements import proves

pytestmark = proves("SAOP-TABLES")


def test_log_key_is_parsed_back_into_its_parts() -> None:
    turn = log_row(TurnRecorded("a/b", 2, 7, "developer", 0.5, {}, "d", masked=True))
    event = log_row(TraceRecorded("0a-1", "s", "ANY", {}, "e"))

    assert turn == LogRow("a/b", 2, 7, None, "d", True)
    assert event == LogRow("", 0, None, "0a-1", "e", False)
    assert turn is not None
    assert event is not None
    assert parse_log_key(turn.key) == ("a/b", 2, 7)
    assert parse_log_key(event.key) == "0a-1"
    assert log_row(TaskNoted("x")) is None


def test_transition_id_follows_from_its_hash() -> None:
    assert transition_id(b"\xff" * 32) == "ffffffff-ffff-8fff-bfff-ffffffffffff"
