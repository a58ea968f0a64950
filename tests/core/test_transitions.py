"""Every pair of statuses for every way of standing to a task, against a table written by hand."""

from typing import get_args

import pytest

from dragoman.core.actors import Actor, Role
from dragoman.core.authority import MAY_DISPATCH, MAY_MOVE, MAY_WRITE
from dragoman.core.commands import ClaimTask, MoveTask
from dragoman.core.errors import Refusal
from dragoman.core.events import Status, TaskTransitioned
from dragoman.core.reading import Decision
from dragoman.core.states.task import FINAL, TRANSITIONS
from tests.core.by_hand import BY_HAND
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
    with_,
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
    """The code that the table by hand gives; "" for a yes."""
    if to not in BY_HAND[from_]:
        return "invalid_transition"
    if to == "in-progress":
        return "claim_required"
    return "" if letter in BY_HAND[from_][to] else "not_authorized"


def standing(from_: Status, *, review_required: bool = True) -> World:
    """A task in this status whose last agent was alice; only in-progress has a lease."""
    stands = task(
        "T", from_, "alice", attempts=1, agents=("alice",), review_required=review_required
    )
    return World(stands, leases=[("T", lease())] if from_ == "in-progress" else [])


@proves("TASK-LIFECYCLE", "TASK-TABLE-AS-DATA")
def test_the_table_in_the_code_is_the_table_by_hand() -> None:
    assert {a: set(targets) for a, targets in TRANSITIONS.items()} == {
        a: set(targets) for a, targets in BY_HAND.items()
    }
    assert set(FINAL) == {"done", "cancelled"}
    assert set(STATUSES) == set(BY_HAND)


