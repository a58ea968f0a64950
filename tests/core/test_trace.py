"""Rules of turns and traces that no dialect can break: shapes of commands, credentials."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.task_state import CreateTask
from dragoman.core.trace import (
    MAX_OPEN_CALLS,
    MAX_REMEMBERED,
    EscalateEntropy,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
    Trace,
)
from dragoman.engine.queries.traces import ScanLimit, trace_page
from dragoman.engine.verify import wrong_log_rows
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves

DEVELOPER = Actor("agent", "developer")
OBSERVER = Actor("observer", "otto")
TURN = RecordTurn("one", 0, "developer", 0.5, {"turn_index": 0}, "d")
TRACE = RecordTrace("01890a5d-ac96-774b-bcce-b302099a8057", "s-1", "ANY", {}, "d")


def trace_event(number: int) -> RecordTrace:
    """Event with an id of its own."""
    return replace(TRACE, event_id=f"01890a5d-ac96-774b-bcce-{number:012x}")


@proves("SAOP-ROLE", "SAOP-EVENTS", "SAOP-TURNS")
@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (OBSERVER, TURN, "not_authorized"),
        (OBSERVER, TRACE, "not_authorized"),
        (HUMAN, replace(TURN, agent="boss"), "invalid_field"),
        (HUMAN, replace(TURN, turn_index=-1), "invalid_field"),
        (HUMAN, replace(TURN, task="no name"), "invalid_id"),
        (HUMAN, replace(TRACE, event_id="e-1"), "invalid_id"),
        (HUMAN, replace(TRACE, session=""), "invalid_id"),
        (HUMAN, replace(TRACE, kind=" "), "invalid_field"),
        (HUMAN, replace(TRACE, agent="boss"), "invalid_field"),
        (OBSERVER, RequestTransition("one", "ready", ""), "not_authorized"),
        (HUMAN, RequestTransition("one", "ready", "", commit="x" * 5_000), "invalid_field"),
        (HUMAN, RequestTransition("no name", "ready", ""), "invalid_id"),
        (HUMAN, RequestTransition("two", "ready", "", adopt=False), "task_not_found"),
        (DEVELOPER, EscalateEntropy("one", "loop", "", (), 1, 1), "not_authorized"),
        (DEVELOPER, SettleEntropy("one", "loop", 1), "not_authorized"),
        (HUMAN, EscalateEntropy("one", "", "", (), 1, 1), "invalid_field"),
        (HUMAN, EscalateEntropy("two", "loop", "", (), 1, 1), "task_not_found"),
        (HUMAN, EscalateEntropy("one", "loop", "", (), 1, 1), ""),
        (HUMAN, SettleEntropy("one", "loop", 1), ""),
    ],
)
def test_invalid_trace_or_turn_is_refused(actor: Actor, command: Command, code: str) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("One", "one", ready=True))
    head = lab.store.head()

    assert lab.code(actor, command) == code
    if not code:
        assert lab.store.head() == head, "where there are no turns there is nothing to say"


@proves("SAOP-EVENTS", "SAOP-ROLE")
def test_attempt_credential_records_for_its_task_only() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("One", "one", ready=True), CreateTask("Two", "two", ready=True))
    lab.do(HUMAN, ClaimTask("one", "developer", "s-1"))
    bound = replace(DEVELOPER, task="one", fence=1)
    assert lab.do(bound, TRACE).task == "one"
    assert lab.do(bound, trace_event(1)).task == "one"
    assert lab.code(bound, replace(TURN, task="two")) == "not_authorized"
    assert lab.do(bound, TURN).task == "one"
    before = lab.lease("one")
    lab.clock.advance(1_000)
    stale = replace(DEVELOPER, task="one", fence=7)
    assert lab.code(stale, trace_event(2)) == ""
    assert lab.lease("one") == before, "an old token is no sign of life"
    assert lab.do(DEVELOPER, replace(trace_event(3), task="nothing")).task == ""
    assert lab.code(bound, replace(trace_event(4), task="two")) == "not_authorized"
    assert lab.code(bound, replace(trace_event(4), task="nothing")) == "not_authorized"
    assert lab.do(bound, replace(trace_event(4), task="one")).task == "one"


@proves("SAOP-EVENTS")
def test_event_of_holder_of_two_tasks_belongs_to_none() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("One", "one", ready=True), CreateTask("Two", "two", ready=True))
    lab.do(HUMAN, ClaimTask("one", "developer"), ClaimTask("two", "developer"))

    assert lab.do(DEVELOPER, TRACE).task == ""
    batch = lab.ask(HUMAN, ClaimTask("three", "x")), lab.do(DEVELOPER, trace_event(1))
    assert batch[1].task == ""


@proves("SAOP-ANOMALY")
def test_remembered_calls_of_session_are_limited() -> None:
    trace = Trace("s-1")

    assert len(trace.open_calls) < MAX_OPEN_CALLS
    lab = Lab()
    calls = [replace(trace_event(n), call=f"c-{n}") for n in range(MAX_REMEMBERED + 10)]
    lab.do(HUMAN, *calls)
    ends = [
        replace(trace_event(10_000 + n), call=f"c-{n}", ends_call=True) for n in range(len(calls))
    ]
    lab.do(HUMAN, *ends)
    assert lab.do(HUMAN, replace(ends[-1], event_id=trace_event(1_000).event_id)).warning == (
        "second_completion"
    )
    assert lab.do(HUMAN, replace(ends[0], event_id=trace_event(1_001).event_id)).warning == (
        "orphan_completion"
    )


@proves("SAOP-EVENTS")
def test_long_ledger_is_read_in_pages() -> None:
    lab = Lab()
    for number in range(9):
        lab.do(HUMAN, CreateTask("One", f"t-{number}"))
    lab.do(HUMAN, TRACE)
    few = ScanLimit(pages=2, page_size=2)
    first = trace_page(lab.store, scan=few)

    assert (first.events, first.next) == ((), 4)
    assert [one.position for one in trace_page(lab.store, after=8, scan=few).events] == [10]


@proves("SAOP-TABLES")
def test_unreadable_entry_is_reported_without_comparison() -> None:
    lab = Lab()
    lab.do(HUMAN, TRACE)
    store = lab.store.copy()
    (entry,) = store.tables.entries
    store.tables.entries[0] = replace(entry, line=b"{}")

    assert list(wrong_log_rows(store)) == [(1, "it has an unexpected row in the logs")]


@proves("SAOP-EVENTS")
def test_refused_request_leaves_no_row() -> None:
    lab = Lab()
    refused = lab.code(HUMAN, TRACE, TURN, replace(TURN, turn_index=-1))

    assert refused == "invalid_field"
    assert lab.do(HUMAN, TRACE).position == lab.store.head()
