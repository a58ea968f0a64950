"""When the store fails nothing is lost, nothing happens twice, and the poisoned fail alone."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    CreateTask,
    MoveTask,
    NoteTask,
    RenewLease,
)
from dragoman.core.commands.base import Command
from dragoman.core.errors import (
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreLost,
    StoreUnavailable,
)
from dragoman.engine.ports import Changes, ReadyKey, Session
from dragoman.engine.request import Accepted
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, OpenStore, code, findings, yes
from tests.requirements import proves

T = TypeVar("T")


class _Picky:
    """A session whose database cannot bear a certain word."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._session, verb)

    def write(self, changes: Changes) -> None:
        if any(b"unbearable" in entry.line for entry in changes.entries):
            raise ValueError("this database cannot bear that word")
        self._session.write(changes)


class PickyStore(OpenStore):
    """A store on such a database."""

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run the work on a picky session."""
        return super().transact(lambda session: work(cast(Session, _Picky(session))))


class _Ahead:
    """A session that is told of a task which another writer has only just made."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._session, verb)

    def ready(self, *_: object) -> list[ReadyKey]:
        return [ReadyKey(0, 0, 1, "task:unseen")]


class AheadStore(OpenStore):
    """A store whose first transaction is such a session."""

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run the work on a session that is ahead, once."""
        if self.transactions:
            return super().transact(work)
        return super().transact(lambda session: work(cast(Session, _Ahead(session))))


@proves("STORE-INTERLEAVE")
def test_a_batch_that_has_seen_two_moments_is_run_again() -> None:
    lab = Lab(AheadStore())
    assert lab.code(ALICE, ClaimTask("", "alice")) == "nothing_ready"
    assert lab.store.transactions == 2


@proves("ENGINE-BATCH-POISON")
def test_a_request_that_the_database_cannot_bear_fails_alone() -> None:
    lab = Lab(PickyStore())
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
def test_a_request_that_the_code_cannot_bear_fails_alone(
    lab: Lab, actor: Actor, command: AnyCommand
) -> None:
    first, poisoned, last = lab.batch(
        lab.request(HUMAN, CreateTask("one", "A")),
        lab.request(actor, command),
        lab.request(HUMAN, CreateTask("two", "B")),
    )
    assert isinstance(poisoned, Exception)
    assert yes(first).receipts[0].task == "A"
    assert yes(last).receipts[0].task == "B"
    assert lab.store.head() == 2
    with pytest.raises(type(poisoned)):
        lab.ask(actor, command)
    assert lab.store.head() == 2


@proves("ENGINE-BATCH-POISON", "IDEM-REPEAT")
def test_requests_that_are_run_singly_are_still_run_once(lab: Lab) -> None:
    """The batch fails after a commit whose outcome is unknown: each finds its own answer."""
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
    assert [yes(answers[n]).repeated for n in (0, 1, 3, 4)] == [True, True, True, False]
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
def test_a_batch_that_may_have_been_written_is_never_said_not_to_be(
    lab: Lab, later: list[Exception]
) -> None:
    """Found by cuts of real connections: the second try could not connect, and said so."""
    lab.store.losses, lab.store.faults = 1, [None, *later]
    answers = lab.batch(
        lab.request(HUMAN, CreateTask("one", "A")), lab.request(HUMAN, CreateTask("two", "B"))
    )
    assert [type(answer) for answer in answers] == [StoreLost, StoreLost]
    assert lab.store.head() == 2


@proves("STORE-INTERLEAVE")
@pytest.mark.parametrize("times", [1, 24])
def test_whoever_was_slower_tries_again(lab: Lab, times: int) -> None:
    lab.store.faults = [StoreConflict("another writer was faster")] * times
    receipt = lab.do(HUMAN, CreateTask("t"))
    assert receipt.task == "TASK-2026-02-09-001"
    assert lab.store.transactions == times + 1
    assert lab.store.head() == 1


@proves("STORE-INTERLEAVE")
def test_nobody_tries_for_ever(lab: Lab) -> None:
    lab.store.faults = [StoreConflict("another writer was faster")] * 25
    with pytest.raises(StoreConflict):
        lab.ask(HUMAN, CreateTask("t"))
    assert (lab.store.transactions, lab.store.head()) == (25, 0)
    assert lab.do(HUMAN, CreateTask("t")).task == "TASK-2026-02-09-001"


@proves("STORE-INTERLEAVE", "ENGINE-HANDLE")
def test_a_batch_that_was_slower_is_run_one_by_one(lab: Lab) -> None:
    lab.store.faults = [StoreConflict("slow"), StoreConflict("slow"), None, StoreConflict("slow")]
    answers = lab.batch(*(lab.request(HUMAN, CreateTask("t")) for _ in range(3)))
    assert [yes(answer).receipts[0].task[-3:] for answer in answers] == ["001", "002", "003"]
    assert lab.store.transactions == 1 + 2 + 2 + 1


@proves("STORE-ATOMIC", "STORE-CACHE")
@pytest.mark.parametrize("fault", [StoreUnavailable("full"), StoreCorrupt("damaged"), OSError()])
def test_a_store_that_fails_is_not_asked_again_and_nothing_has_changed(
    lab: Lab, fault: Exception
) -> None:
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
def test_a_commit_whose_outcome_is_unknown_is_found_and_not_repeated(
    lab: Lab, commands: tuple[AnyCommand, ...], key: str, losses: int
) -> None:
    actor = ALICE if any(isinstance(c, ClaimTask) for c in commands) else HUMAN
    other = Lab()
    for one in (lab, other):
        one.do(HUMAN, CreateTask("t", "T", ready=True, aliases=("bead:t",)))
        one.do(HUMAN, CreateTask("u", "U", ready=True))
    undisturbed = yes(other.ask(actor, *commands, key=key))
    lab.store.losses = losses
    answer = yes(lab.ask(actor, *commands, key=key))
    assert answer == Accepted(undisturbed.receipts, repeated=True)
    assert lab.lines() == other.lines()


@proves("STORE-ATOMIC")
def test_a_connection_that_is_lost_before_the_commit_is_tried_again(lab: Lab) -> None:
    lab.store.faults = [StoreLost("lost"), StoreLost("lost")]
    answer = yes(lab.ask(HUMAN, CreateTask("t")))
    assert (answer.repeated, lab.store.head()) == (False, 1)


@proves("STORE-ATOMIC")
def test_a_connection_that_stays_lost_is_told_to_the_caller(lab: Lab) -> None:
    lab.store.faults = [StoreLost("lost")] * 25
    with pytest.raises(StoreError):
        lab.ask(HUMAN, CreateTask("t"))


@proves("STORE-ATOMIC", "IDEM-REPEAT")
def test_what_left_no_entry_is_simply_done_again(lab: Lab) -> None:
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
def test_an_outage_is_told_to_everyone_at_once(lab: Lab, fault: Exception) -> None:
    lab.store.faults = [fault]
    answers = lab.batch(*(lab.request(HUMAN, CreateTask("t")) for _ in range(5)))
    assert answers == [fault] * 5
    assert (lab.store.transactions, lab.store.head()) == (1, 0)


@proves("STORE-ATOMIC", "IDEM-REPEAT")
def test_what_a_lost_try_did_stays_unknown_whatever_comes_after_it(lab: Lab) -> None:
    lab.store.losses = 1
    lab.store.faults = [None, StoreUnavailable("nothing was written")]
    with pytest.raises(StoreLost):
        lab.ask(HUMAN, CreateTask("t"))
    assert lab.store.head() == 1


@proves("ENGINE-HANDLE")
def test_closing_finishes_what_was_handed_in_this_very_turn(lab: Lab) -> None:
    async def ask_and_close() -> Any:
        asked = lab.engine.handle(lab.request(HUMAN, CreateTask("t")))
        lab.engine.close()
        return await asked

    assert yes(asyncio.run(ask_and_close())).receipts
    lab.engine.close()
