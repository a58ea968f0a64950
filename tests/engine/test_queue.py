"""The ready queue as batches see it: order, whose turn, never twice, and as if nothing undone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    CreateTask,
    LinkTask,
    MoveTask,
    NoteTask,
    ReleaseTask,
    ReportOutcome,
)
from dragoman.core.deadlines import Backoff
from dragoman.core.events import Priority
from dragoman.engine.request import Request
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, code
from tests.requirements import proves

PRIORITIES: tuple[Priority, ...] = ("critical", "high", "normal", "low")
REFUSED = MoveTask("no-such-task", "ready")


def ready(name: str, **fields: Any) -> CreateTask:
    """A new task that is ready."""
    return CreateTask(name, name, ready=True, **fields)


def take(lab: Lab, actor: Actor = ALICE) -> Request:
    """A request for the next task."""
    return lab.request(actor, ClaimTask("", actor.name))


def taken(answer: Any) -> str:
    """The task that was claimed, or the code of the refusal."""
    return code(answer) or answer.receipts[-1].task


def drain(lab: Lab, actor: Actor = ALICE) -> list[str]:
    """Claim until nothing is ready."""
    names: list[str] = []
    while (name := taken(lab.ask(actor, ClaimTask("", actor.name)))) != "nothing_ready":
        names.append(name)
    return names


@proves("TASK-PRIORITY")
def test_the_highest_priority_comes_first_and_the_oldest_among_equals(lab: Lab) -> None:
    for number, priority in enumerate(("low", "normal", "critical", "normal", "high", "critical")):
        assert priority in PRIORITIES
        lab.do(HUMAN, ready(f"{priority}-{number}", priority=priority))
        lab.clock.advance(1)
    assert drain(lab) == ["critical-2", "critical-5", "high-4", "normal-1", "normal-3", "low-0"]


@proves("TASK-PRIORITY")
def test_tasks_of_one_millisecond_come_in_the_order_of_their_birth(lab: Lab) -> None:
    lab.batch(*(lab.request(HUMAN, ready(name)) for name in "CAB"))
    assert drain(lab) == ["C", "A", "B"]


@proves("TASK-READY")
def test_an_agents_own_queue_and_everyones_are_one_to_it(lab: Lab) -> None:
    lab.do(HUMAN, ready("for-bob", assignee="bob"))
    lab.clock.advance(1)
    lab.do(HUMAN, ready("for-all"))
    lab.clock.advance(1)
    lab.do(HUMAN, ready("urgent-for-bob", assignee="bob", priority="high"))
    assert drain(lab, ALICE) == ["for-all"]
    assert drain(lab, BOB) == ["urgent-for-bob", "for-bob"]


@proves("TASK-READY", "STORE-CLAIM-RACE")
def test_claims_of_one_batch_never_get_the_same_task(lab: Lab) -> None:
    for number in range(150):
        lab.do(HUMAN, ready(f"T{number:03}"))
    answers = lab.batch(*(take(lab, ALICE if n % 2 else BOB) for n in range(160)))
    names = [taken(answer) for answer in answers]
    assert names[:150] == [f"T{number:03}" for number in range(150)], "more than two pages"
    assert set(names[150:]) == {"nothing_ready"}


@proves("TASK-READY", "CORE-ALL-OR-NONE")
def test_a_batch_sees_what_it_has_made_ready_itself(lab: Lab) -> None:
    lab.do(HUMAN, ready("old"))
    lab.do(HUMAN, CreateTask("back", "backlog"))
    lab.clock.advance(1)
    answers = lab.batch(
        lab.request(HUMAN, ready("urgent", priority="critical")),
        take(lab),
        lab.request(HUMAN, MoveTask("backlog", "ready")),
        take(lab),
        take(lab),
        lab.request(ALICE, ReleaseTask("urgent")),
        take(lab),
        take(lab),
    )
    names = [taken(answer) for n, answer in enumerate(answers) if n not in (0, 2, 5)]
    assert names == ["urgent", "old", "backlog", "urgent", "nothing_ready"]


@proves("TASK-READY")
def test_a_batch_passes_over_what_it_has_taken_out_itself(lab: Lab) -> None:
    for name in ("blocked", "linked", "claimed", "cancelled", "free"):
        lab.do(HUMAN, ready(name))
    lab.do(HUMAN, CreateTask("open", "open"))
    answers = lab.batch(
        lab.request(HUMAN, MoveTask("blocked", "blocked")),
        lab.request(HUMAN, LinkTask("linked", "blocked-by", "open")),
        lab.request(BOB, ClaimTask("claimed", "bob")),
        lab.request(HUMAN, MoveTask("cancelled", "cancelled")),
        lab.request(HUMAN, NoteTask("free", "still ready")),
        take(lab),
        take(lab),
    )
    assert [taken(answer) for answer in answers[-2:]] == ["free", "nothing_ready"]


@proves("TASK-READY", "TASK-UNBLOCK")
def test_a_batch_sees_what_an_end_has_released(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("first", "first"))
    lab.do(HUMAN, ready("second", blocked_by=("first",)))
    answers = lab.batch(take(lab), lab.request(HUMAN, MoveTask("first", "cancelled")), take(lab))
    assert [taken(answers[0]), taken(answers[2])] == ["nothing_ready", "second"]


@proves("TASK-READY", "CORE-ALL-OR-NONE")
@pytest.mark.parametrize(
    "undone",
    [
        (ClaimTask("", "alice"),),
        (ClaimTask("", "alice"), ClaimTask("", "alice")),
        (ClaimTask("A", "alice"), ReleaseTask("A")),
        (MoveTask("A", "blocked"), MoveTask("B", "cancelled")),
        (ready("C", priority="critical"), ClaimTask("C", "alice")),
        (ready("C", priority="critical"), ClaimTask("", "alice")),
        (LinkTask("A", "blocked-by", "B"),),
        (NoteTask("A", "x"),),
    ],
    ids=range(8),
)
@pytest.mark.parametrize("asked_before", [True, False])
def test_what_is_undone_was_never_taken(
    lab: Lab, undone: tuple[AnyCommand, ...], asked_before: bool
) -> None:
    for name in "ABZ":
        lab.do(HUMAN, ready(name))
        lab.clock.advance(1)
    lab.do(HUMAN, MoveTask("Z", "backlog"), MoveTask("Z", "ready"))
    before = [lab.request(BOB, ClaimTask("", "bob"), REFUSED)] if asked_before else []
    agent = Actor("agent", "alice")
    taking = [take(lab) for _ in range(4)]
    answers = lab.batch(*before, lab.request(agent, *undone, REFUSED), *taking)
    assert [taken(answer) for answer in answers[-4:]] == ["A", "B", "Z", "nothing_ready"]


@proves("RETRY-BACKOFF", "TASK-READY")
def test_a_resting_task_joins_the_queue_when_it_is_due(lab: Lab) -> None:
    lab.do(HUMAN, ready("tired"))
    lab.clock.advance(1)
    lab.do(HUMAN, ready("fresh"))
    lab.do(ALICE, ClaimTask("tired", "alice"))
    failed = ReportOutcome("tired", "failed", apply=True, backoff=Backoff(5_000, 60_000))
    answers = lab.batch(lab.request(ALICE, failed), take(lab), take(lab))
    assert [taken(answer) for answer in answers[1:]] == ["fresh", "nothing_ready"]
    lab.clock.advance(4_999)
    assert taken(lab.ask(ALICE, ClaimTask("", "alice"))) == "nothing_ready"
    lab.clock.advance(1)
    assert taken(lab.ask(ALICE, ClaimTask("", "alice"))) == "tired", "asking promotes it"


@proves("RETRY-BACKOFF", "TASK-READY")
def test_many_due_tasks_are_promoted_a_hundred_at_a_time(lab: Lab) -> None:
    names = [f"T{number:03}" for number in range(120)]
    for name in names:
        lab.do(HUMAN, ready(name))
        lab.do(ALICE, ClaimTask(name, "alice"), ReportOutcome(name, "failed", apply=True))
    lab.clock.advance(1_000)
    assert drain(lab) == names


@proves("TASK-READY")
def test_a_key_on_a_ready_task_does_not_take_it_out_of_the_queue(lab: Lab) -> None:
    """The answer is kept under the first command's target, which may not change at all."""
    lab.do(HUMAN, ready("A"), CreateTask("b", "B"))
    answers = lab.batch(
        lab.request(HUMAN, MoveTask("A", "ready"), NoteTask("B", "x"), key="k"), take(lab)
    )
    assert taken(answers[1]) == "A"


