"""End of an attempt: reports, end of session, recovery, retries and the deadletter."""

from itertools import pairwise
from typing import cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, EndAttempt, ExpireLease, RenewLease, ReportOutcome
from dragoman.core.attempt_state import OUTCOME_STATUSES, TaskReported, TaskRequeued
from dragoman.core.backoff import Backoff, backoff_delay
from dragoman.core.base import Outcome, Status
from dragoman.core.read import Decision
from dragoman.core.task_state import MoveTask, TaskTransitioned, TaskUnblocked
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
    TTL,
    World,
    claim,
    events_of,
    held,
    task,
    with_fields,
)
from tests.requirements import proves

CAROL = Actor("agent", "carol")
STRANGER = "unauthorized_agent"

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

# (outcome, review required) -> the statuses that the task passes through
EXPECTED_PATHS: dict[tuple[Outcome, bool], list[Status]] = {
    ("done", True): ["review"],
    ("done", False): ["review", "done"],
    ("blocked", True): ["blocked"],
    ("blocked", False): ["blocked"],
    ("needs_review", True): ["review"],
    ("needs_review", False): ["review"],
    ("partial", True): ["review"],
    ("partial", False): ["review"],
    ("failed", True): ["ready"],
    ("failed", False): ["ready"],
}
CASES = [(outcome, required, path) for (outcome, required), path in EXPECTED_PATHS.items()]
EXPIRED = NOW + TTL


def status_path(decision: Decision, reason: str) -> list[Status]:
    """Statuses that the events lead through; every step must give this reason."""
    path: list[Status] = []
    for event in events_of(decision):
        if isinstance(event, TaskTransitioned):
            assert event.from_ == (path[-1] if path else "in-progress")
            assert event.reason == reason
            path.append(event.to)
        elif isinstance(event, TaskRequeued):
            assert event.reason == reason
            path.append("ready")
    return path


@proves("TASK-REVIEW", "ATTEMPT-RESULT")
@pytest.mark.parametrize(("outcome", "review_required", "path"), CASES)
def test_report_applied_at_once_moves_task(
    outcome: Outcome, review_required: bool, path: list[Status]
) -> None:
    world = held(review_required=review_required)
    decision = world.do(
        ALICE,
        ReportOutcome("T", outcome, "notes", ("b1",), {"tests": 3}, fence=1, apply=True),
    )
    assert decision.events[0] == (
        "task:T",
        TaskReported(1, "alice", outcome, "notes", ("b1",), {"tests": 3}),
    )
    assert status_path(decision, f"reported_{outcome}") == path
    assert decision.receipt.status == world.tasks["T"].status == path[-1]
    assert world.leases == {}
    reported = world.tasks["T"].reported
    assert reported is not None
    assert (reported.attempt, reported.outcome, reported.at) == (1, outcome, NOW)


@proves("ATTEMPT-RESULT")
@pytest.mark.parametrize(("outcome", "review_required", "path"), CASES)
def test_report_waits_for_the_end_of_the_session(
    outcome: Outcome, review_required: bool, path: list[Status]
) -> None:
    world = held(review_required=review_required)
    waiting = world.do(ALICE, ReportOutcome("T", outcome, blockers=("b1",)))
    assert [type(event) for event in events_of(waiting)] == [TaskReported]
    assert waiting.receipt.status == "in-progress"
    assert world.code(ALICE, RenewLease("T")) == "", "the lease goes on until the session ends"
    ended = world.do(ALICE, EndAttempt("T"))
    assert status_path(ended, f"reported_{outcome}") == path
    assert world.leases == {}


@proves("MCP-REPORT-NOW")
@pytest.mark.parametrize(("session", "status"), [("", "review"), ("s-1", "in-progress")])
def test_report_can_end_unnamed_session(session: str, status: Status) -> None:
    world = World(task("T", "ready"))
    world.do(ALICE, ClaimTask("T", "alice", session))
    decision = world.do(ALICE, ReportOutcome("T", "done", apply_unnamed=True))
    assert decision.receipt.status == world.tasks["T"].status == status


@proves("LEASE-RECOVERY")
@pytest.mark.parametrize(("outcome", "review_required", "path"), CASES)
def test_report_is_applied_when_lease_of_holder_expires(
    outcome: Outcome, review_required: bool, path: list[Status]
) -> None:
    world = held(review_required=review_required)
    world.do(ALICE, ReportOutcome("T", outcome, blockers=("b1",)), NOW)
    recovered = world.do(HUB, ExpireLease("T"), EXPIRED)
    assert status_path(recovered, f"stale_heartbeat_{outcome}") == path
    assert world.leases == {}


