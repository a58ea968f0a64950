"""Table of handoffs: one active handoff per task, also under concurrent requests."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import ActiveHandoffConflict, Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    Handoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.task_state import AdoptTask, CreateTask
from dragoman.engine.ports import Changes, Store
from dragoman.engine.queries.entries import stream_state
from dragoman.engine.request import Committed, Outcome
from dragoman.ledger.stream_state import HandoffRow, handoff_row
from tests.conformance.store.changes import write
from tests.conformance.store.hubs import ALICE, ANN, BOB, Hub, Hubs, no_failure
from tests.conformance.store.storages import Storage
from tests.conformance.store.threads import TIMEOUT_S, run_concurrently
from tests.core.handoffs import offer
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "ACP-TABLE")

WORKERS = 8
TRIALS = 100


def make_handoff_row(id: str, task: str = "T", status: str = "proposed") -> HandoffRow:
    """Make a row by hand."""
    return HandoffRow(id, "th", task, "a", "b", "t", "r", "{}", status, "{}", "{}", "2026")


def rows(store: Store) -> list[tuple[str, str]]:
    """List the id and status of every row."""
    return [(record.id, record.status) for record in store.handoffs("", 1_000)]


def handoff(store: Store, id: str = "H") -> Handoff:
    """Load the handoff from its stream."""
    row = store.stream(f"handoff:{id}")
    assert row is not None
    state = stream_state(store, row)
    assert isinstance(state, Handoff)
    return state


def create_task(hub: Hub) -> None:
    """Create the task T, ready for everyone."""
    hub.do(ANN, CreateTask("T", "T", ready=True))


def test_rows_are_kept_by_id_and_only_their_progress_is_updated(store: Store) -> None:
    first, second = make_handoff_row("a"), make_handoff_row("b", "U")
    write(store, Changes(new_handoffs=[second, first]))
    assert store.handoffs("", 9) == [first, second]
    assert store.handoffs("a", 9) == [second]
    assert store.handoffs("", 1) == [first]
    later = replace(
        first,
        status="rejected",
        verification_json='{"a":1}',
        resolved_at="2027",
        resolution_notes='{"b":"\N{SNOWMAN}"}',
    )
    write(store, Changes(new_handoffs=[later]))
    assert store.handoffs("", 9) == [later, second]


def test_task_has_one_active_handoff(store: Store) -> None:
    write(store, Changes(new_handoffs=[make_handoff_row("a")]))
    for status in ("proposed", "validating", "accepted", "activated"):
        with pytest.raises(ActiveHandoffConflict, match="under way"):
            write(store, Changes(new_handoffs=[make_handoff_row("b", status=status)]))
    assert rows(store) == [("a", "proposed")]
    for n, status in enumerate(("rejected", "completed", "closed")):
        write(store, Changes(new_handoffs=[make_handoff_row(f"c{n}", status=status)]))
    write(
        store, Changes(new_handoffs=[make_handoff_row("a", status="closed"), make_handoff_row("b")])
    )
    with pytest.raises(ActiveHandoffConflict):
        write(store, Changes(new_handoffs=[make_handoff_row("d"), make_handoff_row("e")]))
    write(store, Changes(new_handoffs=[make_handoff_row("b", status="activated")]))
    assert dict(rows(store))["b"] == "activated"


def test_table_follows_the_ledger(hubs: Hubs) -> None:
    hub = hubs.new()
    create_task(hub)
    hub.do(ALICE, offer(title="a\0title"))
    hub.do(BOB, AcceptHandoff("H", handoff(hub.store).package_hash, ("schema",)))
    hub.do(BOB, ActivateHandoff("H"))
    assert rows(hub.store) == [("H", "activated")]
    hub.do(BOB, offer("carol", "H2", supersedes="H"))
    assert rows(hub.store) == [("H", "completed"), ("H2", "proposed")]
    for record in hub.store.handoffs("", 9):
        assert record == handoff_row(handoff(hub.store, record.id))


def test_withdrawn_offer_is_replaced_within_one_request(hubs: Hubs) -> None:
    hub = hubs.new()
    create_task(hub)
    hub.do(ALICE, offer())
    hub.do(ALICE, WithdrawHandoff("H"), offer("carol", "A"))
    assert rows(hub.store) == [("A", "proposed"), ("H", "rejected")]


@proves("ACP-ONE-ACTIVE")
def test_conflicting_row_refuses_the_offer(hubs: Hubs) -> None:
    hub = hubs.new()
    create_task(hub)
    write(hub.store, Changes(new_handoffs=[make_handoff_row("from-elsewhere")]))
    answer = hub.ask(ALICE, offer())
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert rows(hub.store) == [("from-elsewhere", "proposed")]
    assert hub.store.stream("handoff:H") is None


class Crash(Exception):
    """Error that a test raises inside a hub."""


@proves("ACP-DECIDES-GATE")
@pytest.mark.parametrize("point", ["decided", "written"])
def test_crash_between_gate_and_commit_leaves_the_offer(hubs: Hubs, point: str) -> None:
    hub = hubs.new()
    create_task(hub)
    hub.do(ALICE, offer())
    offered = handoff(hub.store)

    def crash(reached: str) -> None:
        if reached == point:
            raise Crash

    hub.on_failpoint = crash
    with pytest.raises(Crash):
        hub.ask(BOB, AcceptHandoff("H", offered.package_hash, ("schema",)))
    hub.on_failpoint = no_failure
    assert (handoff(hub.store), rows(hub.store)) == (offered, [("H", "proposed")])
    hub.do(BOB, AcceptHandoff("H", offered.package_hash, ("schema",)))
    assert rows(hub.store) == [("H", "accepted")]


def outcome_text(outcome: Outcome) -> str:
    """Return "yes", or the code and kind of the refusal."""
    return "yes" if isinstance(outcome, Committed) else f"{outcome.code} {outcome.kind}".strip()


@proves("ACP-RACE", "ACP-ONE-ACTIVE")
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_one_of_eight_concurrent_offers_wins(database: Storage, is_known: bool) -> None:
    hubs = Hubs(database.open)
    workers = [hubs.new() for _ in range(WORKERS)]
    tasks = [f"T{n}" for n in range(TRIALS)]
    if is_known:
        workers[0].do(ANN, *(CreateTask(task, task, ready=True) for task in tasks))
    start = threading.Barrier(WORKERS)

    def offering(number: int) -> Callable[[], list[str]]:
        def run() -> list[str]:
            answers: list[str] = []
            for task in tasks:
                command = replace(offer(f"to-{number}", f"{task}.{number}"), task=task)
                worker = Actor("agent", f"w{number}")
                adoption = () if is_known else (AdoptTask("bead", task),)
                start.wait(TIMEOUT_S)
                answers.append(outcome_text(workers[number].ask(worker, *adoption, command)))
            return answers

        return run

    by_worker = run_concurrently([offering(number) for number in range(WORKERS)])
    for answers in zip(*by_worker, strict=True):
        assert Counter(answers) == {"yes": 1, "ownership_conflict active_handoff": WORKERS - 1}
    active = [record for record in workers[0].store.handoffs("", 1_000) if record.is_active]
    assert sorted(record.task_id for record in active) == sorted(tasks)
    hubs.close()


@proves("ACP-RACE")
def test_concurrent_accept_and_reject_have_one_winner(hubs: Hubs) -> None:
    both = hubs.new(), hubs.new()
    for n in range(10):
        both[0].do(ANN, CreateTask("T", f"T{n}", ready=True))
        both[0].do(ALICE, replace(offer(id=f"H{n}"), task=f"T{n}"))
        offered = handoff(both[0].store, f"H{n}")
        commands: tuple[Command, Command] = (
            AcceptHandoff(offered.id, offered.package_hash, notes="gladly"),
            RejectHandoff(offered.id, "other", "no"),
        )

        def ask_call(hub: Hub, command: Command) -> Callable[[], Outcome]:
            return lambda: hub.ask(BOB, command)

        answers = run_concurrently([ask_call(*pair) for pair in zip(both, commands, strict=True)])

        after = handoff(both[0].store, offered.id)
        # In either order the rejection counts: an accepted handoff can still be rejected.
        assert after.status == "rejected"
        was_accepted = after.find_step("accepted") is not None
        first = "yes" if was_accepted else "invalid_transition"
        assert list(map(outcome_text, answers)) == [first, "yes"]
        assert len(after.steps) == (4 if was_accepted else 2)
