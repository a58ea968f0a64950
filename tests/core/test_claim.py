"""Claims: who may claim which task, the order of refusals, and the attempt that begins."""

from typing import get_args

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord
from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.attempt_state import Lease, TaskClaimed
from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.read import LeaseChange, Receipt
from dragoman.core.task_state import CLAIMABLE_STATUSES, MoveTask
from dragoman.core.timestamps import TIMESTAMP_RANGE
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
    held,
    lease,
    reclaimed,
    task,
    with_fields,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)


@proves("ATTEMPT-NUMBERED", "LEASE-FENCE", "LEASE-HEARTBEAT")
def test_claim_creates_attempt_fence_lease_and_first_heartbeat() -> None:
    decision = World(task()).decide(ALICE, ClaimTask("T", "alice", "tmux:1", 60_000))
    assert not isinstance(decision, Refusal)
    assert decision.receipt == Receipt("T", "in-progress", 1, 1, NOW + 60_000)
    assert decision.events == (("task:T", TaskClaimed("ready", 1, 1, "alice", 60_000, "tmux:1")),)
    first_beat = Lease("alice", 1, 60_000, NOW, NOW + 60_000, "tmux:1", 1, NOW, NOW)
    assert decision.lease == LeaseChange("T", first_beat)


@proves("ROLE-TABLE")
@pytest.mark.parametrize("by", [HUMAN, HUB, ORCHESTRATOR, Actor("agent", "otto")])
def test_claim_for_observer_is_refused(by: Actor) -> None:
    world = World(task())
    world.agents["otto"] = AgentRecord("otto", "observer", (), NOW)
    refused = world.decide(by, ClaimTask("T", "otto"))
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == (
        "not_authorized",
        "otto is registered as observer, which may only read",
    )


@proves("ROLE-TABLE")
@pytest.mark.parametrize("by", [HUMAN, ORCHESTRATOR, Actor("agent", "hub")])
def test_claim_under_hub_name_is_refused(by: Actor) -> None:
    refused = World(task()).decide(by, ClaimTask("T", "hub"))
    assert refused == Refusal("not_authorized", "the name hub is the hub's own: choose another")


@proves("ATTEMPT-NUMBERED")
def test_claim_makes_agent_the_owner() -> None:
    world = World(task())
    claim(world)
    claimed = world.tasks["T"]
    assert (claimed.status, claimed.assignee, claimed.attempts) == ("in-progress", "alice", 1)
    assert claimed.agents == ("alice",)


@proves("LEASE-FENCE", "ATTEMPT-NUMBERED")
def test_attempt_and_fence_increase_with_each_claim() -> None:
    world = World(task())
    releases = (
        ReleaseTask("T"),
        MoveTask("T", "ready"),
        ReportOutcome("T", "failed", apply=True),
        MoveTask("T", "review"),
        ReportOutcome("T", "needs_review", apply=True),
    )
    seen: list[tuple[int, int]] = []
    for number, release in enumerate(releases, 1):
        receipt = claim(world).receipt
        seen.append((receipt.attempt, receipt.fence))
        assert world.leases["T"].fence == receipt.fence
        world.do(ALICE, release)
        assert world.tasks["T"].attempts == number
    assert seen == [(n, n) for n in range(1, 6)]
    assert world.tasks["T"].agents == ("alice",), "each agent is remembered once"


@proves("TASK-CLAIM-ONLY", "TASK-LIFECYCLE")
@pytest.mark.parametrize("status", STATUSES)
def test_claim_needs_ready_task_or_own_task_in_review(status: Status) -> None:
    world = World(task("T", status, "alice", attempts=1, agents=("alice",)))
    if status == "in-progress":
        world.leases["T"] = lease()
    code = {"ready": "", "review": "", "in-progress": "already_claimed"}.get(status, "not_ready")
    assert world.code(ALICE, ClaimTask("T", "alice")) == code
    assert set(CLAIMABLE_STATUSES) == {"ready", "review"}


@proves("ATTEMPT-NUMBERED")
def test_rework_is_for_the_owner_and_clears_the_old_report() -> None:
    world = held()
    world.do(ALICE, ReportOutcome("T", "done", "first try", apply=True))
    assert world.code(BOB, ClaimTask("T", "bob")) == "unauthorized_agent"
    claim(world)
    reclaimed_task = world.tasks["T"]
    assert (reclaimed_task.status, reclaimed_task.attempts, reclaimed_task.fence) == (
        "in-progress",
        2,
        2,
    )
    assert reclaimed_task.reported is None


