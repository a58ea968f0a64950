"""Links between tasks: blockers, parents, sources; cycles, and dependents that are unblocked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core import task as links
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import LinkKind, Status
from dragoman.core.task_state import (
    CreateTask,
    LinkTask,
    MoveTask,
    TaskBacklinked,
    TaskLinked,
    TaskUnbacklinked,
    TaskUnblocked,
    TaskUnlinked,
    UnlinkTask,
)
from tests.core.world import (
    ALICE,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    claim,
    task,
    with_fields,
)
from tests.requirements import proves

KINDS: tuple[LinkKind, ...] = ("blocked-by", "parent", "discovered-from")


def link_ends(world: World, name: str, kind: LinkKind) -> tuple[object, object]:
    """Both ends of a link: the target of the task, and the tasks that link to it."""
    found = world.tasks[name]
    return {
        "blocked-by": (found.blocked_by, found.blocks),
        "parent": (found.parent, found.children),
        "discovered-from": (found.discovered_from, found.discovered),
    }[kind]


@proves("TASK-UNLINK")
def test_removed_dependency_is_recorded_at_both_ends() -> None:
    world = World(task("A"), task("B"), task("C"))
    world.do(HUMAN, LinkTask("A", "blocked-by", "B"))
    world.do(HUMAN, LinkTask("A", "blocked-by", "C"))
    removed = world.do(HUMAN, UnlinkTask("A", "B"), NOW + 1)
    assert removed.events == (
        ("task:A", TaskUnlinked("B")),
        ("task:B", TaskUnbacklinked("A")),
    )
    assert (world.tasks["A"].blocked_by, world.tasks["A"].open_blockers) == (("C",), ("C",))
    assert (world.tasks["B"].blocks, world.tasks["C"].blocks) == ((), ("A",))
    assert world.do(HUMAN, UnlinkTask("A", "B")).events == ()
    world.do(HUMAN, UnlinkTask("A", "C"))
    assert world.code(ALICE, ClaimTask("A", "alice")) == ""


@proves("TASK-UNLINK")
def test_stranger_removes_no_dependency() -> None:
    world = World(task("A"), task("B"))
    world.do(HUMAN, LinkTask("A", "blocked-by", "B"))
    assert world.code(ALICE, UnlinkTask("A", "B")) == "unassigned_task"
    assert world.code(OBSERVER, UnlinkTask("A", "B")) == "not_authorized"
    assert world.code(HUMAN, UnlinkTask("A", "X")) == "task_not_found"
    assert world.code(HUMAN, UnlinkTask("X", "A")) == "task_not_found"


@proves("TASK-LINKS")
@pytest.mark.parametrize("kind", KINDS)
def test_link_is_recorded_at_both_ends(kind: LinkKind) -> None:
    world = World(task("A"), task("B"))
    decision = world.do(HUMAN, LinkTask("A", kind, "B"), NOW + 1)
    assert decision.events == (
        ("task:A", TaskLinked(kind, "B", kind == "blocked-by")),
        ("task:B", TaskBacklinked(kind, "A")),
    )
    points_at, _ = link_ends(world, "A", kind)
    _, pointed_at = link_ends(world, "B", kind)
    assert points_at == (("B",) if kind == "blocked-by" else "B")
    assert pointed_at == ("A",)
    assert world.tasks["A"].updated_at == world.tasks["B"].updated_at == NOW + 1
    assert world.do(HUMAN, LinkTask("A", kind, "B")).events == (), "the same link is a no-op"


@proves("TASK-LINKS")
@pytest.mark.parametrize("kind", KINDS)
def test_link_cycle_of_any_length_is_refused(kind: LinkKind) -> None:
    world = World(task("A"), task("B"), task("C"), task("D"))
    assert world.code(HUMAN, LinkTask("A", kind, "A")) == "link_cycle"
    world.do(HUMAN, LinkTask("A", kind, "B"))
    assert world.code(HUMAN, LinkTask("B", kind, "A")) == "link_cycle"
    world.do(HUMAN, LinkTask("B", kind, "C"))
    assert world.code(HUMAN, LinkTask("C", kind, "A")) == "link_cycle"
    assert world.code(HUMAN, LinkTask("C", kind, "D")) == ""
    other: LinkKind = "parent" if kind == "blocked-by" else "blocked-by"
    assert world.code(HUMAN, LinkTask("C", other, "A")) == "", "only links of one kind make one"


@proves("TASK-LINKS")
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_random_links_never_form_a_cycle(
    pairs: list[tuple[int, int]],
) -> None:
    world = World(*(task(f"T{n}") for n in range(7)))
    edges: dict[int, set[int]] = {n: set() for n in range(7)}

    def reaches(start: int, goal: int) -> bool:
        return start == goal or any(reaches(after, goal) for after in edges[start])

    for a, b in pairs:
        code = world.code(HUMAN, LinkTask(f"T{a}", "blocked-by", f"T{b}"))
        if reaches(b, a):
            assert code == "link_cycle"
        else:
            assert code == ""
            world.do(HUMAN, LinkTask(f"T{a}", "blocked-by", f"T{b}"))
            edges[a].add(b)


@proves("TASK-LINKS")
@pytest.mark.parametrize("kind", ["parent", "discovered-from"])
def test_task_has_one_parent_and_one_source(kind: LinkKind) -> None:
    world = World(task("A"), task("B"), task("C"))
    world.do(HUMAN, LinkTask("A", kind, "B"))
    assert world.code(HUMAN, LinkTask("A", kind, "C")) == "already_linked"


@proves("TASK-LINKS")
def test_link_to_unknown_task_is_refused() -> None:
    world = World(task("A"))
    assert world.code(HUMAN, LinkTask("nowhere", "parent", "A")) == "task_not_found"
    assert world.code(HUMAN, LinkTask("A", "parent", "nowhere")) == "parent_not_found"
    assert world.code(HUMAN, LinkTask("A", "parent", "")) == "invalid_id"


@proves("TASK-LINKS", "LIMIT-TEXT")
@pytest.mark.parametrize(("has", "code"), [(998, ""), (999, ""), (1_000, "invalid_field")])
def test_task_has_at_most_one_thousand_blockers(has: int, code: str) -> None:
    blockers = tuple(f"B{n}" for n in range(has))
    world = World(replace(task("A"), blocked_by=blockers), task("B"))
    assert world.code(HUMAN, LinkTask("A", "blocked-by", "B")) == code


@proves("TASK-LINKS")
def test_cycle_search_beyond_its_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "_MAX_CYCLE_SEARCH", 10)
    chain = [replace(task(f"T{n}"), blocked_by=(f"T{n + 1}",)) for n in range(12)]
    world = World(task("A"), *chain, task("T12"))
    assert world.code(HUMAN, LinkTask("A", "blocked-by", "T0")) == "link_cycle"
    assert world.code(HUMAN, LinkTask("A", "blocked-by", "T3")) == ""


@proves("TASK-LINKS")
def test_diamond_is_no_cycle() -> None:
    world = World(task("A"), task("B"), task("C"), task("D"), task("E"))
    for a, b in (("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")):
        world.do(HUMAN, LinkTask(a, "blocked-by", b))
    assert world.code(HUMAN, LinkTask("E", "blocked-by", "A")) == ""


@proves("ROLE-TABLE")
@pytest.mark.parametrize(
    ("actor", "code"),
    [
        (HUMAN, ""),
        (ORCHESTRATOR, ""),
        (COORDINATOR, ""),
        (HUB, ""),
        (ALICE, ""),
        (OBSERVER, "not_authorized"),
        (FILE, "not_authorized"),
    ],
)
def test_link_permission_depends_on_role(actor: Actor, code: str) -> None:
    assert World(task("A"), task("B")).code(actor, LinkTask("A", "parent", "B")) == code


@proves("TASK-UNBLOCK")
@pytest.mark.parametrize("ending", ["done", "cancelled"])
def test_blocked_task_is_claimable_after_end_of_last_blocker(ending: Status) -> None:
    world = World(task("A"), task("B", "review"), task("C", "review"))
    world.do(HUMAN, LinkTask("A", "blocked-by", "B"))
    world.do(HUMAN, LinkTask("A", "blocked-by", "C"))
    assert world.code(ALICE, ClaimTask("A", "alice")) == "blocked_by_dependency"
    assert world.code(ALICE, ClaimTask("", "alice")) == "nothing_ready"
    first = world.do(HUMAN, MoveTask("B", ending))
    assert first.events[1:] == (("task:A", TaskUnblocked("B", ending)),)
    assert world.tasks["A"].open_blockers == ("C",)
    assert world.code(ALICE, ClaimTask("A", "alice")) == "blocked_by_dependency"
    world.do(HUMAN, MoveTask("C", ending))
    assert world.tasks["A"].blocked_by == ("B", "C"), "the links are kept as history"
    assert claim(world, name="A").receipt.attempt == 1


@proves("TASK-UNBLOCK")
@pytest.mark.parametrize("to", ["ready", "blocked", "in-progress", "deadletter"])
def test_only_final_status_of_blocker_unblocks(to: Status) -> None:
    world = World(task("A"), task("B", "review", "alice"))
    world.do(HUMAN, LinkTask("A", "blocked-by", "B"))
    if to == "in-progress":
        claim(world, name="B")
    else:
        world.do(HUMAN, MoveTask("B", "ready"))
        world.do(HUMAN, MoveTask("B", to))
    assert world.tasks["A"].open_blockers == ("B",)
    assert world.code(ALICE, ClaimTask("A", "alice")) == "blocked_by_dependency"


@proves("TASK-UNBLOCK")
@pytest.mark.parametrize("ended", ["done", "cancelled"])
def test_ended_blocker_does_not_block(ended: Status) -> None:
    world = World(task("A"), task("B", ended))
    decision = world.do(HUMAN, LinkTask("A", "blocked-by", "B"))
    assert decision.events[0] == ("task:A", TaskLinked("blocked-by", "B", open=False))
    world.do(HUMAN, CreateTask("new", "N", ready=True, blocked_by=("B",)))
    for name in ("A", "N"):
        assert world.tasks[name].blocked_by == ("B",)
        assert world.tasks[name].open_blockers == ()
        assert world.code(ALICE, ClaimTask(name, "alice")) == ""


@proves("TASK-UNBLOCK")
def test_end_of_blocker_skips_unblocked_and_missing_tasks() -> None:
    world = World(task("A", "review"), task("B"))
    with_fields(world, "A", blocks=("B", "gone"))
    assert len(world.do(HUMAN, MoveTask("A", "done")).events) == 1


@proves("TASK-UNBLOCK")
def test_blocker_added_during_attempt_applies_after_release() -> None:
    world = World(task("A"), task("B"))
    claim(world, name="A")
    world.do(ALICE, LinkTask("A", "blocked-by", "B"))
    world.do(ALICE, MoveTask("A", "ready"))
    assert world.code(ALICE, ClaimTask("A", "alice")) == "blocked_by_dependency"