@proves("LEASE-RECOVERY", "RETRY-BACKOFF")
def test_task_with_expired_lease_and_no_report_is_requeued() -> None:
    world = held()
    recovered = world.do(HUB, ExpireLease("T", Backoff(1_000, 9_000)), EXPIRED)
    assert recovered.events == (
        ("task:T", TaskRequeued(1, "stale_heartbeat_reclaim", 1, EXPIRED + 1_000)),
    )
    free = world.tasks["T"]
    assert (free.status, free.assignee, free.failures) == ("ready", "", 1)
    assert free.not_before == EXPIRED + 1_000
    assert world.leases == {}


@proves("LEASE-RECOVERY")
@pytest.mark.parametrize(("late", "moves"), [(-1, False), (0, True), (1, True)])
def test_recovery_begins_at_end_of_lease(late: int, moves: bool) -> None:
    decision = held().do(HUB, ExpireLease("T"), EXPIRED + late)
    assert bool(decision.events) is moves
    assert (decision.lease is not None) is moves


@proves("LEASE-RECOVERY")
def test_renewed_lease_is_not_expired() -> None:
    world = held()
    world.do(ALICE, RenewLease("T"), EXPIRED - 1)
    before = dict(world.tasks), dict(world.leases)
    assert world.do(HUB, ExpireLease("T"), EXPIRED).events == ()
    assert world.do(HUB, ExpireLease("T"), EXPIRED - 2 + TTL).events == ()
    assert (world.tasks, world.leases) == before
    assert world.do(HUB, ExpireLease("T"), EXPIRED - 1 + TTL).events != ()


@proves("TESTING-HUB")
def test_unknown_outcome_is_refused() -> None:
    bogus = ReportOutcome("T", cast(Outcome, "bogus"))
    assert World(task()).code(HUMAN, bogus) == "invalid_field"


@proves("LEASE-RECOVERY")
def test_unheld_task_is_not_recovered() -> None:
    assert World(task()).do(HUB, ExpireLease("T")).events == ()
    assert World(task()).code(HUB, ExpireLease("nowhere")) == "task_not_found"


@proves("ROLE-TABLE")
@pytest.mark.parametrize(
    ("actor", "expire", "end"),
    [
        (HUB, "", ""),
        (HUMAN, "", ""),
        (ORCHESTRATOR, "", ""),
        (COORDINATOR, "not_authorized", "unauthorized_agent"),
        (OBSERVER, "not_authorized", "unauthorized_agent"),
        (FILE, "not_authorized", "unauthorized_agent"),
        (ALICE, "not_authorized", ""),
        (BOB, "not_authorized", "unauthorized_agent"),
    ],
)
def test_lease_expiry_and_attempt_end_depend_on_role(actor: Actor, expire: str, end: str) -> None:
    world = held()
    world.do(ALICE, ReportOutcome("T", "done"))
    assert world.code(actor, ExpireLease("T"), EXPIRED) == expire
    assert world.code(actor, EndAttempt("T")) == end


# (outcome, review required) -> the statuses in which the report is a repeat
ALREADY_TRUE: dict[tuple[Outcome, bool], set[Status]] = {
    ("done", True): {"review", "done"},
    ("done", False): {"done"},
    ("blocked", True): {"blocked", "done"},
    ("blocked", False): {"blocked", "done"},
    ("needs_review", True): {"review", "done"},
    ("needs_review", False): {"review", "done"},
    ("partial", True): {"review", "done"},
    ("partial", False): {"review", "done"},
    ("failed", True): set(),
    ("failed", False): set(),
}
STATUSES: tuple[Status, ...] = get_args(Status)


@proves("REPORT-REPEAT", "LEASE-LOST", "LEASE-FENCE")
@pytest.mark.parametrize("status", [status for status in STATUSES if status != "in-progress"])
@pytest.mark.parametrize(("outcome", "review_required"), ALREADY_TRUE)
def test_repeated_report_of_current_status_is_a_no_op(
    outcome: Outcome, review_required: bool, status: Status
) -> None:
    current = task(
        "T",
        status,
        "alice",
        attempts=2,
        agents=("bob", "alice"),
        review_required=review_required,
    )
    world = World(current)
    is_repeat = status in ALREADY_TRUE[outcome, review_required]
    for apply in (False, True):
        report = ReportOutcome("T", outcome, "again", ("b1",), apply=apply)
        for actor, code in ((ALICE, "lease_lost"), (BOB, "lease_lost"), (CAROL, STRANGER)):
            assert world.code(actor, report) == ("" if is_repeat else code)
        assert world.code(OBSERVER, report) == ("not_authorized" if is_repeat else STRANGER)
        assert world.code(ALICE, replace(report, fence=1)) == "lease_lost"
        assert world.code(ALICE, replace(report, fence=2)) == ("" if is_repeat else "lease_lost")
        if is_repeat:
            decision = world.do(ALICE, report)
            assert (decision.events, decision.lease) == ((), None)
            assert decision.receipt.status == status


