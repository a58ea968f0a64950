"""Ready queues as a batch sees them: order, queues of agents, exclusive claims, undo."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command, Priority
from dragoman.core.task_state import CreateTask, LinkTask, MoveTask, NoteTask
from dragoman.engine.request import Request
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, code
from tests.requirements import proves

PRIORITIES: tuple[Priority, ...] = ("critical", "high", "normal", "low")
REFUSED = MoveTask("no-such-task", "ready")


def ready(name: str, **fields: Any) -> CreateTask:
    """Make a command that creates a ready task."""
    return CreateTask(name, name, ready=True, **fields)


def claim_next(lab: Lab, actor: Actor = ALICE) -> Request:
    """Make a request for the next task."""
    return lab.request(actor, ClaimTask("", actor.name))


def claimed_task(answer: Any) -> str:
    """Return the claimed task, or the code of the refusal."""
    return code(answer) or answer.receipts[-1].task


def drain(lab: Lab, actor: Actor = ALICE) -> list[str]:
    """Claim until nothing is ready."""
    names: list[str] = []
    while (name := claimed_task(lab.ask(actor, ClaimTask("", actor.name)))) != "nothing_ready":
        names.append(name)
    return names


@proves("TASK-PRIORITY")
def test_highest_priority_comes_first_then_the_oldest(lab: Lab) -> None:
    for number, priority in enumerate(("low", "normal", "critical", "normal", "high", "critical")):
        assert priority in PRIORITIES
        lab.do(HUMAN, ready(f"{priority}-{number}", priority=priority))
        lab.clock.advance(1)
    assert drain(lab) == ["critical-2", "critical-5", "high-4", "normal-1", "normal-3", "low-0"]


@proves("TASK-PRIORITY")
def test_tasks_of_one_millisecond_come_in_order_of_creation(lab: Lab) -> None:
    lab.batch(*(lab.request(HUMAN, ready(name)) for name in "CAB"))
    assert drain(lab) == ["C", "A", "B"]


@proves("TASK-READY")
def test_agent_takes_from_its_own_and_the_shared_queue(lab: Lab) -> None:
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
    answers = lab.batch(*(claim_next(lab, ALICE if n % 2 else BOB) for n in range(160)))
    names = [claimed_task(answer) for answer in answers]
    assert names[:150] == [f"T{number:03}" for number in range(150)], "more than two pages"
    assert set(names[150:]) == {"nothing_ready"}


@proves("TASK-READY", "CORE-ALL-OR-NONE")
def test_batch_sees_tasks_it_made_ready(lab: Lab) -> None:
    lab.do(HUMAN, ready("old"))
    lab.do(HUMAN, CreateTask("back", "backlog"))
    lab.clock.advance(1)
    answers = lab.batch(
        lab.request(HUMAN, ready("urgent", priority="critical")),
        claim_next(lab),
        lab.request(HUMAN, MoveTask("backlog", "ready")),
        claim_next(lab),
        claim_next(lab),
        lab.request(ALICE, ReleaseTask("urgent")),
        claim_next(lab),
        claim_next(lab),
    )
    names = [claimed_task(answer) for n, answer in enumerate(answers) if n not in (0, 2, 5)]
    assert names == ["urgent", "old", "backlog", "urgent", "nothing_ready"]


@proves("TASK-READY")
def test_batch_skips_tasks_it_took_out_of_the_queue(lab: Lab) -> None:
    for name in ("blocked", "linked", "claimed", "cancelled", "free"):
        lab.do(HUMAN, ready(name))
    lab.do(HUMAN, CreateTask("open", "open"))
    answers = lab.batch(
        lab.request(HUMAN, MoveTask("blocked", "blocked")),
        lab.request(HUMAN, LinkTask("linked", "blocked-by", "open")),
        lab.request(BOB, ClaimTask("claimed", "bob")),
        lab.request(HUMAN, MoveTask("cancelled", "cancelled")),
        lab.request(HUMAN, NoteTask("free", "still ready")),
        claim_next(lab),
        claim_next(lab),
    )
    assert [claimed_task(answer) for answer in answers[-2:]] == ["free", "nothing_ready"]


@proves("TASK-READY", "TASK-UNBLOCK")
def test_batch_sees_tasks_unblocked_by_it(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("first", "first"))
    lab.do(HUMAN, ready("second", blocked_by=("first",)))
    answers = lab.batch(
        claim_next(lab), lab.request(HUMAN, MoveTask("first", "cancelled")), claim_next(lab)
    )
    assert [claimed_task(answers[0]), claimed_task(answers[2])] == ["nothing_ready", "second"]


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
@pytest.mark.parametrize("read_before", [True, False])
def test_undone_claims_leave_the_queue_unchanged(
    lab: Lab, undone: tuple[Command, ...], read_before: bool
) -> None:
    for name in "ABZ":
        lab.do(HUMAN, ready(name))
        lab.clock.advance(1)
    lab.do(HUMAN, MoveTask("Z", "backlog"), MoveTask("Z", "ready"))
    before = [lab.request(BOB, ClaimTask("", "bob"), REFUSED)] if read_before else []
    agent = Actor("agent", "alice")
    claims = [claim_next(lab) for _ in range(4)]
    answers = lab.batch(*before, lab.request(agent, *undone, REFUSED), *claims)
    assert [claimed_task(answer) for answer in answers[-4:]] == ["A", "B", "Z", "nothing_ready"]


@proves("RETRY-BACKOFF", "TASK-READY")
def test_delayed_task_joins_the_queue_when_due(lab: Lab) -> None:
    lab.do(HUMAN, ready("tired"))
    lab.clock.advance(1)
    lab.do(HUMAN, ready("fresh"))
    lab.do(ALICE, ClaimTask("tired", "alice"))
    failed = ReportOutcome("tired", "failed", apply=True, backoff=Backoff(5_000, 60_000))
    answers = lab.batch(lab.request(ALICE, failed), claim_next(lab), claim_next(lab))
    assert [claimed_task(answer) for answer in answers[1:]] == ["fresh", "nothing_ready"]
    lab.clock.advance(4_999)
    assert claimed_task(lab.ask(ALICE, ClaimTask("", "alice"))) == "nothing_ready"
    lab.clock.advance(1)
    assert claimed_task(lab.ask(ALICE, ClaimTask("", "alice"))) == "tired", "asking promotes it"


@proves("RETRY-BACKOFF", "TASK-READY")
def test_due_tasks_are_promoted_a_hundred_at_a_time(lab: Lab) -> None:
    names = [f"T{number:03}" for number in range(120)]
    for name in names:
        lab.do(HUMAN, ready(name))
        lab.do(ALICE, ClaimTask(name, "alice"), ReportOutcome(name, "failed", apply=True))
    lab.clock.advance(1_000)
    assert drain(lab) == names


@proves("TASK-READY")
def test_keyed_request_leaves_a_ready_task_in_the_queue(lab: Lab) -> None:
    """The answer is stored under the first command's target, which may not change at all."""
    lab.do(HUMAN, ready("A"), CreateTask("b", "B"))
    answers = lab.batch(
        lab.request(HUMAN, MoveTask("A", "ready"), NoteTask("B", "x"), key="k"), claim_next(lab)
    )
    assert claimed_task(answers[1]) == "A"


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
def test_batches_of_any_size_equal_single_requests(
    steps: list[tuple[str, int, Priority, bool]], size: int
) -> None:
    def commands(step: tuple[str, int, Priority, bool]) -> tuple[Command, ...]:
        verb, number, priority, for_bob = step
        name = f"T{number}"
        assignee = "bob" if for_bob else ""
        made: dict[str, tuple[Command, ...]] = {
            "create": (ready(name, priority=priority, assignee=assignee),),
            "claim": (ClaimTask("", "alice"),),
            "release": (ReleaseTask(name),),
            "refused": (ready(name, priority=priority), ClaimTask("", "alice"), REFUSED),
            "move": (MoveTask(name, "blocked"), MoveTask(name, "ready")),
        }
        return made[verb]

    single, batched = Lab(), Lab()
    one_by_one = [single.ask(ALICE, *commands(step)) for step in steps]
    together: list[Any] = []
    for start in range(0, len(steps), size):
        chosen = steps[start : start + size]
        together += batched.batch(*(batched.request(ALICE, *commands(step)) for step in chosen))
    batched.engine.close()
    assert together == one_by_one
    assert single.lines() == batched.lines()
    assert [entry.hash for entry in single.store.entries(0, 1_000)] == [
        entry.hash for entry in batched.store.entries(0, 1_000)
    ]


@proves("CLAIM-QUEUES", "TASK-PRIORITY")
def test_chosen_queues_are_merged_and_others_skipped(lab: Lab) -> None:
    lab.do(HUMAN, ready("anyone"))
    lab.do(HUMAN, ready("slow", assignee="backend", priority="low"))
    lab.do(HUMAN, ready("fast", assignee="frontend", priority="high"))
    hub = Actor("system", "hub")
    chosen = ClaimTask("", "alice", queues=("backend", "frontend"))
    answers = [lab.ask(hub, chosen) for _ in range(3)]
    assert [claimed_task(answer) for answer in answers] == ["fast", "slow", "nothing_ready"]
    assert claimed_task(lab.ask(hub, ClaimTask("", "alice"))) == "anyone"
