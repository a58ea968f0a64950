"""Which bead of a wave goes next: tables of tasks, limits and files."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.events import Status, WaveBead
from dragoman.core.limits import RESERVED
from dragoman.core.states.reservations import FindTask, Reservation
from dragoman.core.states.task import Task
from dragoman.core.states.wave import ENDED, Plan, Wave, closing_report, plan
from dragoman.text.globs import overlap
from tests.core.world import NOW, task
from tests.requirements import proves


def wave(*beads: WaveBead, parallel: int = 2) -> Wave:
    """A wave of these beads."""
    return Wave("W", beads, parallel, "olga", NOW)


def finder(*tasks: Task) -> FindTask:
    """Finds these tasks only."""
    known = {one.id: one for one in tasks}
    return lambda name: known.get(name) or Refusal("task_not_found", name)


def planned(
    of: Wave, *tasks: Task, reservations: tuple[Reservation, ...] = (), now: int = NOW
) -> Plan:
    """The plan with these tasks and living reservations."""
    return plan(of, reservations, finder(*tasks), now)


def released(of: Plan) -> list[str]:
    """The ids of the tasks that are let go."""
    return [one.id for one in of.released]


def waits(of: Plan) -> dict[str, str]:
    """What each bead waits for."""
    return {name: waiting.what for name, waiting in of.waits.items()}


A, B, C = (WaveBead(name) for name in "ABC")


@proves("WAVE-PARALLEL")
@pytest.mark.parametrize(
    ("statuses", "goes"),
    [
        (("backlog", "backlog", "backlog"), ["A", "B"]),
        (("ready", "backlog", "backlog"), ["B"]),
        (("in-progress", "ready", "backlog"), []),
        (("review", "in-progress", "backlog"), ["C"]),
        (("done", "cancelled", "backlog"), ["C"]),
        (("blocked", "deadletter", "backlog"), ["C"]),
        (("in-progress", "in-progress", "in-progress"), []),
    ],
)
def test_as_many_go_as_there_are_places_and_in_order(
    statuses: tuple[Status, Status, Status], goes: list[str]
) -> None:
    tasks = [task(name, status) for name, status in zip("ABC", statuses, strict=True)]
    assert released(planned(wave(A, B, C), *tasks)) == goes


@proves("WAVE-COMPLETE")
@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_wave_is_complete_when_every_bead_has_ended(status: Status) -> None:
    both = wave(A, B)
    assert planned(both, task("A", status), task("B", "done")).is_complete
    assert not planned(both, task("A", status), task("B", "ready")).is_complete
    assert not planned(both, task("A", status), task("B", "backlog")).is_complete


@proves("WAVE-FILES")
def test_of_two_beads_that_want_one_file_the_first_goes_and_the_second_waits_for_it() -> None:
    first, second = WaveBead("A", ("src/**",)), WaveBead("B", ("src/a.py", "docs/x.md"))
    found = planned(wave(first, second), task("A", "backlog"), task("B", "backlog"))
    assert released(found) == ["A"]
    assert found.reserved == (first,)
    conflict = found.waits["B"].conflict
    assert conflict is not None
    assert (conflict.wanted, conflict.reserved, conflict.by.task) == ("src/a.py", "src/**", "A")


@proves("WAVE-FILES")
def test_a_later_bead_does_not_take_what_an_earlier_one_waits_for() -> None:
    beads = (WaveBead("A", ("x", "y")), WaveBead("B", ("y",)), WaveBead("C", ("z",)))
    taken = Reservation("r", ("x",), "eve", NOW + 1)
    tasks = [task(name, "backlog") for name in "ABC"]
    found = planned(wave(*beads), *tasks, reservations=(taken,))
    assert released(found) == ["C"]
    assert waits(found) == {"A": "file", "B": "file"}


@proves("WAVE-FILES")
def test_an_exclusive_reservation_of_another_holds_a_bead_back_and_its_own_does_not() -> None:
    bead = WaveBead("A", ("src/a.py",))
    others = Reservation("r", ("src/*.py",), "eve", NOW + 1)
    shared = replace(others, exclusive=False)
    own = replace(others, task="A")
    backlog = task("A", "backlog")
    assert released(planned(wave(bead), backlog, reservations=(others,))) == []
    assert released(planned(wave(bead), backlog, reservations=(shared,))) == []
    assert released(planned(wave(bead), backlog, reservations=(own,))) == ["A"]


@proves("WAVE-FILES")
def test_what_runs_already_keeps_its_files_as_soon_as_they_are_free() -> None:
    bead = WaveBead("A", ("src/a.py",))
    at_work = task("A", "in-progress", "ada")
    others = Reservation("r", ("src/**",), "eve", NOW + 1)
    assert planned(wave(bead), at_work).reserved == (bead,)
    assert planned(wave(bead), at_work, reservations=(others,)).reserved == ()
    by_its_worker = replace(others, holder="ada")
    assert planned(wave(bead), at_work, reservations=(by_its_worker,)).reserved == (bead,)
    kept = Reservation("W:A", bead.files, task="A", wave="W")
    assert planned(wave(bead), at_work, reservations=(kept,)).is_idle


@proves("WAVE-FILES")
def test_what_runs_already_has_its_files_before_an_earlier_bead_is_let_go() -> None:
    first, second = WaveBead("A", ("src/a.py",)), WaveBead("B", ("src",))
    found = planned(wave(first, second), task("A", "backlog"), task("B", "in-progress", "ada"))
    assert (released(found), found.reserved) == ([], (second,))
    others = Reservation("r", ("src/b.py",), "eve", NOW + 1)
    found = planned(
        wave(first, second),
        task("A", "backlog"),
        task("B", "in-progress", "ada"),
        reservations=(others,),
    )
    assert (released(found), found.reserved) == ([], ())


@proves("WAVE-BOUNDED")
def test_files_are_not_looked_at_where_there_is_no_place() -> None:
    held = Reservation("r", ("x",), "eve", NOW + 1)
    beads = (WaveBead("A"), WaveBead("B", ("x",)))
    tasks = task("A", "backlog"), task("B", "backlog")
    assert waits(planned(wave(*beads), *tasks, reservations=(held,))) == {"B": "file"}
    assert waits(planned(wave(*beads, parallel=1), *tasks, reservations=(held,))) == {"B": "slot"}


def steps(of: Wave, *reservations: Reservation) -> int:
    """How many calls it takes to plan a wave of which nothing has begun."""
    tasks = [task(bead.task, "backlog") for bead in of.beads]
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    # The first time, what is remembered of each pattern is worked out.
    planned(of, *tasks, reservations=reservations)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        planned(of, *tasks, reservations=reservations)
    finally:
        sys.setprofile(before)
    return calls


@proves("WAVE-BOUNDED")
@pytest.mark.parametrize("parallel", [1, 500])
def test_a_wave_of_many_files_is_planned_without_comparing_each_with_each(parallel: int) -> None:
    held = Reservation("r", ("held.py",), "eve", NOW + 1)

    def many(size: int) -> Wave:
        files = [tuple(f"src/{n}/{file}.py" for file in range(3)) for n in range(size)]
        # Every second one waits for what eve has, so that its other files are wanted.
        beads = (
            WaveBead(f"T{n}", (*own, "held.py") if n % 2 else own) for n, own in enumerate(files)
        )
        return wave(*beads, parallel=parallel)

    assert steps(many(200), held) < 5 * steps(many(50), held)


@proves("WAVE-STATUS")
def test_a_bead_that_waits_for_another_task_takes_no_place() -> None:
    waiting = replace(task("A", "ready"), open_blockers=("B",))
    found = planned(wave(A, B, parallel=1), waiting, task("B", "backlog"))
    assert [one.id for one in found.held_back] == ["A"]
    assert released(found) == ["B"]
    assert found.waits["A"].tasks == ("B",)


@proves("WAVE-STATUS")
def test_each_bead_says_what_it_waits_for() -> None:
    resting = replace(task("B", "ready"), not_before=NOW + 5)
    found = planned(wave(A, B, C), task("A", "ready"), resting, task("C", "backlog"))
    assert waits(found) == {"A": "claim", "B": "rest", "C": "slot"}
    assert found.waits["B"].until == NOW + 5


@proves("WAVE-FILES")
def test_a_bead_waits_where_there_is_no_room_for_more_reservations() -> None:
    full = Reservation("r", tuple(f"f{number}" for number in range(RESERVED)), "eve", NOW + 1)
    found = planned(
        wave(WaveBead("A", ("x",)), B),
        task("A", "backlog"),
        task("B", "backlog"),
        reservations=(full,),
    )
    assert waits(found) == {"A": "room"}
    assert released(found) == ["B"]


@proves("WAVE-COMPLETE")
def test_the_closing_report_names_every_bead_or_says_how_many_more_there_are() -> None:
    many = [task(f"T{number}", "done", "ada", attempts=2) for number in range(201)]
    of = wave(*(WaveBead(one.id) for one in many))
    subject, body = closing_report(of, many, NOW + 65_000, {})
    assert subject == "Wave W is complete: 201 done"
    assert "- T199: done by ada, attempts: 2\n- and 1 more: " in body
    assert "after 65s" in body


@proves("WAVE-COMPLETE")
def test_the_closing_report_says_on_one_line_why_a_bead_is_stuck() -> None:
    tasks = [task("A", "blocked", "ada"), task("B", "deadletter"), task("C", "done")]
    of = wave(*(WaveBead(one.id) for one in tasks))
    why = {"A": "no key\n## Beads\n- C: failed", "B": "x" * 400, "C": "it was blocked before"}
    _, body = closing_report(of, tasks, NOW, why)
    assert body.splitlines()[-3:] == [
        "- A: blocked by ada, attempts: 0: no key⏎## Beads⏎- C: failed",
        f"- B: deadletter, attempts: 0: {'x' * 300}…",
        "- C: done, attempts: 0",
    ]
    _, body = closing_report(of, tasks, NOW, {})
    assert body.splitlines()[-3] == "- A: blocked by ada, attempts: 0"


STATUSES = ["backlog", "ready", "in-progress", "review", "done", "blocked", "cancelled"]
files = st.lists(
    st.sampled_from(["a", "b", "c", "c/*", "c/d", "**/d", "*/d", "a.py"]), max_size=2, unique=True
)


@proves("WAVE-PARALLEL", "WAVE-FILES")
@given(
    st.lists(st.tuples(st.sampled_from(STATUSES), files.map(tuple)), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_no_plan_lets_too_many_go_or_two_that_want_one_file(
    beads: list[tuple[Status, tuple[str, ...]]], parallel: int
) -> None:
    tasks = [task(f"T{number}", status) for number, (status, _) in enumerate(beads)]
    of = wave(
        *(WaveBead(f"T{n}", wanted) for n, (_, wanted) in enumerate(beads)), parallel=parallel
    )
    found = planned(of, *tasks)
    running = sum(one.status in ("ready", "in-progress") for one in tasks)
    assert len(found.released) <= max(parallel - running, 0)
    goes = released(found)
    wanted = {bead.task: bead.files for bead in of.beads}
    assert all(not one.files or one in found.reserved for one in of.beads if one.task in goes)
    for one in found.released:
        for other in found.reserved:
            if one.id != other.task:
                assert not any(overlap(a, b) for a in wanted[one.id] for b in other.files)
    waiting = [one for one in tasks if one.status == "backlog" and one not in found.released]
    assert all(one.id in found.waits for one in waiting)
