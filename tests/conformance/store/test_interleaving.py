"""Interleaving: two hubs read before either writes, and one of two exclusive requests wins."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.delegation import RejectDelegation, RequestDelegation
from dragoman.core.errors import Refusal, StoreConflict
from dragoman.core.task_state import AliasTask, CreateTask, LinkTask, MoveTask
from dragoman.engine.ports import Changes, Store, Transaction
from dragoman.engine.request import Committed, Outcome, committed_or_raise
from dragoman.ledger.entry import GENESIS, link_hash
from tests.conformance.store.changes import begin_stream, make_entry, make_row
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.hubs import ALICE, ANN, BOB, HUB, Hub, Hubs, no_failure
from tests.conformance.store.threads import BLOCKED_AFTER_S, TIMEOUT_S, start_thread
from tests.core.handoffs import offer
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-INTERLEAVE")

TTL = 60_000


class RaceRequest(Struct, frozen=True):
    """Request of one side of a race."""

    actor: Actor
    command: Command
    key: str = ""


class Race(Struct, frozen=True):
    """Commands before the race, the two racing requests, and the loser's possible refusals."""

    before: Sequence[Command]
    first: RaceRequest
    second: RaceRequest
    refusals: frozenset[str]


def interleave(first: Hub, second: Hub, race: Race) -> list[Outcome]:
    """Let both hubs decide, as far as the store allows, before the first one writes."""
    has_decided = threading.Event()
    waiting: list[Future[Outcome]] = []

    def second_decided(failpoint: str) -> None:
        if failpoint == "decided":
            has_decided.set()

    def first_decided(failpoint: str) -> None:
        if failpoint == "decided" and not waiting:
            second.on_failpoint = second_decided
            waiting.append(start_thread(lambda: ask(second, race.second)))
            has_decided.wait(BLOCKED_AFTER_S)

    first.on_failpoint = first_decided
    outcome = ask(first, race.first)
    outcomes = [outcome, waiting[0].result(TIMEOUT_S)]
    first.on_failpoint = second.on_failpoint = no_failure
    return outcomes


def ask(hub: Hub, requested: RaceRequest) -> Outcome:
    """Submit the request to a hub."""
    return hub.ask(requested.actor, requested.command, key=requested.key)


READY = CreateTask("a task", "a", ready=True)
OTHER = CreateTask("another", "b", ready=True)

RACES = {
    "claim of one task": Race(
        [READY],
        RaceRequest(ALICE, ClaimTask("a", "alice")),
        RaceRequest(BOB, ClaimTask("a", "bob")),
        frozenset({"already_claimed"}),
    ),
    "claim of the only ready task": Race(
        [READY],
        RaceRequest(ALICE, ClaimTask("", "alice")),
        RaceRequest(BOB, ClaimTask("", "bob")),
        frozenset({"nothing_ready"}),
    ),
    "claim and cancellation": Race(
        [READY],
        RaceRequest(ANN, MoveTask("a", "cancelled")),
        RaceRequest(BOB, ClaimTask("a", "bob")),
        frozenset({"not_ready"}),
    ),
    "the same id": Race(
        [],
        RaceRequest(ANN, CreateTask("mine", "a")),
        RaceRequest(BOB, CreateTask("mine too", "a")),
        frozenset({"already_exists"}),
    ),
    "the same alias for two tasks": Race(
        [READY, OTHER],
        RaceRequest(ANN, AliasTask("a", "bead:x")),
        RaceRequest(ANN, AliasTask("b", "bead:x")),
        frozenset({"already_exists"}),
    ),
    "two links that would make a cycle": Race(
        [READY, OTHER],
        RaceRequest(ANN, LinkTask("a", "blocked-by", "b")),
        RaceRequest(ANN, LinkTask("b", "blocked-by", "a")),
        frozenset({"link_cycle"}),
    ),
    "two delegations that would be nested": Race(
        [READY, OTHER, CreateTask("a third", "c", ready=True)],
        RaceRequest(ANN, RequestDelegation("b", "a", "bob", TTL)),
        RaceRequest(ANN, RequestDelegation("c", "b", "bob", TTL)),
        frozenset({"nested_delegation"}),
    ),
    "delegated task claimed by another and rejected": Race(
        [READY, OTHER, RequestDelegation("b", "a", "bob", TTL)],
        RaceRequest(BOB, RejectDelegation("b")),
        RaceRequest(ALICE, ClaimTask("b", "alice")),
        frozenset({"not_ready"}),
    ),
}


