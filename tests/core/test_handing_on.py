"""Adoption into the hands of who works already, claims that go on, and checkpoints."""

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AdoptTask,
    CheckpointTask,
    ClaimTask,
    MoveTask,
    ReportOutcome,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import Status, TaskAliased, TaskCheckpointed, TaskClaimed, TaskCreated
from dragoman.core.events import TaskTransitioned as Moved
from dragoman.core.states.task import Checkpoint
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
def test_what_is_new_here_begins_in_the_hands_of_its_worker() -> None:
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
def test_what_is_known_stays_in_whose_hands_it_is() -> None:
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
def test_only_for_oneself_unless_one_runs_the_show(
    actor: Actor, command: AdoptTask, code: str
) -> None:
    world = World()
    assert world.code(actor, command) == code


@proves("MAIL-ADOPT")
def test_what_waits_in_the_backlog_is_in_nobodys_hands() -> None:
    world = World()
    world.do(ORCHESTRATOR, replace(ADOPT, claim_for="", ready=False))
    assert (world.tasks["ol-1"].status, world.leases) == ("backlog", {})


@proves("MAIL-ADOPT")
def test_a_name_of_several_tasks_is_no_new_task() -> None:
    world = World(task("A"), task("B"))
    world.names["ol-1"] = {"A", "B"}
    assert world.code(ALICE, ADOPT) == "ambiguous_name"


@proves("MAIL-MEANING", "LEASE-HEARTBEAT")
def test_a_claim_that_may_go_on_does_so_only_for_the_living_holder() -> None:
    claim = ClaimTask("T", "alice", or_renew=True)
    world = held()
    decision = world.do(ALICE, claim, NOW + 5)
    assert (decision.events, decision.receipt.fence) == ((), 1)
    assert world.leases["T"].expires_at == NOW + 5 + TTL
    assert held().code(ALICE, ClaimTask("T", "alice")) == "already_claimed"
    assert held().code(BOB, ClaimTask("T", "bob", or_renew=True)) == "already_claimed"
    assert held().code(BOB, claim) == "identity_mismatch"
    again = World(task("T", attempts=1, agents=("alice",))).do(ALICE, claim)
    assert again.receipt.attempt == 2, "a dead lease is no lease"


@proves("MAIL-SPAWN")
def test_a_task_that_is_to_be_moved_only_at_rest_is_left_to_who_works_on_it() -> None:
    move = MoveTask("T", "ready", "worker requested", if_at_rest=True)
    answer = held().ask(ORCHESTRATOR, move)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.detail) == (
        "already_claimed",
        "alice works on T: it is left to it",
    )
    assert World(task("T", "blocked")).code(ORCHESTRATOR, move) == ""
    assert World(task("T")).code(ORCHESTRATOR, move) == ""
    assert held().code(ORCHESTRATOR, replace(move, if_at_rest=False)) == ""


LEFT = CheckpointTask("T", "CONTEXT_HIGH", "0a1b2c3", "half", "the other half", 1)


@proves("MAIL-CHECKPOINT")
def test_the_holder_gives_it_back_with_word_for_its_successor() -> None:
    world = held()
    decision = world.do(ALICE, LEFT, NOW + 5)
    assert events_of(decision) == [
        TaskCheckpointed("CONTEXT_HIGH", "0a1b2c3", "half", "the other half"),
        Moved("in-progress", "ready", "checkpoint: CONTEXT_HIGH"),
    ]
    free = world.tasks["T"]
    assert free.checkpoint == Checkpoint(
        "alice", NOW + 5, "CONTEXT_HIGH", "0a1b2c3", "half", "the other half"
    )
    assert (free.status, free.assignee, free.failures, free.not_before) == ("ready", "", 0, 0)
    assert (free.reported, world.leases) == (None, {})
    world.do(BOB, ClaimTask("T", "bob"))
    assert world.tasks["T"].checkpoint == free.checkpoint
    assert world.code(ALICE, LEFT) == "lease_lost", "said again, it is too late"


