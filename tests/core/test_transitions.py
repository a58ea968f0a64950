"""Status changes by every actor for every pair of statuses, against a table written by hand."""

from typing import get_args

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.authority import MAY_DISPATCH, MAY_MOVE, MAY_WRITE
from dragoman.core.base import Role, Status
from dragoman.core.errors import Refusal
from dragoman.core.intent.state import INTENT_TRANSITIONS, IntentState
from dragoman.core.read import Decision
from dragoman.core.task_state import FINAL_STATUSES, TASK_TRANSITIONS, MoveTask, TaskTransitioned
from tests.core.expected_transitions import EXPECTED_TRANSITIONS, INTENT_DETOURS, INTENT_LIFE
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TRUSTED_FILE,
    TTL,
    World,
    events_of,
    held,
    lease,
    reclaimed,
    task,
    with_fields,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)

ROLES = {
    "h": HUMAN,
    "o": ORCHESTRATOR,
    "s": HUB,
    "c": COORDINATOR,
    "f": FILE,
    "t": TRUSTED_FILE,
    "x": OBSERVER,
}


def expected(from_: Status, to: Status, letter: str) -> str:
    """Code that the table gives; empty if the move is allowed."""
    if to not in EXPECTED_TRANSITIONS[from_]:
        return "invalid_transition"
    if to == "in-progress":
        return "claim_required"
    return "" if letter in EXPECTED_TRANSITIONS[from_][to] else "not_authorized"


def task_in(from_: Status, *, review_required: bool = True) -> World:
    """Task in this status whose last agent was alice; only in-progress has a lease."""
    found = task(
        "T", from_, "alice", attempts=1, agents=("alice",), review_required=review_required
    )
    return World(found, leases=[("T", lease())] if from_ == "in-progress" else [])


@proves("TASK-LIFECYCLE", "TASK-TABLE-AS-DATA")
def test_transition_table_matches_the_expected_one() -> None:
    assert {a: set(targets) for a, targets in TASK_TRANSITIONS.items()} == {
        a: set(targets) for a, targets in EXPECTED_TRANSITIONS.items()
    }
    assert set(FINAL_STATUSES) == {"done", "cancelled"}
    assert set(STATUSES) == set(EXPECTED_TRANSITIONS)


@proves("CCOS-LIFE")
def test_intent_table_is_the_life_cycle_with_its_detours() -> None:
    pairs = {(a, b) for a, targets in INTENT_TRANSITIONS.items() for b in targets}
    life = {(a, b) for a, targets in INTENT_LIFE.items() for b in targets}
    assert pairs == life | set(INTENT_DETOURS)
    assert set(INTENT_TRANSITIONS) == set(get_args(IntentState))
    assert {b for _, b in pairs} | {"New"} == set(INTENT_TRANSITIONS)


@proves("ROLE-TABLE")
def test_authority_table_matches_the_expected_one() -> None:
    def allowed(letter: str) -> set[tuple[str, str]]:
        return {
            (a, b)
            for a, targets in EXPECTED_TRANSITIONS.items()
            for b, letters in targets.items()
            if letter in letters
        }

    entered = {("ready", "in-progress"), ("review", "in-progress")}
    letters = {
        "human": "h",
        "orchestrator": "o",
        "system": "s",
        "coordinator": "c",
        "file": "f",
        "trusted-file": "t",
        "holder": "H",
        "assignee": "a",
        "finisher": "n",
        "observer": "x",
        "stranger": "-",
    }
    assert {role: set(moves) - entered for role, moves in MAY_MOVE.items()} == {
        role: allowed(letter) for role, letter in letters.items()
    }


@proves("ROLE-TABLE", "TASK-LIFECYCLE", "TASK-CLAIM-ONLY", "TASK-REVIEW", "TASK-SAME-STATUS")
@pytest.mark.parametrize("letter", ROLES)
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_move_by_role_for_every_pair_of_statuses(from_: Status, to: Status, letter: str) -> None:
    world = task_in(from_)
    answer = world.decide(ROLES[letter], MoveTask("T", to, "because"))
    if from_ == to and letter == "x":
        assert world.code(ROLES[letter], MoveTask("T", to, "because")) == "not_authorized"
        return
    if from_ == to:
        assert isinstance(answer, Decision)
        assert (answer.receipt.status, answer.events, answer.lease) == (to, (), None)
        return
    assert world.code(ROLES[letter], MoveTask("T", to, "because")) == expected(from_, to, letter)
    if isinstance(answer, Decision):
        is_taken = from_ == "in-progress"
        assert answer.events == (
            ("task:T", TaskTransitioned(from_, to, "because", is_taken=is_taken)),
        )
        assert answer.receipt.status == to
        ends = answer.lease is not None and answer.lease.lease is None
        assert ends == (from_ == "in-progress"), "leaving in-progress ends the lease"