@proves("STORE-CLAIM-RACE")
@pytest.mark.parametrize("race", [pytest.param(race, id=name) for name, race in RACES.items()])
def test_one_of_two_exclusive_requests_wins(hubs: Hubs, race: Race) -> None:
    first, second = hubs.new(), hubs.new()
    for command in race.before:
        first.do(ANN, command)
    hubs.clock.advance(1)

    outcomes = interleave(first, second, race)

    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    assert [outcome.code in race.refusals for outcome in refusals] == [True]
    assert_sound(first.store)


def test_compatible_requests_both_succeed(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    race = Race(
        [],
        RaceRequest(ANN, CreateTask("one")),
        RaceRequest(BOB, CreateTask("another")),
        frozenset[str](),
    )

    outcomes = interleave(first, second, race)

    tasks = [committed_or_raise(outcome).receipts[0].task for outcome in outcomes]
    assert sorted(tasks) == ["TASK-2026-02-09-001", "TASK-2026-02-09-002"]
    assert_sound(first.store)


@proves("IDEM-REPEAT")
def test_one_request_through_two_hubs_runs_once(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    first.do(ANN, READY)
    same = RaceRequest(ALICE, ClaimTask("a", "alice"), "k")

    outcomes = interleave(first, second, Race([], same, same, frozenset[str]()))

    answers = [committed_or_raise(outcome) for outcome in outcomes]
    assert [answer.repeated for answer in answers].count(True) == 1
    assert answers[0].receipts == answers[1].receipts
    assert first.store.head() == 2


@proves("ACP-RACE")
def test_one_offer_through_two_hubs_is_made_once(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    first.do(ANN, CreateTask("T", "T", ready=True))
    same = RaceRequest(ALICE, offer())

    outcomes = interleave(first, second, Race([], same, same, frozenset[str]()))

    assert [committed_or_raise(outcome).receipts[0].stream for outcome in outcomes] == [
        "handoff:H"
    ] * 2
    assert_sound(first.store)


@proves("LEASE-LOST")
def test_report_that_waited_for_a_claim_sees_its_lease(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    first.do(ANN, READY)
    race = Race(
        [],
        RaceRequest(HUB, ClaimTask("a", "bob", "s-bob", TTL)),
        RaceRequest(BOB, ReportOutcome("a", "done")),
        frozenset({"unassigned_task"}),
    )

    claimed, reported = interleave(first, second, race)

    # Before the claim the task has no holder, after it Bob holds it; there is no state between.
    assert isinstance(claimed, Committed)
    assert isinstance(reported, Committed) or reported.code in race.refusals
    committed_or_raise(second.ask(BOB, RenewLease("a", fence=1)))
    assert_sound(first.store)


def test_second_writer_of_a_version_gets_a_conflict(open_store: OpenStore) -> None:
    first, second = open_store(), open_store()
    number = begin_stream(first, "task:a")
    has_read = threading.Event()
    waiting: list[Future[str]] = []

    def append(store: Store, text: str, wait_for: threading.Event | None) -> str:
        def work(session: Transaction) -> str:
            (row,) = session.streams(["task:a"])
            if row.version > 1:
                return "too late"
            if wait_for is not None:
                waiting.append(start_thread(lambda: append(second, "second", None)))
                wait_for.wait(BLOCKED_AFTER_S)
            else:
                has_read.set()
            entry = make_entry(number, 2, GENESIS, text)
            session.write(Changes([entry], [make_row(number, "task:a", 2)]))
            return "won"

        try:
            return store.transact(work)
        except StoreConflict:
            return "conflict"

    outcomes = [append(first, "first", has_read), waiting[0].result(TIMEOUT_S)]

    assert outcomes.count("won") == 1
    assert set(outcomes) <= {"won", "too late", "conflict"}
    assert [entry.version for entry in first.history("task:a", 0, 10)] == [1, 2]


def assert_sound(store: Store) -> None:
    """Check that positions have no gap and that every stream is one hash chain."""
    heads: dict[str, tuple[int, bytes]] = {}
    for position, entry in enumerate(store.entries(0, 1_000), start=1):
        version, previous = heads.get(entry.stream, (0, GENESIS))
        assert (entry.position, entry.version) == (position, version + 1)
        assert entry.previous == previous
        assert entry.hash == link_hash(previous, entry.line)
        heads[entry.stream] = (entry.version, entry.hash)