@proves("ATTEMPT-NUMBERED")
def test_rework_is_for_the_owner_despite_another_reservation() -> None:
    world = World(replace(task("T", "review", "bob"), reserved_for="alice"))
    assert world.code(ALICE, ClaimTask("T", "alice")) == "unauthorized_agent"


@proves("ROLE-TABLE", "REFUSAL-CODES")
@pytest.mark.parametrize(
    ("actor", "code"),
    [
        (ALICE, ""),
        (BOB, "identity_mismatch"),
        (HUMAN, ""),
        (ORCHESTRATOR, ""),
        (HUB, ""),
        (COORDINATOR, "not_authorized"),
        (OBSERVER, "not_authorized"),
        (FILE, "not_authorized"),
    ],
)
def test_claim_for_another_agent_depends_on_role(actor: Actor, code: str) -> None:
    assert World(task()).code(actor, ClaimTask("T", "alice")) == code
    assert World(task()).code(actor, ClaimTask("", "alice")) == code


@proves("REFUSAL-CODES", "TASK-UNBLOCK", "LIMIT-TEXT", "NAME-GRAMMAR")
def test_claim_refusals_come_in_a_fixed_order() -> None:
    """All faults at once; each is fixed in turn and uncovers the next."""
    blocked = replace(task("T", "review", "carol"), reserved_for="carol", open_blockers=("U",))
    world = World(blocked, leases=[("T", lease("carol", 3))])
    command = ClaimTask("nowhere", "b\nob", "se ssion", 1)
    codes: list[str] = []

    def try_claim(claim_command: ClaimTask) -> ClaimTask:
        codes.append(world.code(ALICE if len(codes) < 2 else BOB, claim_command))
        return claim_command

    command = try_claim(command)
    command = try_claim(replace(command, agent="bob"))
    command = try_claim(command)
    command = try_claim(replace(command, session="s1"))
    command = try_claim(replace(command, ttl_ms=TTL))
    command = try_claim(replace(command, task="T"))
    del world.leases["T"]
    command = try_claim(command)
    with_fields(world, status="backlog")
    command = try_claim(command)
    with_fields(world, status="ready")
    command = try_claim(command)
    with_fields(world, reserved_for="bob")
    command = try_claim(command)
    with_fields(world, open_blockers=())
    try_claim(command)
    assert codes == [
        "invalid_id",  # the agent's name
        "identity_mismatch",  # alice claims for bob
        "invalid_id",  # the session
        "invalid_field",  # the time to live
        "task_not_found",
        "already_claimed",
        "unauthorized_agent",  # in review, and not bob's
        "not_ready",
        "reserved_for_other",
        "blocked_by_dependency",
        "",
    ]


@proves("LIMIT-TEXT")
@pytest.mark.parametrize(
    ("ttl_ms", "code"),
    [
        (-1, "invalid_field"),
        (0, "invalid_field"),
        (999, "invalid_field"),
        (1_000, ""),
        (1_001, ""),
        (604_799_999, ""),
        (604_800_000, ""),
        (604_800_001, "invalid_field"),
    ],
)
def test_lease_is_limited_to_one_second_through_one_week(ttl_ms: int, code: str) -> None:
    assert World(task()).code(ALICE, ClaimTask("T", "alice", ttl_ms=ttl_ms)) == code


@proves("LEASE-FENCE", "REFUSAL-CODES")
def test_refused_claim_names_holder_and_end_of_lease() -> None:
    valid = held().decide(BOB, ClaimTask("T", "bob"))
    expired = held(expires_at=NOW).decide(BOB, ClaimTask("T", "bob"))
    own = held().decide(ALICE, ClaimTask("T", "alice"))
    assert isinstance(valid, Refusal)
    assert isinstance(expired, Refusal)
    assert isinstance(own, Refusal)
    assert {valid.code, expired.code, own.code} == {"already_claimed"}
    assert valid.detail == "alice holds T (attempt 1) until 2026-02-09T14:35:00.000Z"
    assert "ended at 2026-02-09T14:30:00.000Z and awaits recovery" in expired.detail