@proves("ROLE-TABLE")
def test_the_table_of_authority_is_the_table_by_hand() -> None:
    def allowed(letter: str) -> set[tuple[str, str]]:
        return {
            (a, b)
            for a, targets in BY_HAND.items()
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
    assert {who: set(moves) - entered for who, moves in MAY_MOVE.items()} == {
        who: allowed(letter) for who, letter in letters.items()
    }


@proves("ROLE-TABLE", "TASK-LIFECYCLE", "TASK-CLAIM-ONLY", "TASK-REVIEW", "TASK-SAME-STATUS")
@pytest.mark.parametrize("letter", ROLES)
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_every_role_by_every_pair(from_: Status, to: Status, letter: str) -> None:
    world = standing(from_)
    answer = world.ask(ROLES[letter], MoveTask("T", to, "because"))
    if from_ == to and letter == "x":
        assert world.code(ROLES[letter], MoveTask("T", to, "because")) == "not_authorized"
        return
    if from_ == to:
        assert isinstance(answer, Decision)
        assert (answer.receipt.status, answer.events, answer.lease) == (to, (), None)
        return
    assert world.code(ROLES[letter], MoveTask("T", to, "because")) == expected(from_, to, letter)
    if isinstance(answer, Decision):
        assert answer.events == (("task:T", TaskTransitioned(from_, to, "because")),)
        assert answer.receipt.status == to
        ends = answer.lease is not None and answer.lease.lease is None
        assert ends == (from_ == "in-progress"), "leaving in-progress ends the lease"


@proves("ROLE-TABLE", "TASK-LIFECYCLE", "TASK-CLAIM-ONLY", "TASK-SAME-STATUS", "TASK-REVIEW")
@pytest.mark.parametrize("review_required", [True, False])
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_the_agent_of_the_last_attempt_by_every_pair(
    from_: Status, to: Status, review_required: bool
) -> None:
    world = standing(from_, review_required=review_required)
    letter = "H" if from_ == "in-progress" else "a" if review_required else "n"
    code = "" if from_ == to else expected(from_, to, letter)
    assert world.code(ALICE, MoveTask("T", to)) == code
    if from_ == "in-progress":
        assert world.code(ALICE, MoveTask("T", to, fence=1)) == code


@proves("ROLE-TABLE", "ROLE-HOLDER")
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_a_stranger_by_every_pair(from_: Status, to: Status) -> None:
    owned, unowned = standing(from_), with_(standing(from_), assignee="")
    stranger = MoveTask("T", to)
    assert owned.code(BOB, stranger) == ("" if from_ == to else "unauthorized_agent")
    if from_ != "in-progress":
        assert unowned.code(BOB, stranger) == ("" if from_ == to else "unassigned_task")


@proves("LEASE-LOST", "LEASE-FENCE", "ROLE-TABLE")
@pytest.mark.parametrize("fence", [None, 1])
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_a_former_holder_by_every_pair(from_: Status, to: Status, fence: int | None) -> None:
    """Alice's attempt is over; bob had the task after her, or has it still."""
    over = task("T", from_, "bob", attempts=2, agents=("alice", "bob"))
    world = World(over, leases=[("T", lease("bob", 2))] if from_ == "in-progress" else [])
    is_repeat = from_ == to and fence is None
    assert world.code(ALICE, MoveTask("T", to, fence=fence)) == ("" if is_repeat else "lease_lost")


@proves("LEASE-LOST", "ROLE-TABLE")
@pytest.mark.parametrize("fence", [None, 1])
@pytest.mark.parametrize("to", STATUSES)
def test_a_holder_whose_lease_has_run_out_by_every_target(to: Status, fence: int | None) -> None:
    world = held(expires_at=NOW)
    is_repeat = to == "in-progress" and fence is None
    assert world.code(ALICE, MoveTask("T", to, fence=fence)) == ("" if is_repeat else "lease_lost")


@proves("TASK-SAME-STATUS", "LEASE-FENCE")
def test_a_repeat_under_the_newest_token_is_a_no_op_after_the_lease_has_ended_too() -> None:
    world = held()
    world.do(ALICE, MoveTask("T", "review", fence=1))
    again = world.do(ALICE, MoveTask("T", "review", fence=1))
    assert (again.events, again.lease) == ((), None)
    assert world.code(ALICE, MoveTask("T", "blocked", fence=1)) == "lease_lost"


@proves("TASK-SAME-STATUS", "LEASE-HEARTBEAT")
def test_a_repeat_by_the_holder_renews_its_lease() -> None:
    decision = held().do(ALICE, MoveTask("T", "in-progress", fence=1), NOW + 5)
    assert decision.lease is not None
    assert decision.lease.lease is not None
    assert decision.lease.lease.expires_at == NOW + 5 + TTL


@proves("TASK-CLAIM-ONLY", "TASK-LIFECYCLE")
def test_only_statuses_that_lead_to_in_progress_are_told_to_claim() -> None:
    told = {
        status: standing(status).code(HUMAN, MoveTask("T", "in-progress")) for status in STATUSES
    }
    assert told == {
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
def test_nobody_approves_its_own_attempt_unless_no_review_is_required() -> None:
    reviewed, unreviewed = standing("review"), standing("review", review_required=False)
    assert reviewed.code(ALICE, MoveTask("T", "done")) == "not_authorized"
    assert unreviewed.code(ALICE, MoveTask("T", "done")) == ""
    assert unreviewed.code(BOB, MoveTask("T", "done")) == "unauthorized_agent"
    assert unreviewed.code(COORDINATOR, MoveTask("T", "done")) == "not_authorized"


@proves("TASK-CANCEL", "LEASE-FENCE")
@pytest.mark.parametrize("from_", STATUSES)
def test_cancelling_ends_a_task_and_kills_its_token(from_: Status) -> None:
    world = standing(from_)
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
def test_a_wrong_transition_is_told_where_the_task_can_go() -> None:
    answer = standing("backlog").ask(HUMAN, MoveTask("T", "review"))
    assert "it can go to: ready, blocked, cancelled" in str(answer)
    assert "nowhere, it is final" in str(standing("done").ask(HUMAN, MoveTask("T", "review")))


@proves("TASK-LIFECYCLE")
def test_a_reason_has_a_bound_and_an_unknown_task_is_not_found() -> None:
    world = standing("ready")
    assert world.code(HUMAN, MoveTask("T", "blocked", "x" * 4_000)) == ""
    assert world.code(HUMAN, MoveTask("T", "blocked", "x" * 4_001)) == "invalid_field"
    assert world.code(HUMAN, MoveTask("U", "blocked")) == "task_not_found"


@proves("TASK-LIFECYCLE", "RETRY-DEADLETTER")
def test_what_a_transition_changes_beside_the_status() -> None:
    rested = with_(standing("ready"), failures=3, not_before=NOW + 9, reserved_for="alice")
    rested.do(HUMAN, MoveTask("T", "blocked"), NOW + 1)
    blocked = rested.tasks["T"]
    assert (blocked.failures, blocked.not_before, blocked.moved_at) == (3, 0, NOW + 1)

    reviewed = with_(standing("in-progress"), failures=3)
    reviewed.do(ALICE, MoveTask("T", "review"))
    assert (reviewed.tasks["T"].failures, reviewed.tasks["T"].assignee) == (0, "alice")

    back = with_(standing("review"), reserved_for="")
    back.do(HUMAN, MoveTask("T", "ready"))
    assert back.tasks["T"].assignee == "", "back in everyone's queue"

    dead = with_(standing("deadletter"), failures=5, reserved_for="bob")
    dead.do(HUMAN, MoveTask("T", "ready"))
    assert (dead.tasks["T"].failures, dead.tasks["T"].assignee) == (0, "bob")


@proves("ROLE-TABLE")
def test_who_may_write_and_who_may_dispatch() -> None:
    assert set(get_args(Role)) - set(MAY_WRITE) == {"observer", "file", "trusted-file"}
    assert set(MAY_DISPATCH) == {"human", "orchestrator", "system"}


@proves("ROLE-TABLE")
def test_a_namesake_with_another_role_is_not_the_agent() -> None:
    world = held()
    for role in get_args(Role):
        if role != "agent":
            namesake = Actor(role, "alice")
            assert world.code(namesake, MoveTask("T", "review", fence=1)) == expected(
                "in-progress", "review", {v.role: k for k, v in ROLES.items()}[role]
            )


@proves("LEASE-LOST")
def test_the_new_holder_does_not_notice_the_old_one() -> None:
    world = reclaimed()
    before = dict(world.tasks), dict(world.leases)
    for to in STATUSES:
        world.ask(ALICE, MoveTask("T", to, fence=1))
    assert (world.tasks, world.leases) == before
    assert events_of(world.ask(BOB, MoveTask("T", "review", fence=2)))


@proves("ROLE-TABLE")
@pytest.mark.parametrize(
    ("to", "code", "ways"),
    [
        ("review", "invalid_transition", "it can go to: ready, blocked"),
        ("cancelled", "not_authorized", "only to: ready, blocked"),
    ],
)
def test_a_refused_move_of_a_file_names_only_what_a_file_may_do(
    to: Status, code: str, ways: str
) -> None:
    refusal = World(task("T", "backlog")).ask(FILE, MoveTask("T", to))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.detail.endswith(ways)) == (code, True), refusal


@proves("ROLE-TABLE")
def test_who_may_move_it_nowhere_is_told_so() -> None:
    refusal = World(task("T", "review", "bob")).ask(BOB, MoveTask("T", "done"))
    assert isinstance(refusal, Refusal)
    assert refusal.detail == "agent:bob may not move T from review to done, nor anywhere else"