@proves("MAIL-CHECKPOINT")
@pytest.mark.parametrize(
    ("outcome", "stays"), [("done", False), ("needs_review", False), ("failed", True)]
)
def test_it_lasts_until_the_work_is_handed_in(outcome: str, stays: bool) -> None:
    world = held()
    world.do(ALICE, LEFT)
    world.do(BOB, ClaimTask("T", "bob"))
    report = ReportOutcome("T", "done", apply=True)
    world.do(BOB, replace(report, outcome=outcome))
    assert (world.tasks["T"].checkpoint is not None) == stays


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
def test_its_limits(fields: dict[str, str]) -> None:
    assert held().code(ALICE, replace(LEFT, **fields)) == "invalid_field"
    assert World(task()).code(HUMAN, replace(LEFT, fence=None, **fields)) == "invalid_field"


@proves("MAIL-CHECKPOINT", "REFUSAL-CODES")
def test_who_does_not_hold_it_gives_nothing_back() -> None:
    assert held().code(BOB, replace(LEFT, fence=None)) == "unauthorized_agent"
    assert held().code(ALICE, replace(LEFT, fence=2)) == "lease_lost"
    assert held(expires_at=NOW).code(ALICE, LEFT) == "lease_lost"
    assert held().code(ORCHESTRATOR, replace(LEFT, fence=None)) == "unauthorized_agent"
    assert World().code(ALICE, LEFT) == "task_not_found"
    ready = World(task("T"))
    assert ready.code(COORDINATOR, replace(LEFT, fence=None)) == "unassigned_task"


@proves("MAIL-CHECKPOINT", "MAIL-SPAWN")
@pytest.mark.parametrize("status", ["backlog", "ready", "blocked", "review", "deadletter"])
def test_while_nobody_works_on_it_who_runs_the_show_says_where_to_go_on(status: Status) -> None:
    world = World(task("T", status))
    decision = world.do(ORCHESTRATOR, CheckpointTask("T", "RESUME", "0a1b2c3"))
    assert events_of(decision) == [TaskCheckpointed("RESUME", "0a1b2c3", by=ORCHESTRATOR.name)]
    left = world.tasks["T"].checkpoint
    assert left is not None
    assert left.by == ORCHESTRATOR.name, "signed by who said so, not by the last holder"
    assert world.tasks["T"].status == status
    assert events_of(world.do(ORCHESTRATOR, CheckpointTask("T", "RESUME", "0a1b2c3"))) == []


@proves("MAIL-CHECKPOINT", "MAIL-SPAWN")
def test_what_is_not_said_anew_stays_as_it_was_left() -> None:
    world = held()
    world.do(ALICE, LEFT)
    assert events_of(world.do(HUMAN, CheckpointTask("T", "RESUME", "0a1b2c3"))) == []
    assert events_of(world.do(HUMAN, CheckpointTask("T", "RESUME"))) == []
    other = world.do(HUMAN, CheckpointTask("T", "RESUME", "ffff", next_steps="all of it"))
    assert events_of(other) == [TaskCheckpointed("RESUME", "ffff", "half", "all of it", HUMAN.name)]


@proves("MAIL-CHECKPOINT", "MAIL-SPAWN")
def test_what_is_said_anew_takes_the_place_of_all_that_was_left() -> None:
    world = held()
    world.do(ALICE, LEFT)
    restart = CheckpointTask("T", "RESTART", anew=True)
    assert events_of(world.do(HUMAN, restart)) == [TaskCheckpointed("RESTART", by=HUMAN.name)]
    assert world.tasks["T"].checkpoint is None
    assert events_of(world.do(HUMAN, restart)) == []


@proves("MAIL-CHECKPOINT")
@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_nobody_goes_on_with_what_has_ended(status: Status) -> None:
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
def test_one_that_was_forced_and_reached_nothing_counts_as_an_attempt(
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
def test_one_lease_and_one_attempt_end_with_it() -> None:
    world = World(task("T", "in-progress", "alice", attempts=3, agents=("alice",)))
    world.leases["T"] = lease("alice", 3)
    world.do(ALICE, replace(LEFT, fence=3))
    world.do(BOB, ClaimTask("T", "bob"))
    assert world.tasks["T"].attempts == 4
