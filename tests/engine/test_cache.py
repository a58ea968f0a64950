"""What the engine keeps from batch to batch, what it reads in one stroke, and when it forgets."""

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    AdoptTask,
    AnyCommand,
    ClaimTask,
    CompleteHandoff,
    CreateTask,
    DelegateIntent,
    DescribeAgent,
    LinkTask,
    MoveTask,
    NoteTask,
    PostMail,
    ProposeHandoff,
    ReceiveResult,
    RegisterAgent,
)
from dragoman.core.errors import StoreUnavailable
from dragoman.core.offers import Policy, Wish
from dragoman.engine import snapshots
from dragoman.engine.reads.roster import Rosters
from dragoman.ledger.views import FOLD
from tests.engine.handoffs import CHECKS, package, state
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, yes
from tests.requirements import proves


def reads(lab: Lab) -> list[str]:
    """The streams that were read since the last call."""
    asked = [what for verb, what in lab.store.asked if verb == "streams"]
    lab.store.asked.clear()
    return [name for names in asked for name in names]


@proves("STORE-CACHE")
def test_what_was_read_once_is_not_read_again(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    reads(lab)
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, NoteTask("T", "x"))
    assert "task:T" not in reads(lab)


@proves("STORE-CACHE")
def test_what_is_said_of_a_task_on_its_way_needs_no_look_at_its_handoff(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ProposeHandoff("T", "bob", package("T"), "H"))
    fresh = Lab(lab.store)
    reads(fresh)
    fresh.do(HUMAN, NoteTask("T", "x"))
    assert "handoff:H" not in reads(fresh)


@proves("STORE-CACHE")
def test_a_batch_reads_all_that_it_names_in_one_stroke(lab: Lab) -> None:
    lab.batch(*(lab.request(HUMAN, CreateTask("t", f"T{n}")) for n in range(50)))
    fresh = Lab(lab.store)
    lab.store.asked.clear()
    fresh.batch(
        *(fresh.request(HUMAN, NoteTask(f"T{n}", "x"), key=f"k{n}") for n in range(50)),
        *(fresh.request(HUMAN, CreateTask("u")) for _ in range(25)),
        *(fresh.request(HUMAN, CreateTask("u", f"U{n}")) for n in range(25)),
    )
    fresh.engine.close()
    verbs = [verb for verb, _ in lab.store.asked if verb != "new_stream"]
    assert sorted(set(verbs)) == ["last_number", "named", "streams", "write"]
    assert verbs.count("named") == 1


@proves("STORE-CACHE")
def test_what_a_batch_makes_is_looked_for_in_one_stroke_too(lab: Lab) -> None:
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(HUMAN, RegisterAgent("bob"), DescribeAgent("bob", ("python",)))
    found = Rosters(lab.store).shortlist(Wish("python"), Policy(), lab.clock.now())

    def strokes(actor: Actor, *commands: tuple[AnyCommand, ...]) -> tuple[list[str], int]:
        """What three requests came to, and how often streams and names were asked for."""
        lab.store.asked.clear()
        done = lab.batch(*(lab.request(actor, *some) for some in commands))
        verbs = [verb for verb, _ in lab.store.asked]
        return [yes(one).name for one in done], verbs.count("streams") + verbs.count("named")

    letter, goal = PostMail(("bob",), "lunch?", "x"), DelegateIntent("python", candidates=found)
    assert strokes(ALICE, *((letter,),) * 3)[1] == 1
    intents, asked = strokes(HUMAN, *((goal,),) * 3)
    assert asked == 2, "of streams and of names"
    results = (ReceiveResult(id, "bob", success=True) for id in intents)
    assert strokes(BOB, *((one,) for one in results))[1] <= 1
    tasks = [f"t{number}" for number in range(3)]
    offers = (ProposeHandoff(f"acp:{one}", "bob", package(one), id=f"h-{one}") for one in tasks)
    adopted = zip((AdoptTask("acp", one) for one in tasks), offers, strict=True)
    handoffs, asked = strokes(ALICE, *adopted)
    numbers_of_tasks = 2 * len(tasks)
    assert asked == 2 + numbers_of_tasks, "which ids those get is found out one by one"
    hashes = [state(lab, id).package_hash for id in handoffs]
    accepted = (AcceptHandoff(*one, passed=CHECKS) for one in zip(handoffs, hashes, strict=True))
    assert strokes(BOB, *((one,) for one in accepted))[1] == 1
    lab.batch(*(lab.request(BOB, ActivateHandoff(id)) for id in handoffs))
    assert strokes(BOB, *((CompleteHandoff(id),) for id in handoffs))[1] == 1