@proves("TASK-READY", "RETRY-BACKOFF")
def test_queue_skips_reserved_blocked_and_not_yet_due_tasks() -> None:
    world = World(
        replace(task("A"), reserved_for="bob"),
        replace(task("B"), open_blockers=("A",)),
        replace(task("C"), not_before=NOW + 1),
        task("D", "backlog"),
        task("E"),
    )
    assert world.do(ALICE, ClaimTask("", "alice")).receipt.task == "E"
    assert world.code(ALICE, ClaimTask("", "alice")) == "nothing_ready"
    assert world.do(ALICE, ClaimTask("", "alice"), NOW + 1).receipt.task == "C"
    assert world.do(BOB, ClaimTask("", "bob")).receipt.task == "A"


@proves("RETRY-BACKOFF")
def test_claim_by_name_ignores_backoff() -> None:
    """Only the queue waits for the backoff; a claim by name is a deliberate decision."""
    world = World(replace(task(), not_before=NOW + 60_000, failures=2))
    claim(world)
    assert world.tasks["T"].not_before == 0
    assert world.tasks["T"].failures == 2


@proves("TASK-READY")
def test_reserved_task_stays_reserved_after_release() -> None:
    world = World(replace(task(), reserved_for="bob", assignee="bob"))
    assert world.code(ALICE, ClaimTask("T", "alice")) == "reserved_for_other"
    claim(world, BOB)
    world.do(BOB, ReleaseTask("T"))
    assert world.tasks["T"].assignee == "bob"
    assert world.code(ALICE, ClaimTask("T", "alice")) == "reserved_for_other"


@proves("LEASE-FENCE")
def test_former_holder_can_claim_again_after_release() -> None:
    world = reclaimed()
    world.do(BOB, ReleaseTask("T"))
    assert claim(world).receipt.fence == 3


@proves("TIME-IN-CALENDAR")
def test_lease_ends_with_year_9999_at_the_latest() -> None:
    world, last = World(task()), TIMESTAMP_RANGE[1]
    claim(world, now=last - 1)
    assert world.leases["T"].expires_at == last


@proves("TIME-IN-CALENDAR")
def test_heartbeat_and_backoff_are_capped_at_year_9999() -> None:
    world, last = World(task()), TIMESTAMP_RANGE[1]
    claim(world, now=last - TTL)
    world.do(ALICE, RenewLease("T"), last - 1)
    assert world.leases["T"].expires_at == last
    world.do(ALICE, ReportOutcome("T", "failed", apply=True), last - 1)
    assert world.tasks["T"].not_before == last


@proves("LEASE-HEARTBEAT")
def test_refused_lease_length_is_shown_in_readable_units() -> None:
    refusal = World(task()).decide(ALICE, ClaimTask("T", "alice", ttl_ms=500))
    assert isinstance(refusal, Refusal)
    assert refusal.detail == "the lease is 500ms long; it must be from 1s to 7d"


@proves("CLAIM-QUEUES")
def test_dispatcher_may_choose_queues() -> None:
    pooled = replace(task("P"), reserved_for="backend", assignee="backend")
    world = World(pooled, replace(task("A"), reserved_for="alice"), task("F"))
    chosen = ClaimTask("", "alice", queues=("backend",))
    assert world.do(HUB, chosen).receipt.task == "P"
    assert world.tasks["P"].assignee == "alice"
    assert world.code(HUB, chosen) == "nothing_ready"
    assert world.do(HUB, ClaimTask("", "alice", queues=("backend", "alice"))).receipt.task == "A"
    # Back in its queue, it can be claimed by any agent of the pool.
    world.do(ALICE, ReleaseTask("P"))
    assert (world.tasks["P"].assignee, world.tasks["P"].reserved_for) == ("backend", "backend")
    assert world.code(HUB, ClaimTask("P", "bob")) == "reserved_for_other"
    assert world.do(HUB, ClaimTask("P", "bob", queues=("backend",))).receipt.task == "P"


@proves("CLAIM-QUEUES")
def test_agent_may_not_choose_queues() -> None:
    world = World(replace(task("P"), reserved_for="backend"))
    assert world.code(ALICE, ClaimTask("", "alice", queues=("backend",))) == "not_authorized"
    assert world.code(HUB, ClaimTask("", "alice", queues=("not a name",))) == "invalid_id"
    assert world.code(HUB, ClaimTask("", "alice", queues=("q",) * 65)) == "invalid_field"