@proves("ROLE-TABLE", "TASK-LIFECYCLE", "TASK-CLAIM-ONLY", "TASK-SAME-STATUS", "TASK-REVIEW")
@pytest.mark.parametrize("review_required", [True, False])
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_move_by_last_agent_for_every_pair_of_statuses(
    from_: Status, to: Status, review_required: bool
) -> None:
    world = task_in(from_, review_required=review_required)
    letter = "H" if from_ == "in-progress" else "a" if review_required else "n"
    code = "" if from_ == to else expected(from_, to, letter)
    assert world.code(ALICE, MoveTask("T", to)) == code
    if from_ == "in-progress":
        assert world.code(ALICE, MoveTask("T", to, fence=1)) == code


@proves("ROLE-TABLE", "ROLE-HOLDER")
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_move_by_stranger_for_every_pair_of_statuses(from_: Status, to: Status) -> None:
    owned, unowned = task_in(from_), with_fields(task_in(from_), assignee="")
    stranger = MoveTask("T", to)
    assert owned.code(BOB, stranger) == ("" if from_ == to else "unauthorized_agent")
    if from_ != "in-progress":
        assert unowned.code(BOB, stranger) == ("" if from_ == to else "unassigned_task")


@proves("LEASE-LOST", "LEASE-FENCE", "ROLE-TABLE")
@pytest.mark.parametrize("fence", [None, 1])
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_move_by_former_holder_for_every_pair_of_statuses(
    from_: Status, to: Status, fence: int | None
) -> None:
    """Alice's attempt is over; bob had the task after her, or has it still."""
    over = task("T", from_, "bob", attempts=2, agents=("alice", "bob"))
    world = World(over, leases=[("T", lease("bob", 2))] if from_ == "in-progress" else [])
    is_repeat = from_ == to and fence is None
    assert world.code(ALICE, MoveTask("T", to, fence=fence)) == ("" if is_repeat else "lease_lost")


@proves("LEASE-LOST", "ROLE-TABLE")
@pytest.mark.parametrize("fence", [None, 1])
@pytest.mark.parametrize("to", STATUSES)
def test_move_by_holder_with_expired_lease_is_refused(to: Status, fence: int | None) -> None:
    world = held(expires_at=NOW)
    is_repeat = to == "in-progress" and fence is None
    assert world.code(ALICE, MoveTask("T", to, fence=fence)) == ("" if is_repeat else "lease_lost")


@proves("TASK-SAME-STATUS", "LEASE-FENCE")
def test_repeated_move_under_newest_fence_is_a_no_op_after_lease() -> None:
    world = held()
    world.do(ALICE, MoveTask("T", "review", fence=1))
    again = world.do(ALICE, MoveTask("T", "review", fence=1))
    assert (again.events, again.lease) == ((), None)
    assert world.code(ALICE, MoveTask("T", "blocked", fence=1)) == "lease_lost"


@proves("TASK-SAME-STATUS", "LEASE-HEARTBEAT")
def test_repeated_move_by_holder_renews_lease() -> None:
    decision = held().do(ALICE, MoveTask("T", "in-progress", fence=1), NOW + 5)
    assert decision.lease is not None
    assert decision.lease.lease is not None
    assert decision.lease.lease.expires_at == NOW + 5 + TTL


@proves("TASK-CLAIM-ONLY", "TASK-LIFECYCLE")
def test_move_to_in_progress_requires_claim() -> None:
    codes = {
        status: task_in(status).code(HUMAN, MoveTask("T", "in-progress")) for status in STATUSES
    }
    assert codes == {
        "backlog": "invalid_transition",
        "ready": "claim_required",
        "in-progress": "",
        "blocked": "invalid_transition",
        "review": "claim_required",
        "done": "invalid_transition",
        "deadletter": "invalid_transition",
        "cancelled": "invalid_transition",
    }


@proves("TASK-REVIEW", "ROLE-TABLE")
def test_agent_may_not_approve_own_attempt_if_review_is_required() -> None:
    reviewed, unreviewed = task_in("review"), task_in("review", review_required=False)
    assert reviewed.code(ALICE, MoveTask("T", "done")) == "not_authorized"
    assert unreviewed.code(ALICE, MoveTask("T", "done")) == ""
    assert unreviewed.code(BOB, MoveTask("T", "done")) == "unauthorized_agent"
    assert unreviewed.code(COORDINATOR, MoveTask("T", "done")) == "not_authorized"


