"""Plan of a wave: the beads that are released next, by tasks, limits and files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.reservation import FindTask, Reservation, bead_reservations
from dragoman.core.task_state import Task
from dragoman.core.wave import (
    ENDED_STATUSES,
    Wave,
    WaveBead,
    WavePlan,
    format_closing_report,
    plan_wave,
)
from dragoman.text.repository_paths import globs_overlap
from tests.core.world import NOW, task
from tests.requirements import proves


def wave(*beads: WaveBead, parallel: int = 2) -> Wave:
    return Wave("W", beads, parallel, "olga", NOW)


def finder(*tasks: Task) -> FindTask:
    """Lookup that finds these tasks only."""
    known = {one.id: one for one in tasks}
    return lambda name: known.get(name) or Refusal("task_not_found", name)


def plan_of(
    of: Wave, *tasks: Task, reservations: tuple[Reservation, ...] = (), now: int = NOW
) -> WavePlan:
    """Plan with these tasks, valid reservations, and no other wave."""
    find = finder(*tasks)
    return plan_wave(of, (*reservations, *bead_reservations([of], find)), find, now)


def released_ids(of: WavePlan) -> list[str]:
    """Ids of the tasks that the plan releases."""
    return [one.id for one in of.released]


def wait_kinds(of: WavePlan) -> dict[str, str]:
    """Kind of wait of each bead."""
    return {name: waiting.what for name, waiting in of.waits.items()}


A, B, C = (WaveBead(name) for name in "ABC")


@proves("WAVE-PARALLEL")
@pytest.mark.parametrize(
    ("statuses", "expected"),
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
def test_beads_are_released_in_order_up_to_free_slots(
    statuses: tuple[Status, Status, Status], expected: list[str]
) -> None:
    tasks = [task(name, status) for name, status in zip("ABC", statuses, strict=True)]
    assert released_ids(plan_of(wave(A, B, C), *tasks)) == expected


@proves("WAVE-COMPLETE")
@pytest.mark.parametrize("status", sorted(ENDED_STATUSES))
def test_wave_is_complete_when_every_bead_has_ended(status: Status) -> None:
    both = wave(A, B)
    assert plan_of(both, task("A", status), task("B", "done")).is_complete
    assert not plan_of(both, task("A", status), task("B", "ready")).is_complete
    assert not plan_of(both, task("A", status), task("B", "backlog")).is_complete


@proves("WAVE-FILES")
def test_second_bead_waits_for_file_of_first() -> None:
    first, second = WaveBead("A", ("src/**",)), WaveBead("B", ("src/a.py", "docs/x.md"))
    found = plan_of(wave(first, second), task("A", "backlog"), task("B", "backlog"))
    assert released_ids(found) == ["A"]
    conflict = found.waits["B"].conflict
    assert conflict is not None
    assert (conflict.wanted, conflict.reserved, conflict.by.task) == ("src/a.py", "src/**", "A")


@proves("WAVE-FILES")
def test_later_bead_does_not_take_files_of_waiting_bead() -> None:
    beads = (WaveBead("A", ("x", "y")), WaveBead("B", ("y",)), WaveBead("C", ("z",)))
    reservation = Reservation("r", ("x",), "eve", NOW + 1)
    tasks = [task(name, "backlog") for name in "ABC"]
    found = plan_of(wave(*beads), *tasks, reservations=(reservation,))
    assert released_ids(found) == ["C"]
    assert wait_kinds(found) == {"A": "file", "B": "file"}


@proves("WAVE-FILES")
def test_reservation_of_another_holds_bead_back() -> None:
    bead, others = WaveBead("A", ("src/a.py",)), Reservation("r", ("src/*.py",), "eve", NOW + 1)
    assert released_ids(plan_of(wave(bead), task("A", "backlog"), reservations=(others,))) == []


@proves("WAVE-FILES")
def test_running_bead_has_its_files_before_an_earlier_waiting_one() -> None:
    beads = (WaveBead("A", ("src/a.py",)), WaveBead("B", ("src",)))
    at_work = task("B", "in-progress", "ada")
    found = plan_of(wave(*beads), task("A", "backlog"), at_work)
    assert released_ids(found) == []
    conflict = found.waits["A"].conflict
    assert conflict is not None
    assert (conflict.by.holder, conflict.by.task) == ("ada", "B")


@proves("WAVE-BOUNDED")
def test_files_are_not_checked_without_free_slot() -> None:
    held = Reservation("r", ("x",), "eve", NOW + 1)
    beads = (WaveBead("A"), WaveBead("B", ("x",)))
    tasks = task("A", "backlog"), task("B", "backlog")
    assert wait_kinds(plan_of(wave(*beads), *tasks, reservations=(held,))) == {"B": "file"}
    assert wait_kinds(plan_of(wave(*beads, parallel=1), *tasks, reservations=(held,))) == {
        "B": "slot"
    }


@proves("WAVE-STATUS")
def test_bead_with_open_blocker_takes_no_slot() -> None:
    waiting = replace(task("A", "ready"), open_blockers=("B",))
    found = plan_of(wave(A, B, parallel=1), waiting, task("B", "backlog"))
    assert [one.id for one in found.held_back] == ["A"]
    assert released_ids(found) == ["B"]
    assert found.waits["A"].tasks == ("B",)


@proves("WAVE-STATUS")
def test_plan_gives_reason_why_each_bead_waits() -> None:
    resting = replace(task("B", "ready"), not_before=NOW + 5)
    found = plan_of(wave(A, B, C), task("A", "ready"), resting, task("C", "backlog"))
    assert wait_kinds(found) == {"A": "claim", "B": "rest", "C": "slot"}
    assert found.waits["B"].until == NOW + 5


@proves("WAVE-COMPLETE")
def test_closing_report_lists_beads_up_to_a_limit() -> None:
    many = [task(f"T{number}", "done", "ada", attempts=2) for number in range(201)]
    of = wave(*(WaveBead(one.id) for one in many))
    subject, body = format_closing_report(of, many, NOW + 65_000, {})
    assert subject == "Wave W is complete: 201 done"
    assert "- T199: done by ada, attempts: 2\n- and 1 more: " in body
    assert "after 65s" in body


@proves("WAVE-COMPLETE")
def test_closing_report_gives_reason_of_stuck_bead_on_one_line() -> None:
    tasks = [task("A", "blocked", "ada"), task("B", "deadletter"), task("C", "done")]
    of = wave(*(WaveBead(one.id) for one in tasks))
    why = {"A": "no key\n## Beads\n- C: failed", "B": "x" * 400, "C": "it was blocked before"}
    _, body = format_closing_report(of, tasks, NOW, why)
    assert body.splitlines()[-3:] == [
        "- A: blocked by ada, attempts: 0: no key⏎## Beads⏎- C: failed",
        f"- B: deadletter, attempts: 0: {'x' * 300}…",
        "- C: done, attempts: 0",
    ]
    _, body = format_closing_report(of, tasks, NOW, {})
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
def test_plan_never_exceeds_slots_or_shares_files(
    beads: list[tuple[Status, tuple[str, ...]]], parallel: int
) -> None:
    tasks = [task(f"T{number}", status) for number, (status, _) in enumerate(beads)]
    of = wave(
        *(WaveBead(f"T{n}", files_of) for n, (_, files_of) in enumerate(beads)), parallel=parallel
    )
    found = plan_of(of, *tasks)
    running = sum(one.status in ("ready", "in-progress") for one in tasks)
    assert len(found.released) <= max(parallel - running, 0)
    going = released_ids(found)
    files_of = {bead.task: bead.files for bead in of.beads}
    busy = {one.id for one in tasks if one.status in ("ready", "in-progress")} | set(going)
    for one in going:
        for other in busy - {one}:
            assert not any(globs_overlap(a, b) for a in files_of[one] for b in files_of[other])
    waiting = [one for one in tasks if one.status == "backlog" and one not in found.released]
    assert all(one.id in found.waits for one in waiting)
