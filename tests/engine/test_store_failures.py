"""Store failures: no loss, no duplicate, and a poisoned request fails alone."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease
from dragoman.core.base import Command
from dragoman.core.errors import (
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreLost,
    StoreUnavailable,
)
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.ports import Changes, ReadyKey, Transaction
from dragoman.engine.request import Committed
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, OpenStore, assert_accepted, code, findings
from tests.requirements import proves

T = TypeVar("T")


class _RejectingSession:
    """Session whose database rejects a certain word."""

    def __init__(self, session: Transaction) -> None:
        self._session = session

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._session, verb)

    def write(self, changes: Changes) -> None:
        if any(b"unbearable" in entry.line for entry in changes.entries):
            raise ValueError("this database cannot bear that word")
        self._session.write(changes)


class RejectingStore(OpenStore):
    """Store on such a database."""

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run the work in a rejecting session."""
        return super().transact(lambda session: work(cast(Transaction, _RejectingSession(session))))


class _AheadSession:
    """Session that returns a task which another writer has just created."""

    def __init__(self, session: Transaction) -> None:
        self._session = session

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._session, verb)

    def ready_page(self, *_: object) -> list[ReadyKey]:
        return [ReadyKey(0, 0, 1, "task:unseen")]


class AheadStore(OpenStore):
    """Store whose first transaction has such a session."""

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run the work in such a session, once."""
        if self.transactions:
            return super().transact(work)
        return super().transact(lambda session: work(cast(Transaction, _AheadSession(session))))


@proves("STORE-INTERLEAVE")
def test_batch_that_saw_two_moments_is_rerun() -> None:
    lab = Lab(AheadStore())
    assert lab.code(ALICE, ClaimTask("", "alice")) == "nothing_ready"
    assert lab.store.transactions == 2


@proves("ENGINE-BATCH-POISON")
def test_request_that_the_database_rejects_fails_alone() -> None:
    lab = Lab(RejectingStore())
    answers = lab.batch(
        lab.request(HUMAN, CreateTask("one", "A")),
        lab.request(HUMAN, CreateTask("unbearable", "B")),
        lab.request(HUMAN, CreateTask("two", "C")),
        lab.request(HUMAN, NoteTask("nowhere", "x")),
        lab.request(HUMAN, NoteTask("A", "three")),
    )
    lab.engine.close()
    assert isinstance(answers[1], ValueError)
    assert [code(a) for a in answers if a is not answers[1]] == ["", "", "task_not_found", ""]
    assert [stream for stream, _ in lab.lines()] == [
        "task:A",
        "task:C",
        "actor:human:hera",
        "task:A",
    ]
    assert findings(lab.store) == []


@proves("ENGINE-BATCH-POISON")
@pytest.mark.parametrize(
    ("actor", "command"),
    [
        (HUMAN, CreateTask("x", priority=cast(Any, "no such priority"), ready=True)),
        (HUMAN, CreateTask(cast(Any, None))),
        (HUMAN, cast(Any, Command())),
    ],
    ids=range(3),
)
def test_request_that_raises_fails_alone(lab: Lab, actor: Actor, command: Command) -> None:
    first, poisoned, last = lab.batch(
        lab.request(HUMAN, CreateTask("one", "A")),
        lab.request(actor, command),
        lab.request(HUMAN, CreateTask("two", "B")),
    )
    assert isinstance(poisoned, Exception)
    assert assert_accepted(first).receipts[0].task == "A"
    assert assert_accepted(last).receipts[0].task == "B"
    assert lab.store.head() == 2
    with pytest.raises(type(poisoned)):
        lab.ask(actor, command)
    assert lab.store.head() == 2


@proves("ENGINE-BATCH-POISON", "IDEM-REPEAT")
def test_requests_rerun_one_by_one_run_once(lab: Lab) -> None:
    """A batch fails after a commit of unknown outcome: each request finds its own answer."""
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.store.losses = 1
    answers = lab.batch(
        lab.request(ALICE, ClaimTask("", "alice")),
        lab.request(ALICE, NoteTask("T", "x"), key="k"),
        lab.request(BOB, ClaimTask("T", "bob")),
        lab.request(HUMAN, CreateTask("u")),
        lab.request(ALICE, RenewLease("T", 1)),
    )
    assert [code(answer) for answer in answers] == ["", "", "already_claimed", "", ""]
    assert [assert_accepted(answers[n]).repeated for n in (0, 1, 3, 4)] == [True, True, True, False]
    assert [event for _, event in lab.lines()] == [
        "task.created",
        "task.claimed",
        "task.noted",
        "command.refused",
        "task.created",
    ]


@proves("STORE-ATOMIC", "ENGINE-BATCH-POISON")
@pytest.mark.parametrize(
    "later",
    [
        [StoreUnavailable("cannot be reached; nothing was written")],
        [StoreConflict("faster"), *[StoreUnavailable("cannot be reached")] * 2],
        [ValueError("poisoned"), *[StoreUnavailable("cannot be reached")] * 2],
    ],
    ids=["at once", "after a conflict", "one by one"],
)
def test_batch_of_unknown_outcome_is_never_reported_as_unwritten(
    lab: Lab, later: list[Exception]
) -> None:
    """Found by cutting connections: the second try could not connect, and said "not written"."""
    lab.store.losses, lab.store.faults = 1, [None, *later]
    answers = lab.batch(
        lab.request(HUMAN, CreateTask("one", "A")), lab.request(HUMAN, CreateTask("two", "B"))
    )
    assert [type(answer) for answer in answers] == [StoreLost, StoreLost]
    assert lab.store.head() == 2


@proves("STORE-INTERLEAVE")
@pytest.mark.parametrize("times", [1, 24])
def test_conflict_is_retried(lab: Lab, times: int) -> None:
    lab.store.faults = [StoreConflict("another writer was faster")] * times
    receipt = lab.do(HUMAN, CreateTask("t"))
    assert receipt.task == "TASK-2026-02-09-001"
    assert lab.store.transactions == times + 1
    assert lab.store.head() == 1


@proves("STORE-INTERLEAVE")
def test_conflicts_are_retried_a_bounded_number_of_times(lab: Lab) -> None:
    lab.store.faults = [StoreConflict("another writer was faster")] * 25
    with pytest.raises(StoreConflict):
        lab.ask(HUMAN, CreateTask("t"))
    assert (lab.store.transactions, lab.store.head()) == (25, 0)
    assert lab.do(HUMAN, CreateTask("t")).task == "TASK-2026-02-09-001"


@proves("STORE-INTERLEAVE", "ENGINE-HANDLE")
def test_conflicting_batch_is_rerun_one_by_one(lab: Lab) -> None:
    lab.store.faults = [StoreConflict("slow"), StoreConflict("slow"), None, StoreConflict("slow")]
    answers = lab.batch(*(lab.request(HUMAN, CreateTask("t")) for _ in range(3)))
    assert [assert_accepted(answer).receipts[0].task[-3:] for answer in answers] == [
        "001",
        "002",
        "003",
    ]
    assert lab.store.transactions == 1 + 2 + 2 + 1


@proves("STORE-ATOMIC", "STORE-CACHE")
@pytest.mark.parametrize("fault", [StoreUnavailable("full"), StoreCorrupt("damaged"), OSError()])
def test_failed_store_is_not_retried_and_nothing_changes(lab: Lab, fault: Exception) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    before = lab.store.picture()
    lab.store.faults = [fault]
    transactions = lab.store.transactions
    with pytest.raises(type(fault)):
        lab.ask(ALICE, ClaimTask("T", "alice"))
    assert lab.store.transactions == transactions + 1
    assert lab.store.picture() == before
    assert lab.do(ALICE, ClaimTask("T", "alice")).fence == 1


@proves("IDEM-REPEAT", "STORE-ATOMIC")
@pytest.mark.parametrize(
    "commands",
    [
        (CreateTask("new"),),
        (CreateTask("new", "N", ready=True), ClaimTask("N", "alice")),
        (ClaimTask("", "alice"),),
        (ClaimTask("T", "alice"),),
        (NoteTask("T", "x"),),
        (NoteTask("bead:t", "x"), MoveTask("T", "blocked")),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("key", ["", "k"])
@pytest.mark.parametrize("losses", [1, 2])
def test_commit_of_unknown_outcome_is_found_and_not_repeated(
    lab: Lab, commands: tuple[Command, ...], key: str, losses: int
) -> None:
    actor = ALICE if any(isinstance(c, ClaimTask) for c in commands) else HUMAN
    other = Lab()
    for one in (lab, other):
        one.do(HUMAN, CreateTask("t", "T", ready=True, aliases=("bead:t",)))
        one.do(HUMAN, CreateTask("u", "U", ready=True))
    undisturbed = assert_accepted(other.ask(actor, *commands, key=key))
    lab.store.losses = losses
    answer = assert_accepted(lab.ask(actor, *commands, key=key))
    assert answer == Committed(undisturbed.receipts, repeated=True)
    assert lab.lines() == other.lines()


@proves("STORE-ATOMIC")
def test_connection_lost_before_the_commit_is_retried(lab: Lab) -> None:
    lab.store.faults = [StoreLost("lost"), StoreLost("lost")]
    answer = assert_accepted(lab.ask(HUMAN, CreateTask("t")))
    assert (answer.repeated, lab.store.head()) == (False, 1)


@proves("STORE-ATOMIC")
def test_lasting_connection_loss_reaches_the_caller(lab: Lab) -> None:
    lab.store.faults = [StoreLost("lost")] * 25
    with pytest.raises(StoreError):
        lab.ask(HUMAN, CreateTask("t"))


@proves("STORE-ATOMIC", "IDEM-REPEAT")
def test_request_without_an_entry_is_repeated_after_a_lost_commit(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    head = lab.store.head()
    lab.store.losses = 1
    assert lab.do(ALICE, RenewLease("T", 1)).fence == 1
    lab.store.losses = 1
    assert lab.code(BOB, RenewLease("T")) == "unauthorized_agent"
    assert lab.store.head() == head + 1, "a refusal is recorded once"


@proves("ENGINE-HANDLE", "STORE-ATOMIC")
@pytest.mark.parametrize("fault", [StoreUnavailable("away"), StoreCorrupt("damaged")])
def test_outage_fails_all_callers_of_the_batch_at_once(lab: Lab, fault: Exception) -> None:
    lab.store.faults = [fault]
    answers = lab.batch(*(lab.request(HUMAN, CreateTask("t")) for _ in range(5)))
    assert answers == [fault] * 5
    assert (lab.store.transactions, lab.store.head()) == (1, 0)


@proves("STORE-ATOMIC", "IDEM-REPEAT")
def test_outcome_of_a_lost_try_stays_unknown_after_later_failures(lab: Lab) -> None:
    lab.store.losses = 1
    lab.store.faults = [None, StoreUnavailable("nothing was written")]
    with pytest.raises(StoreLost):
        lab.ask(HUMAN, CreateTask("t"))
    assert lab.store.head() == 1


@proves("ENGINE-HANDLE")
def test_close_waits_for_requests_of_the_same_loop_tick(lab: Lab) -> None:
    async def submit_and_close() -> Any:
        pending = lab.engine.handle(lab.request(HUMAN, CreateTask("t")))
        lab.engine.close()
        return await pending

    assert assert_accepted(asyncio.run(submit_and_close())).receipts
    lab.engine.close()