@proves("TASK-CANCEL", "LEASE-FENCE")
@pytest.mark.parametrize("from_", STATUSES)
def test_cancelling_ends_task_and_invalidates_fence(from_: Status) -> None:
    world = task_in(from_)
    if from_ in ("done", "deadletter"):
        assert world.code(HUMAN, MoveTask("T", "cancelled")) == "invalid_transition"
        return
    world.do(HUMAN, MoveTask("T", "cancelled", "no longer wanted"))
    assert world.tasks["T"].status == "cancelled"
    assert world.leases == {}
    assert world.code(ALICE, MoveTask("T", "review", fence=1)) == "lease_lost"
    assert world.code(HUMAN, MoveTask("T", "ready")) == "invalid_transition"
    assert world.code(HUMAN, ClaimTask("T", "alice")) == "not_ready"


@proves("REFUSAL-CODES", "TASK-LIFECYCLE")
def test_invalid_transition_lists_possible_statuses() -> None:
    answer = task_in("backlog").decide(HUMAN, MoveTask("T", "review"))
    assert "it can go to: ready, blocked, cancelled" in str(answer)
    assert "nowhere, it is final" in str(task_in("done").decide(HUMAN, MoveTask("T", "review")))


@proves("TASK-LIFECYCLE")
def test_move_reason_is_bounded_and_unknown_task_is_refused() -> None:
    world = task_in("ready")
    assert world.code(HUMAN, MoveTask("T", "blocked", "x" * 4_000)) == ""
    assert world.code(HUMAN, MoveTask("T", "blocked", "x" * 4_001)) == "invalid_field"
    assert world.code(HUMAN, MoveTask("U", "blocked")) == "task_not_found"


@proves("TASK-LIFECYCLE", "RETRY-DEADLETTER")
def test_transition_resets_failures_backoff_and_assignee() -> None:
    rested = with_fields(task_in("ready"), failures=3, not_before=NOW + 9, reserved_for="alice")
    rested.do(HUMAN, MoveTask("T", "blocked"), NOW + 1)
    blocked = rested.tasks["T"]
    assert (blocked.failures, blocked.not_before, blocked.moved_at) == (3, 0, NOW + 1)

    reviewed = with_fields(task_in("in-progress"), failures=3)
    reviewed.do(ALICE, MoveTask("T", "review"))
    assert (reviewed.tasks["T"].failures, reviewed.tasks["T"].assignee) == (0, "alice")

    back = with_fields(task_in("review"), reserved_for="")
    back.do(HUMAN, MoveTask("T", "ready"))
    assert back.tasks["T"].assignee == "", "back in everyone's queue"

    dead = with_fields(task_in("deadletter"), failures=5, reserved_for="bob")
    dead.do(HUMAN, MoveTask("T", "ready"))
    assert (dead.tasks["T"].failures, dead.tasks["T"].assignee) == (0, "bob")


@proves("ROLE-TABLE")
def test_write_and_dispatch_roles_are_the_promised_ones() -> None:
    assert set(get_args(Role)) - set(MAY_WRITE) == {"observer", "file", "trusted-file"}
    assert set(MAY_DISPATCH) == {"human", "orchestrator", "system"}


@proves("ROLE-TABLE")
def test_same_name_with_another_role_is_not_the_agent() -> None:
    world = held()
    for role in get_args(Role):
        if role != "agent":
            namesake = Actor(role, "alice")
            assert world.code(namesake, MoveTask("T", "review", fence=1)) == expected(
                "in-progress", "review", {v.role: k for k, v in ROLES.items()}[role]
            )


@proves("LEASE-LOST")
def test_refused_moves_of_former_holder_change_nothing() -> None:
    world = reclaimed()
    before = dict(world.tasks), dict(world.leases)
    for to in STATUSES:
        world.decide(ALICE, MoveTask("T", to, fence=1))
    assert (world.tasks, world.leases) == before
    assert events_of(world.decide(BOB, MoveTask("T", "review", fence=2)))


@proves("ROLE-TABLE")
@pytest.mark.parametrize(
    ("to", "code", "ending"),
    [
        ("review", "invalid_transition", "it can go to: ready, blocked"),
        ("cancelled", "not_authorized", "only to: ready, blocked"),
    ],
)
def test_refused_move_of_file_lists_only_moves_of_files(to: Status, code: str, ending: str) -> None:
    refusal = World(task("T", "backlog")).decide(FILE, MoveTask("T", to))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.detail.endswith(ending)) == (code, True), refusal


@proves("ROLE-TABLE")
def test_refused_move_says_that_no_move_is_possible() -> None:
    refusal = World(task("T", "review", "bob")).decide(BOB, MoveTask("T", "done"))
    assert isinstance(refusal, Refusal)
    assert refusal.detail == "agent:bob may not move T from review to done, nor anywhere else"
