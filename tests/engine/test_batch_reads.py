"""Reads of a batch: cached between batches, loaded in bulk, and invalidated."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.errors import StoreUnavailable
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    CompleteHandoff,
    ProposeHandoff,
)
from dragoman.core.intent.candidate import Policy, Requirements
from dragoman.core.intent.state import DelegateIntent, ReceiveResult
from dragoman.core.mail import PostMail
from dragoman.core.task_state import AdoptTask, CreateTask, LinkTask, MoveTask, NoteTask
from dragoman.engine import batch_reads
from dragoman.engine.candidate_index import CandidateIndex
from dragoman.ledger.stream_state import FOLD_VERSION
from tests.engine.handoffs import CHECKS, package, state
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, assert_accepted
from tests.requirements import proves


def streams_read(lab: Lab) -> list[str]:
    """List the streams read since the last call."""
    requested = [argument for verb, argument in lab.store.calls if verb == "streams"]
    lab.store.calls.clear()
    return [name for names in requested for name in names]


@proves("STORE-CACHE")
def test_stream_read_once_is_served_from_the_cache(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    streams_read(lab)
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, NoteTask("T", "x"))
    assert "task:T" not in streams_read(lab)


@proves("STORE-CACHE")
def test_note_on_a_task_in_handoff_does_not_read_the_handoff(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ProposeHandoff("T", "bob", package("T"), "H"))
    fresh = Lab(lab.store)
    streams_read(fresh)
    fresh.do(HUMAN, NoteTask("T", "x"))
    assert "handoff:H" not in streams_read(fresh)


@proves("STORE-CACHE")
def test_batch_reads_all_named_streams_in_bulk(lab: Lab) -> None:
    lab.batch(*(lab.request(HUMAN, CreateTask("t", f"T{n}")) for n in range(50)))
    fresh = Lab(lab.store)
    lab.store.calls.clear()
    fresh.batch(
        *(fresh.request(HUMAN, NoteTask(f"T{n}", "x"), key=f"k{n}") for n in range(50)),
        *(fresh.request(HUMAN, CreateTask("u")) for _ in range(25)),
        *(fresh.request(HUMAN, CreateTask("u", f"U{n}")) for n in range(25)),
    )
    fresh.engine.close()
    verbs = [verb for verb, _ in lab.store.calls if verb != "new_stream_number"]
    assert sorted(set(verbs)) == ["find_aliases", "last_number", "streams", "write"]
    assert verbs.count("find_aliases") == 1


@proves("STORE-CACHE")
def test_batch_reads_streams_to_be_created_in_bulk(lab: Lab) -> None:
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(HUMAN, RegisterAgent("bob"), DescribeAgent("bob", ("python",)))
    found = CandidateIndex(lab.store).shortlist(Requirements("python"), Policy(), lab.clock.now())

    def run_and_count(actor: Actor, *commands: tuple[Command, ...]) -> tuple[list[str], int]:
        """Run requests in one batch; return their names and the number of bulk reads."""
        lab.store.calls.clear()
        done = lab.batch(*(lab.request(actor, *some) for some in commands))
        verbs = [verb for verb, _ in lab.store.calls]
        return [assert_accepted(one).subject_id for one in done], verbs.count(
            "streams"
        ) + verbs.count("find_aliases")

    letter, goal = PostMail(("bob",), "lunch?", "x"), DelegateIntent("python", candidates=found)
    assert run_and_count(ALICE, *((letter,),) * 3)[1] == 1
    intents, reads = run_and_count(HUMAN, *((goal,),) * 3)
    assert reads == 2, "of streams and of names"
    results = (ReceiveResult(id, "bob", success=True) for id in intents)
    assert run_and_count(BOB, *((one,) for one in results))[1] <= 2, "bob has not spoken before"
    tasks = [f"t{number}" for number in range(3)]
    offers = (ProposeHandoff(f"acp:{one}", "bob", package(one), id=f"h-{one}") for one in tasks)
    adopted = zip((AdoptTask("acp", one) for one in tasks), offers, strict=True)
    handoffs, reads = run_and_count(ALICE, *adopted)
    numbers_of_tasks = 2 * len(tasks)
    assert reads == 2 + numbers_of_tasks, "which ids those get is found out one by one"
    hashes = [state(lab, id).package_hash for id in handoffs]
    accepted = (AcceptHandoff(*one, passed=CHECKS) for one in zip(handoffs, hashes, strict=True))
    assert run_and_count(BOB, *((one,) for one in accepted))[1] == 1
    lab.batch(*(lab.request(BOB, ActivateHandoff(id)) for id in handoffs))
    assert run_and_count(BOB, *((CompleteHandoff(id),) for id in handoffs))[1] == 1


@proves("STORE-CACHE")
def test_failed_batch_clears_the_cache(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    lab.store.faults = [StoreUnavailable("full")]
    with pytest.raises(StoreUnavailable):
        lab.ask(HUMAN, NoteTask("T", "never written"))
    streams_read(lab)
    lab.do(HUMAN, NoteTask("T", "written"))
    assert "task:T" in streams_read(lab)
    assert lab.task("T").notes == 1


@proves("STORE-CACHE")
def test_write_by_another_process_invalidates_the_cache(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(HUMAN, NoteTask("T", "x"))
    other = Lab(lab.store)
    other.do(BOB, ClaimTask("T", "bob"))
    lab.store.is_fresh = False
    assert lab.code(ALICE, ClaimTask("T", "alice")) == "already_claimed"
    lab.store.is_fresh = True
    assert lab.task("T").assignee == "bob"


@proves("STORE-CACHE")
def test_missing_stream_is_read_again_after_another_process_wrote(lab: Lab) -> None:
    assert lab.code(HUMAN, NoteTask("T", "x")) == "task_not_found"
    Lab(lab.store).do(HUMAN, CreateTask("t", "T"))
    lab.store.is_fresh = False
    assert lab.code(HUMAN, NoteTask("T", "x")) == ""
    assert lab.code(HUMAN, CreateTask("t", "T")) == "already_exists"


@proves("STORE-CACHE")
def test_cache_is_bounded_and_keeps_the_newest_streams(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reads, "MAX_CACHED", 20)
    for number in range(100):
        lab.do(HUMAN, CreateTask("t", f"T{number}"))
    streams_read(lab)
    for number in range(95, 100):
        lab.do(HUMAN, NoteTask(f"T{number}", "x"))
    assert set(streams_read(lab)) <= {HUMAN.stream}
    lab.do(HUMAN, NoteTask("T0", "x"))
    assert "task:T0" in streams_read(lab)
    assert all(lab.task(f"T{number}").notes == 1 for number in range(95, 100))


@proves("STORE-REFOLD")
def test_state_of_an_old_fold_is_refolded_when_needed(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    known, number = lab.task("T"), lab.store.tables.numbers["task:T"]
    row = lab.store.tables.rows[number]
    lab.store.tables.rows[number] = replace(
        row, fold_version=FOLD_VERSION - 1, state=b"as older rules had it"
    )
    assert lab.task("T") == known, "readers fold it too"
    fresh = Lab(lab.store)
    assert assert_accepted(fresh.ask(ALICE, NoteTask("T", "x"))).receipts[0].attempt == 1
    written = lab.store.tables.rows[number]
    assert written.fold_version == FOLD_VERSION
    assert lab.task("T") == replace(known, notes=1)


@proves("STORE-CACHE")
def test_linked_and_aliased_streams_are_loaded_on_demand(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("a", "A", aliases=("bead:a",)))
    lab.do(HUMAN, CreateTask("b", "B", ready=True, blocked_by=("A",)))
    fresh = Lab(lab.store)
    fresh.do(HUMAN, MoveTask("bead:a", "cancelled"))
    assert fresh.code(ALICE, ClaimTask("", "alice")) == ""
    fresh = Lab(lab.store)
    assert fresh.code(HUMAN, LinkTask("a", "blocked-by", "B")) == "link_cycle"