@proves("TASK-PRIORITY", "TASK-READY", "CORE-ALL-OR-NONE")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["create", "claim", "release", "refused", "move"]),
            st.integers(0, 5),
            st.sampled_from(PRIORITIES),
            st.booleans(),
        ),
        max_size=25,
    ),
    st.integers(1, 8),
)
def test_batches_of_any_size_come_to_the_same_as_one_by_one(
    steps: list[tuple[str, int, Priority, bool]], size: int
) -> None:
    def commands(step: tuple[str, int, Priority, bool]) -> tuple[AnyCommand, ...]:
        verb, number, priority, bobs = step
        name = f"T{number}"
        assignee = "bob" if bobs else ""
        made: dict[str, tuple[AnyCommand, ...]] = {
            "create": (ready(name, priority=priority, assignee=assignee),),
            "claim": (ClaimTask("", "alice"),),
            "release": (ReleaseTask(name),),
            "refused": (ready(name, priority=priority), ClaimTask("", "alice"), REFUSED),
            "move": (MoveTask(name, "blocked"), MoveTask(name, "ready")),
        }
        return made[verb]

    single, batched = Lab(), Lab()
    alone = [single.ask(ALICE, *commands(step)) for step in steps]
    together: list[Any] = []
    for start in range(0, len(steps), size):
        chosen = steps[start : start + size]
        together += batched.batch(*(batched.request(ALICE, *commands(step)) for step in chosen))
    batched.engine.close()
    assert together == alone
    assert single.lines() == batched.lines()
    assert [entry.hash for entry in single.store.entries(0, 1_000)] == [
        entry.hash for entry in batched.store.entries(0, 1_000)
    ]


@proves("CLAIM-QUEUES", "TASK-PRIORITY")
def test_chosen_queues_are_one_queue_and_others_are_passed_over(lab: Lab) -> None:
    lab.do(HUMAN, ready("anyone"))
    lab.do(HUMAN, ready("slow", assignee="backend", priority="low"))
    lab.do(HUMAN, ready("fast", assignee="frontend", priority="high"))
    hub = Actor("system", "hub")
    chosen = ClaimTask("", "alice", queues=("backend", "frontend"))
    answers = [lab.ask(hub, chosen) for _ in range(3)]
    assert [taken(answer) for answer in answers] == ["fast", "slow", "nothing_ready"]
    assert taken(lab.ask(hub, ClaimTask("", "alice"))) == "anyone"