@proves("REPORT-REPEAT")
@pytest.mark.parametrize("by_move", [False, True], ids=["report", "move"])
def test_own_report_is_repeated_by_its_agent_alone(by_move: bool) -> None:
    own = ReportOutcome("T", "done", apply=True, is_own=True)
    world = with_fields(held(), agents=("bob", "alice"))
    world.do(ALICE, MoveTask("T", "review") if by_move else own)
    assert world.do(ALICE, own).receipt.is_no_op
    assert world.do(ALICE, replace(own, fence=1)).receipt.is_no_op
    assert world.code(ALICE, replace(own, fence=7)) == "lease_lost"
    assert world.code(BOB, own) == "lease_lost", "its work was taken away before"
    for stranger in (CAROL, HUMAN, ORCHESTRATOR):
        assert world.code(stranger, own) == "unauthorized_agent"


@proves("ATTEMPT-RESULT")
def test_later_report_of_attempt_replaces_earlier_one() -> None:
    world = held()
    world.do(ALICE, ReportOutcome("T", "blocked", blockers=("no key",)))
    world.do(ALICE, ReportOutcome("T", "needs_review"))
    assert world.do(ALICE, EndAttempt("T")).receipt.status == "review"


@proves("ATTEMPT-RESULT")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_report_of_former_attempt_does_not_decide_new_attempt(outcome: Outcome) -> None:
    world = held()
    world.do(ALICE, ReportOutcome("T", outcome, "mine", ("b1",)))
    world.do(HUMAN, MoveTask("T", "ready", "try somebody else"))
    claim(world, BOB)
    assert world.tasks["T"].reported is None
    assert world.do(BOB, EndAttempt("T")).events == (), "nothing was reported in this attempt"
    recovered = world.do(HUB, ExpireLease("T"), NOW + TTL * 2)
    assert status_path(recovered, "stale_heartbeat_reclaim") == ["ready"]


@proves("ATTEMPT-RESULT")
def test_report_does_not_apply_after_end_of_its_attempt() -> None:
    world = held()
    world.do(ALICE, ReportOutcome("T", "done"))
    world.do(HUMAN, MoveTask("T", "blocked"))
    assert world.do(HUMAN, EndAttempt("T")).events == ()
    assert world.do(HUB, ExpireLease("T"), NOW + TTL * 9).events == ()
    assert world.tasks["T"].status == "blocked"


@proves("ATTEMPT-RESULT")
@pytest.mark.parametrize(("session", "ends"), [("", True), ("s1", True), ("s2", False)])
def test_session_end_affects_only_its_own_attempts(session: str, ends: bool) -> None:
    world = World(task())
    world.do(ALICE, ClaimTask("T", "alice", "s1"))
    world.do(ALICE, ReportOutcome("T", "done"))
    assert bool(world.do(ORCHESTRATOR, EndAttempt("T", session)).events) is ends


@proves("ATTEMPT-RESULT", "LEASE-HEARTBEAT")
def test_session_end_without_report_moves_nothing() -> None:
    world = held()
    decision = world.do(ALICE, EndAttempt("T"), NOW + 3)
    assert (decision.events, decision.receipt.status) == ((), "in-progress")
    assert world.leases["T"].expires_at == NOW + 3 + TTL
    assert world.code(ALICE, EndAttempt("nowhere")) == "task_not_found"


@proves("RETRY-BACKOFF")
@pytest.mark.parametrize(
    ("failures", "delay"),
    [(1, 1_000), (2, 2_000), (3, 4_000), (8, 128_000), (9, 256_000), (10, 300_000), (99, 300_000)],
)
def test_backoff_doubles_up_to_its_cap(failures: int, delay: int) -> None:
    assert backoff_delay(failures, Backoff()) == delay


@proves("RETRY-BACKOFF")
@given(st.integers(0, 10**9), st.integers(0, 10**12))
def test_backoff_never_shrinks_and_never_exceeds_its_cap(base: int, cap: int) -> None:
    delays = [backoff_delay(n, Backoff(base, cap)) for n in (1, 2, 3, 39, 40, 41, 42, 10**6)]
    assert all(a <= b <= cap for a, b in pairwise(delays))


