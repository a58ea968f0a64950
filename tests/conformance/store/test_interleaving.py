"""Two hubs that have both read before either writes: exactly one of them gets what it wants."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AliasTask,
    AnyCommand,
    ClaimTask,
    CreateTask,
    LinkTask,
    MoveTask,
    RejectDelegation,
    RenewLease,
    ReportOutcome,
    RequestDelegation,
)
from dragoman.core.errors import Refusal, StoreConflict
from dragoman.engine.ports import Changes, Session, Store
from dragoman.engine.request import Accepted, Outcome, accepted
from dragoman.ledger.chain import GENESIS, link_hash
from tests.conformance.store.changes import a_row, an_entry, begin_stream
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.hubs import ALICE, ANN, BOB, HUB, Hub, Hubs, nothing_happens
from tests.conformance.store.threads import A_WHILE, PATIENCE, begin
from tests.core.handoffs import offer
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-INTERLEAVE")

TTL = 60_000


class Asked(Struct, frozen=True):
    """What one side wants."""

    actor: Actor
    command: AnyCommand
    key: str = ""


class Race(Struct, frozen=True):
    """What was there before, what both want at once, and what the second one is told."""

    before: Sequence[AnyCommand]
    first: Asked
    second: Asked
    refusals: frozenset[str]


def interleave(first: Hub, second: Hub, race: Race) -> list[Outcome]:
    """Let the first decide, then the second as far as it comes, and only then write."""
    has_decided = threading.Event()
    waiting: list[Future[Outcome]] = []

    def second_decided(failpoint: str) -> None:
        if failpoint == "decided":
            has_decided.set()

    def first_decided(failpoint: str) -> None:
        if failpoint == "decided" and not waiting:
            second.on_failpoint = second_decided
            waiting.append(begin(lambda: ask(second, race.second)))
            has_decided.wait(A_WHILE)

    first.on_failpoint = first_decided
    outcome = ask(first, race.first)
    outcomes = [outcome, waiting[0].result(PATIENCE)]
    first.on_failpoint = second.on_failpoint = nothing_happens
    return outcomes


def ask(hub: Hub, asked: Asked) -> Outcome:
    """Ask a hub for it."""
    return hub.ask(asked.actor, asked.command, key=asked.key)


READY = CreateTask("a task", "a", ready=True)
OTHER = CreateTask("another", "b", ready=True)

RACES = {
    "claim of one task": Race(
        [READY],
        Asked(ALICE, ClaimTask("a", "alice")),
        Asked(BOB, ClaimTask("a", "bob")),
        frozenset({"already_claimed"}),
    ),
    "claim of the only task that is next": Race(
        [READY],
        Asked(ALICE, ClaimTask("", "alice")),
        Asked(BOB, ClaimTask("", "bob")),
        frozenset({"nothing_ready"}),
    ),
    "claim and cancellation": Race(
        [READY],
        Asked(ANN, MoveTask("a", "cancelled")),
        Asked(BOB, ClaimTask("a", "bob")),
        frozenset({"not_ready"}),
    ),
    "the same id": Race(
        [],
        Asked(ANN, CreateTask("mine", "a")),
        Asked(BOB, CreateTask("mine too", "a")),
        frozenset({"already_exists"}),
    ),
    "the same alias for two tasks": Race(
        [READY, OTHER],
        Asked(ANN, AliasTask("a", "bead:x")),
        Asked(ANN, AliasTask("b", "bead:x")),
        frozenset({"already_exists"}),
    ),
    "two tasks that would wait for each other": Race(
        [READY, OTHER],
        Asked(ANN, LinkTask("a", "blocked-by", "b")),
        Asked(ANN, LinkTask("b", "blocked-by", "a")),
        frozenset({"link_cycle"}),
    ),
    "two delegations that would make a chain": Race(
        [READY, OTHER, CreateTask("a third", "c", ready=True)],
        Asked(ANN, RequestDelegation("b", "a", "bob", TTL)),
        Asked(ANN, RequestDelegation("c", "b", "bob", TTL)),
        frozenset({"nested_delegation"}),
    ),
    "a part that is taken by another and rejected": Race(
        [READY, OTHER, RequestDelegation("b", "a", "bob", TTL)],
        Asked(BOB, RejectDelegation("b")),
        Asked(ALICE, ClaimTask("b", "alice")),
        frozenset({"not_ready"}),
    ),
}


@proves("STORE-CLAIM-RACE")
@pytest.mark.parametrize("race", [pytest.param(race, id=name) for name, race in RACES.items()])
def test_of_two_that_cannot_both_have_it_one_wins(hubs: Hubs, race: Race) -> None:
    first, second = hubs.new(), hubs.new()
    for command in race.before:
        first.do(ANN, command)
    hubs.clock.advance(1)

    outcomes = interleave(first, second, race)

    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    assert [outcome.code in race.refusals for outcome in refusals] == [True]
    assert_sound(first.store)


def test_what_both_may_do_both_get(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    race = Race(
        [], Asked(ANN, CreateTask("one")), Asked(BOB, CreateTask("another")), frozenset[str]()
    )

    outcomes = interleave(first, second, race)

    tasks = [accepted(outcome).receipts[0].task for outcome in outcomes]
    assert sorted(tasks) == ["TASK-2026-02-09-001", "TASK-2026-02-09-002"]
    assert_sound(first.store)


@proves("IDEM-REPEAT")
def test_one_request_through_two_hubs_at_once_is_done_once(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    first.do(ANN, READY)
    same = Asked(ALICE, ClaimTask("a", "alice"), "k")

    outcomes = interleave(first, second, Race([], same, same, frozenset[str]()))

    answers = [accepted(outcome) for outcome in outcomes]
    assert [answer.repeated for answer in answers].count(True) == 1
    assert answers[0].receipts == answers[1].receipts
    assert first.store.head() == 2


@proves("ACP-RACE")
def test_one_offer_through_two_hubs_at_once_is_made_once(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    first.do(ANN, CreateTask("T", "T", ready=True))
    same = Asked(ALICE, offer())

    outcomes = interleave(first, second, Race([], same, same, frozenset[str]()))

    assert [accepted(outcome).receipts[0].stream for outcome in outcomes] == ["handoff:H"] * 2
    assert_sound(first.store)


@proves("LEASE-LOST")
def test_whoever_waited_for_a_claim_sees_its_lease(hubs: Hubs) -> None:
    first, second = hubs.new(), hubs.new()
    first.do(ANN, READY)
    race = Race(
        [],
        Asked(HUB, ClaimTask("a", "bob", "s-bob", TTL)),
        Asked(BOB, ReportOutcome("a", "done")),
        frozenset({"unassigned_task"}),
    )

    claimed, reported = interleave(first, second, race)

    # Before the claim nobody holds the task; after it Bob does. Nothing lies between.
    assert isinstance(claimed, Accepted)
    assert isinstance(reported, Accepted) or reported.code in race.refusals
    accepted(second.ask(BOB, RenewLease("a", fence=1)))
    assert_sound(first.store)


def test_whoever_comes_second_with_the_same_version_is_told(open_store: OpenStore) -> None:
    first, second = open_store(), open_store()
    number = begin_stream(first, "task:a")
    has_read = threading.Event()
    waiting: list[Future[str]] = []

    def append(store: Store, text: str, wait_for: threading.Event | None) -> str:
        def work(session: Session) -> str:
            (row,) = session.streams(["task:a"])
            if row.version > 1:
                return "too late"
            if wait_for is not None:
                waiting.append(begin(lambda: append(second, "second", None)))
                wait_for.wait(A_WHILE)
            else:
                has_read.set()
            entry = an_entry(number, 2, GENESIS, text)
            session.write(Changes([entry], [a_row(number, "task:a", 2)]))
            return "won"

        try:
            return store.transact(work)
        except StoreConflict:
            return "conflict"

    outcomes = [append(first, "first", has_read), waiting[0].result(PATIENCE)]

    assert outcomes.count("won") == 1
    assert set(outcomes) <= {"won", "too late", "conflict"}
    assert [entry.version for entry in first.history("task:a", 0, 10)] == [1, 2]


def assert_sound(store: Store) -> None:
    """Positions without a gap, every stream one chain."""
    heads: dict[str, tuple[int, bytes]] = {}
    for position, entry in enumerate(store.entries(0, 1_000), start=1):
        version, previous = heads.get(entry.stream, (0, GENESIS))
        assert (entry.position, entry.version) == (position, version + 1)
        assert entry.previous == previous
        assert entry.hash == link_hash(previous, entry.line)
        heads[entry.stream] = (entry.version, entry.hash)
