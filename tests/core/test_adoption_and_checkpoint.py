"""Adoption of a task with a claim, claims that renew a lease, and checkpoints."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReportOutcome
from dragoman.core.attempt_state import Checkpoint, TaskCheckpointed, TaskClaimed
from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.task_state import AdoptTask, MoveTask, TaskAliased, TaskCreated
from dragoman.core.task_state import TaskTransitioned as Moved
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TTL,
    World,
    events_of,
    held,
    lease,
    task,
)
from tests.requirements import proves

ADOPT = AdoptTask("bead", "ol-1", claim_for="alice", ttl_ms=TTL, session="s-1")


@proves("MAIL-ADOPT")
def test_adoption_with_claim_creates_and_claims_task() -> None:
    world = World()
    decision = world.do(ALICE, ADOPT)
    created, claimed = events_of(decision)
    assert isinstance(created, TaskCreated)
    assert (created.status, created.aliases) == ("ready", ("bead:ol-1",))
    assert claimed == TaskClaimed("ready", 1, 1, "alice", TTL, "s-1")
    assert decision.receipt.fence == 1
    assert decision.receipt.expires_at == NOW + TTL
    assert world.leases["ol-1"].session == "s-1"
    assert world.code(ALICE, ReportOutcome("bead:ol-1", "done", apply=True)) == ""


@proves("MAIL-ADOPT")
def test_adoption_of_held_task_only_adds_alias() -> None:
    world = held()
    decision = world.do(BOB, AdoptTask("bead", "T", claim_for="bob"))
    assert events_of(decision) == [TaskAliased("bead:T")]
    assert events_of(world.do(BOB, AdoptTask("bead", "T", claim_for="bob"))) == []
    assert world.tasks["T"].assignee == "alice"


@proves("MAIL-ADOPT", "REFUSAL-CODES")
@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (ALICE, replace(ADOPT, claim_for="bob"), "identity_mismatch"),
        (ALICE, replace(ADOPT, claim_for="a b"), "invalid_id"),
        (ALICE, replace(ADOPT, session="a b"), "invalid_id"),
        (ALICE, replace(ADOPT, ttl_ms=1), "invalid_field"),
        (ALICE, replace(ADOPT, name="a b"), "invalid_id"),
        (ALICE, replace(ADOPT, title="x" * 501), "invalid_field"),
        (OBSERVER, ADOPT, "not_authorized"),
        (HUMAN, ADOPT, ""),
    ],
)
def test_adoption_with_claim_refusals(actor: Actor, command: AdoptTask, code: str) -> None:
    world = World()
    assert world.code(actor, command) == code


@proves("MAIL-ADOPT")
def test_adoption_into_backlog_claims_nothing() -> None:
    world = World()
    world.do(ORCHESTRATOR, replace(ADOPT, claim_for="", ready=False))
    assert (world.tasks["ol-1"].status, world.leases) == ("backlog", {})


@proves("MAIL-ADOPT")
def test_adoption_with_claim_refuses_ambiguous_name() -> None:
    world = World(task("A"), task("B"))
    world.names["ol-1"] = {"A", "B"}
    assert world.code(ALICE, ADOPT) == "ambiguous_name"


@proves("MAIL-MEANING", "LEASE-HEARTBEAT")
def test_claim_or_renew_renews_only_valid_lease_of_holder() -> None:
    claim = ClaimTask("T", "alice", renew_if_held=True)
    world = held()
    decision = world.do(ALICE, claim, NOW + 5)
    assert (decision.events, decision.receipt.fence) == ((), 1)
    assert world.leases["T"].expires_at == NOW + 5 + TTL
    assert held().code(ALICE, ClaimTask("T", "alice")) == "already_claimed"
    assert held().code(BOB, ClaimTask("T", "bob", renew_if_held=True)) == "already_claimed"
    assert held().code(BOB, claim) == "identity_mismatch"
    second = World(task("T", attempts=1, agents=("alice",))).do(ALICE, claim)
    assert second.receipt.attempt == 2, "a dead lease is no lease"


@proves("MAIL-SPAWN")
def test_move_unless_in_progress_is_refused_while_task_is_held() -> None:
    move = MoveTask("T", "ready", "worker requested", unless_in_progress=True)
    answer = held().decide(ORCHESTRATOR, move)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.detail) == (
        "already_claimed",
        "T is held by alice",
    )
    assert World(task("T", "blocked")).code(ORCHESTRATOR, move) == ""
    assert World(task("T")).code(ORCHESTRATOR, move) == ""
    assert held().code(ORCHESTRATOR, replace(move, unless_in_progress=False)) == ""


CHECKPOINT = CheckpointTask("T", "CONTEXT_HIGH", "0a1b2c3", "half", "the other half", 1)


@proves("MAIL-CHECKPOINT")
def test_checkpoint_releases_task_with_notes_for_next_attempt() -> None:
    world = held()
    decision = world.do(ALICE, CHECKPOINT, NOW + 5)
    assert events_of(decision) == [
        TaskCheckpointed("CONTEXT_HIGH", "0a1b2c3", "half", "the other half"),
        Moved("in-progress", "ready", "checkpoint: CONTEXT_HIGH"),
    ]
    free = world.tasks["T"]
    assert free.checkpoint == Checkpoint(
        "CONTEXT_HIGH", "0a1b2c3", "half", "the other half", by="alice", at=NOW + 5
    )
    assert (free.status, free.assignee, free.failures, free.not_before) == ("ready", "", 0, 0)
    assert (free.reported, world.leases) == (None, {})
    world.do(BOB, ClaimTask("T", "bob"))
    assert world.tasks["T"].checkpoint == free.checkpoint
    assert world.code(ALICE, CHECKPOINT) == "lease_lost", "said again, it is too late"


@proves("MAIL-CHECKPOINT")
@pytest.mark.parametrize(
    ("outcome", "is_kept"), [("done", False), ("needs_review", False), ("failed", True)]
)
def test_checkpoint_is_cleared_by_finished_report(outcome: str, is_kept: bool) -> None:
    world = held()
    world.do(ALICE, CHECKPOINT)
    world.do(BOB, ClaimTask("T", "bob"))
    report = ReportOutcome("T", "done", apply=True)
    world.do(BOB, replace(report, outcome=outcome))
    assert (world.tasks["T"].checkpoint is not None) == is_kept


@proves("MAIL-CHECKPOINT", "LIMIT-TEXT")
@pytest.mark.parametrize(
    "fields",
    [
        {"reason": ""},
        {"reason": "x" * 4_001},
        {"commit": "x" * 4_001},
        {"description": "x" * 65_537},
        {"next_steps": "x" * 65_537},
    ],
    ids="".join,
)
def test_checkpoint_texts_are_bounded(fields: dict[str, str]) -> None:
    assert held().code(ALICE, replace(CHECKPOINT, **fields)) == "invalid_field"
    assert World(task()).code(HUMAN, replace(CHECKPOINT, fence=None, **fields)) == "invalid_field"


@proves("MAIL-CHECKPOINT", "REFUSAL-CODES")
def test_checkpoint_by_non_holder_is_refused() -> None:
    assert held().code(BOB, replace(CHECKPOINT, fence=None)) == "unauthorized_agent"
    assert held().code(ALICE, replace(CHECKPOINT, fence=2)) == "lease_lost"
    assert held(expires_at=NOW).code(ALICE, CHECKPOINT) == "lease_lost"
    assert held().code(ORCHESTRATOR, replace(CHECKPOINT, fence=None)) == "unauthorized_agent"
    assert World().code(ALICE, CHECKPOINT) == "task_not_found"
    ready = World(task("T"))
    assert ready.code(COORDINATOR, replace(CHECKPOINT, fence=None)) == "unassigned_task"


@proves("MAIL-CHECKPOINT", "MAIL-SPAWN")
@pytest.mark.parametrize("status", ["backlog", "ready", "blocked", "review", "deadletter"])
def test_orchestrator_sets_checkpoint_of_unheld_task(status: Status) -> None:
    world = World(task("T", status))
    decision = world.do(ORCHESTRATOR, CheckpointTask("T", "RESUME", "0a1b2c3"))
    assert events_of(decision) == [TaskCheckpointed("RESUME", "0a1b2c3", by=ORCHESTRATOR.name)]
    checkpoint = world.tasks["T"].checkpoint
    assert checkpoint is not None
    assert checkpoint.by == ORCHESTRATOR.name, "signed by who said so, not by the last holder"
    assert world.tasks["T"].status == status
    assert events_of(world.do(ORCHESTRATOR, CheckpointTask("T", "RESUME", "0a1b2c3"))) == []


@proves("MAIL-CHECKPOINT", "MAIL-SPAWN")
def test_checkpoint_fields_that_are_not_named_are_kept() -> None:
    world = held()
    world.do(ALICE, CHECKPOINT)
    assert events_of(world.do(HUMAN, CheckpointTask("T", "RESUME", "0a1b2c3"))) == []
    assert events_of(world.do(HUMAN, CheckpointTask("T", "RESUME"))) == []
    other = world.do(HUMAN, CheckpointTask("T", "RESUME", "ffff", next_steps="all of it"))
    assert events_of(other) == [TaskCheckpointed("RESUME", "ffff", "half", "all of it", HUMAN.name)]


@proves("MAIL-CHECKPOINT", "MAIL-SPAWN")
def test_checkpoint_with_anew_replaces_everything() -> None:
    world = held()
    world.do(ALICE, CHECKPOINT)
    restart = CheckpointTask("T", "RESTART", replaces_earlier=True)
    assert events_of(world.do(HUMAN, restart)) == [TaskCheckpointed("RESTART", by=HUMAN.name)]
    assert world.tasks["T"].checkpoint is None
    assert events_of(world.do(HUMAN, restart)) == []


@proves("MAIL-CHECKPOINT")
@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_checkpoint_of_final_task_is_refused(status: Status) -> None:
    world = World(task("T", status))
    assert world.code(ORCHESTRATOR, CheckpointTask("T", "RESUME", "ffff")) == "invalid_transition"


@proves("MAIL-CHECKPOINT", "RETRY-DEADLETTER")
@pytest.mark.parametrize(
    ("reason", "commit", "counts"),
    [
        ("CONTEXT_HIGH", "", True),
        ("TIMEOUT", "", True),
        ("CONTEXT_HIGH", "0a1b2c3", False),
        ("MANUAL", "", False),
    ],
)
def test_forced_checkpoint_without_commit_counts_as_failure(
    reason: str, commit: str, counts: bool
) -> None:
    world = held()
    world.tasks["T"] = replace(world.tasks["T"], max_attempts=2)
    given_up = CheckpointTask("T", reason, commit, "", "go on")
    world.do(ALICE, given_up)
    first = world.tasks["T"]
    assert (first.status, first.failures, first.not_before > NOW) == ("ready", counts, counts)
    assert first.checkpoint is not None
    assert first.checkpoint.next_steps == "go on"
    world.do(BOB, ClaimTask("T", "bob"), first.not_before)
    world.do(BOB, given_up, first.not_before)
    assert world.tasks["T"].status == ("deadletter" if counts else "ready")


@proves("MAIL-CHECKPOINT")
def test_checkpoint_ends_one_lease_and_one_attempt() -> None:
    world = World(task("T", "in-progress", "alice", attempts=3, agents=("alice",)))
    world.leases["T"] = lease("alice", 3)
    world.do(ALICE, replace(CHECKPOINT, fence=3))
    world.do(BOB, ClaimTask("T", "bob"))
    assert world.tasks["T"].attempts == 4