@proves("RETRY-DEADLETTER", "RETRY-BACKOFF")
@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("by_expiry", [True, False])
def test_task_enters_deadletter_at_attempt_limit(limit: int, by_expiry: bool) -> None:
    world, at, delays = with_fields(World(task()), max_attempts=limit), NOW, list[int]()
    reason = "stale_heartbeat_reclaim" if by_expiry else "reported_failed"
    for number in range(1, limit + 1):
        claim(world, now=at)
        if by_expiry:
            at += TTL
            decision = world.do(HUB, ExpireLease("T"), at)
        else:
            decision = world.do(ALICE, ReportOutcome("T", "failed", apply=True), at)
        requeued = next(e for e in events_of(decision) if isinstance(e, TaskRequeued))
        assert (requeued.attempt, requeued.failures, requeued.reason) == (number, number, reason)
        delays.append(requeued.not_before - at)
        assert world.leases == {}
        assert decision.receipt.status == ("ready" if number < limit else "deadletter")
        if number == limit:
            assert events_of(decision)[-1] == TaskTransitioned(
                "ready", "deadletter", f"{limit} attempts failed, the last: {reason}"
            )
    assert delays == [1_000 * 2**n for n in range(limit)]
    dead = world.tasks["T"]
    assert (dead.status, dead.failures, dead.not_before) == ("deadletter", limit, 0)
    assert world.code(ALICE, ClaimTask("T", "alice"), at) == "not_ready"


@proves("RETRY-DEADLETTER")
def test_task_leaving_deadletter_has_its_failures_reset() -> None:
    world = with_fields(World(task()), max_attempts=2)
    for _ in range(2):
        claim(world)
        world.do(ALICE, ReportOutcome("T", "failed", apply=True))
    world.do(HUMAN, MoveTask("T", "ready", "the cause is mended"))
    assert (world.tasks["T"].failures, world.tasks["T"].attempts) == (0, 2)
    claim(world)
    decision = world.do(ALICE, ReportOutcome("T", "failed", apply=True))
    assert decision.receipt.status == "ready"
    assert decision.receipt.attempt == 3, "attempts and tokens are never used twice"


@proves("RETRY-DEADLETTER")
def test_success_resets_failures_and_blocked_does_not() -> None:
    world = with_fields(held(), failures=3)
    world.do(ALICE, ReportOutcome("T", "blocked", blockers=("b1",), apply=True))
    assert world.tasks["T"].failures == 3
    world.do(HUMAN, MoveTask("T", "ready"))
    claim(world)
    world.do(ALICE, ReportOutcome("T", "partial", apply=True))
    assert world.tasks["T"].failures == 0


@proves("TASK-UNBLOCK")
def test_report_done_unblocks_dependents_only_when_task_is_done() -> None:
    for review_required in (True, False):
        world = with_fields(held(review_required=review_required), blocks=("U",))
        world.tasks["U"] = task("U")
        with_fields(world, "U", blocked_by=("T",), open_blockers=("T",))
        decision = world.do(ALICE, ReportOutcome("T", "done", apply=True))
        released = ("task:U", TaskUnblocked("T", "done")) in decision.events
        assert released is not review_required
        assert world.tasks["U"].open_blockers == (("T",) if review_required else ())


@proves("LIMIT-TEXT")
@pytest.mark.parametrize(
    ("report", "code"),
    [
        (ReportOutcome("T", "done", "x" * 65_536), ""),
        (ReportOutcome("T", "done", "x" * 65_537), "invalid_field"),
        (ReportOutcome("T", "done", "\ud800"), "invalid_field"),
        (ReportOutcome("T", "blocked"), "invalid_field"),
        (ReportOutcome("T", "blocked", "in its notes", (" ", "\t")), "invalid_field"),
        (ReportOutcome("T", "blocked", blockers=("b",) * 1_000), ""),
        (ReportOutcome("T", "blocked", blockers=("b",) * 1_001), "invalid_field"),
        (ReportOutcome("T", "blocked", blockers=("x" * 4_000,)), ""),
        (ReportOutcome("T", "blocked", blockers=("b", "x" * 4_001)), "invalid_field"),
        (ReportOutcome("T", "blocked", blockers=("b", "\udfff")), "invalid_field"),
        (ReportOutcome("T", "done", details={"deep": [{"\udc00": 1}]}), "invalid_field"),
    ],
    ids=range(11),
)
def test_report_fields_are_bounded(report: ReportOutcome, code: str) -> None:
    assert held().code(ALICE, report) == code


@proves("TASK-TABLE-AS-DATA")
def test_outcome_table_matches_expected_paths() -> None:
    assert {outcome: list(path) for outcome, path in OUTCOME_STATUSES.items()} == {
        outcome: EXPECTED_PATHS[outcome, False] for outcome in OUTCOMES
    }