@proves("STORE-CACHE")
def test_a_failed_batch_forgets_everything(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    lab.store.faults = [StoreUnavailable("full")]
    with pytest.raises(StoreUnavailable):
        lab.ask(HUMAN, NoteTask("T", "never written"))
    reads(lab)
    lab.do(HUMAN, NoteTask("T", "written"))
    assert "task:T" in reads(lab)
    assert lab.task("T").notes == 1


@proves("STORE-CACHE")
def test_when_somebody_else_has_written_everything_is_read_again(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(HUMAN, NoteTask("T", "x"))
    other = Lab(lab.store)
    other.do(BOB, ClaimTask("T", "bob"))
    lab.store.is_fresh = False
    assert lab.code(ALICE, ClaimTask("T", "alice")) == "already_claimed"
    lab.store.is_fresh = True
    assert lab.task("T").assignee == "bob"


@proves("STORE-CACHE")
def test_what_does_not_exist_is_not_taken_for_known_when_somebody_else_made_it(lab: Lab) -> None:
    assert lab.code(HUMAN, NoteTask("T", "x")) == "task_not_found"
    Lab(lab.store).do(HUMAN, CreateTask("t", "T"))
    lab.store.is_fresh = False
    assert lab.code(HUMAN, NoteTask("T", "x")) == ""
    assert lab.code(HUMAN, CreateTask("t", "T")) == "already_exists"


@proves("STORE-CACHE")
def test_the_cache_has_a_bound_and_the_newest_stay(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_CACHED", 20)
    for number in range(100):
        lab.do(HUMAN, CreateTask("t", f"T{number}"))
    reads(lab)
    for number in range(95, 100):
        lab.do(HUMAN, NoteTask(f"T{number}", "x"))
    assert reads(lab) == []
    lab.do(HUMAN, NoteTask("T0", "x"))
    assert "task:T0" in reads(lab)
    assert all(lab.task(f"T{number}").notes == 1 for number in range(95, 100))


@proves("STORE-REFOLD")
def test_a_row_of_an_old_fold_is_folded_anew_when_it_is_needed(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    known, number = lab.task("T"), lab.store.tables.numbers["task:T"]
    row = lab.store.tables.rows[number]
    lab.store.tables.rows[number] = replace(row, fold=FOLD - 1, state=b"as older rules had it")
    assert lab.task("T") == known, "readers fold it too"
    fresh = Lab(lab.store)
    assert yes(fresh.ask(ALICE, NoteTask("T", "x"))).receipts[0].attempt == 1
    written = lab.store.tables.rows[number]
    assert written.fold == FOLD
    assert lab.task("T") == replace(known, notes=1)


@proves("STORE-CACHE")
def test_links_and_names_are_found_that_no_request_names_outright(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("a", "A", aliases=("bead:a",)))
    lab.do(HUMAN, CreateTask("b", "B", ready=True, blocked_by=("A",)))
    fresh = Lab(lab.store)
    fresh.do(HUMAN, MoveTask("bead:a", "cancelled"))
    assert fresh.code(ALICE, ClaimTask("", "alice")) == ""
    fresh = Lab(lab.store)
    assert fresh.code(HUMAN, LinkTask("a", "blocked-by", "B")) == "link_cycle"
