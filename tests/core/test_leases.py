"""Leases: valid to the millisecond, renewed by commands of the holder, fenced, lost for good."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.agent import (
    DescribeAgent,
    IssueToken,
    PauseAgent,
    RegisterAgent,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
)
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    FlagAttempt,
    LimitAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.attempt_state import Lease, TaskReported, TaskRequeued, grant_lease, renew_lease
from dragoman.core.authority import MAY_HOLD
from dragoman.core.base import Command, Role, Status
from dragoman.core.check_state import RecordChecks
from dragoman.core.deciders import DECIDERS, renewal_by_activity
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import HandoffCommand, ProposeHandoff
from dragoman.core.intent.state import (
    CancelIntent,
    DelegateIntent,
    ExpireRequest,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.presence import ReportPresence
from dragoman.core.question_state import AnswerQuestion, AskQuestion, WithdrawQuestion
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    SendBackTask,
    Task,
    UnlinkTask,
    UpdateTask,
    WarnTask,
)
from dragoman.core.trace import (
    EscalateEntropy,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
)
from dragoman.core.wave import AdvanceWave, StartWave
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TTL,
    World,
    WorldRead,
    held,
    lease,
    reclaimed,
    task,
    with_fields,
)
from tests.requirements import proves

KEEPING_COMMANDS: tuple[Command, ...] = (
    RenewLease("T"),
    MoveTask("T", "in-progress"),
    ReportOutcome("T", "done"),
    EndAttempt("T"),
    NoteTask("T", "still at it"),
    AliasTask("T", "bead:ol-1"),
    LinkTask("T", "blocked-by", "U"),
    WarnTask("T", "missing_summary"),
    UpdateTask("T", progress="half way"),
    UpdateTask("T", "in-progress"),
    UpdateTask("T", "done", notes="there is no way there from here"),
    EditTask("T", "a better title"),
    RequestDelegation("U", "T", "bob", NOW),
    AskQuestion("T", "Which port?"),
    ClaimTask("T", "alice", renew_if_held=True),
    PostMail(("bob",), "lunch?", "", bead="T"),
)
"""Commands of a holder that do not end its attempt."""

WRITE_COMMANDS: tuple[Command, ...] = (
    RenewLease("T"),
    RenewLease("T", 1),
    MoveTask("T", "review"),
    MoveTask("T", "blocked", fence=1),
    MoveTask("T", "ready", fence=1),
    ReleaseTask("T"),
    ReleaseTask("T", fence=1),
    LimitAttempt("T"),
    LimitAttempt("T", fence=1),
    CheckpointTask("T", "MANUAL"),
    CheckpointTask("T", "MANUAL", fence=1),
    ReportOutcome("T", "done"),
    ReportOutcome("T", "failed", fence=1),
    ReportOutcome("T", "done", apply=True),
    ReportOutcome("T", "blocked", blockers=("no key",), fence=1, apply=True),
    EndAttempt("T"),
    NoteTask("T", "I am back"),
    AliasTask("T", "bead:ol-1"),
    LinkTask("T", "parent", "U"),
    UnlinkTask("T", "U"),
    UpdateTask("T", progress="I am back"),
    UpdateTask("T", "blocked", notes="I am back", fence=1),
    EditTask("T", "I am back"),
    EditTask("T", body="I am back", fence=1),
    RequestDelegation("U", "T", "bob", NOW),
    AskQuestion("T", "Which port?"),
    AskQuestion("T", "Which port?", fence=1),
    WithdrawQuestion("T", "q1"),
)
"""Write commands of a former holder, with its old fence and without."""


@proves("LEASE-LOST")
def test_cases_cover_every_task_command() -> None:
    others = {CreateTask, AdoptTask, ClaimTask, RegisterAgent, RejectMessage}
    others |= {ExpireLease, FlagAttempt, ReportPresence}
    # A warning belongs to a message that is judged itself; the others are not for a holder.
    others |= {WarnTask, AcceptDelegation, RejectDelegation, EscalateDelegation}
    # An answer, what a reviewer sends back, and results of checks are never the holder's.
    others |= {AnswerQuestion, SendBackTask, RecordChecks}
    others |= {SetAgentKey, IssueToken, RevokeToken, PauseAgent, ResumeAgent, RewindTask}
    # Letters, waves and reservations are not about a task alone.
    others |= {PostMail, ReadMail, AckMail, AnswerMail, EscalateMail}
    others |= {StartWave, AdvanceWave, ReserveFiles, ReleaseReservations}
    # Handoffs and the work queue are for owners and recipients, and have tests of their own.
    others |= {ProposeHandoff}
    others |= {AddWorkItem, ClaimWorkItem, ReleaseWorkItem}
    others |= {c for c in tuple(DECIDERS) if issubclass(c, HandoffCommand)}
    # Intents have rules of their own: see test_intent_delegate and test_intent_results.
    others |= {DescribeAgent, DelegateIntent, ReceiveResult, UpdateIntent, ExpireRequest}
    others |= {CancelIntent}
    # Turns and traces may be recorded about any task, whoever holds it.
    others |= {RecordTurn, RecordTrace, RequestTransition, EscalateEntropy, SettleEntropy}
    assert {type(command) for command in WRITE_COMMANDS} | others == set(DECIDERS)


@proves("LEASE-HEARTBEAT")
@pytest.mark.parametrize(("late", "code"), [(-1, ""), (0, "lease_lost"), (1, "lease_lost")])
def test_lease_ends_at_its_millisecond(late: int, code: str) -> None:
    at = NOW + TTL + late
    assert held().code(ALICE, RenewLease("T"), at) == code
    assert held().code(ALICE, RenewLease("T", 1), at) == code
    assert held().code(ALICE, ReportOutcome("T", "done"), at) == code
    assert lease().is_valid(at) == (code == "")


@proves("LEASE-HEARTBEAT", "LEASE-OFF-LEDGER")
def test_heartbeat_extends_lease_without_an_entry() -> None:
    decision = held().do(ALICE, RenewLease("T", 1), NOW + 7)
    assert decision.events == ()
    assert decision.receipt.expires_at == NOW + 7 + TTL
    assert decision.lease is not None
    renewed = Lease("alice", 1, TTL, NOW + 7, NOW + 7 + TTL, "", 2, NOW, NOW)
    assert decision.lease.lease == renewed


@proves("LEASE-HEARTBEAT")
@pytest.mark.parametrize("command", KEEPING_COMMANDS, ids=lambda word: type(word).__name__)
def test_accepted_command_of_holder_renews_lease(command: Command) -> None:
    world = held()
    world.tasks["U"] = task("U")
    world.do(ALICE, command, NOW + 1_234)
    assert world.leases["T"].expires_at == NOW + 1_234 + TTL
    assert world.leases["T"].heartbeats == 2


@proves("LEASE-HEARTBEAT")
@pytest.mark.parametrize("command", KEEPING_COMMANDS[4:8], ids=lambda word: type(word).__name__)
@pytest.mark.parametrize("actor", [HUMAN, ORCHESTRATOR, BOB], ids=lambda actor: actor.role)
def test_command_of_another_actor_does_not_renew_lease(command: Command, actor: Actor) -> None:
    world = held()
    world.tasks["U"] = task("U")
    before = world.leases["T"]
    world.do(actor, command, NOW + 9)
    assert world.leases["T"] == before


@proves("LEASE-HEARTBEAT")
def test_command_about_another_task_does_not_renew_lease() -> None:
    world = held()
    world.tasks["U"] = task("U")
    before = world.leases["T"]
    world.do(ALICE, NoteTask("U", "elsewhere"), NOW + 9)
    world.do(ALICE, LinkTask("U", "discovered-from", "T"), NOW + 9)
    world.do(ALICE, CreateTask("a child", parent="T"), NOW + 9)
    world.do(ALICE, ClaimTask("", "alice"), NOW + 9)
    assert world.leases["T"] == before


@proves("LEASE-HEARTBEAT")
def test_refused_command_does_not_renew_lease() -> None:
    assert isinstance(held().decide(ALICE, NoteTask("T", " ")), Refusal)
    assert isinstance(held().decide(ALICE, ReportOutcome("T", "done", fence=2)), Refusal)


@proves("LEASE-HEARTBEAT")
def test_command_about_unknown_task_renews_no_lease() -> None:
    read = WorldRead(ALICE, held())
    assert renewal_by_activity(NoteTask("nowhere", "x"), read, NOW) is None
    assert renewal_by_activity(NoteTask("T", "x"), read, NOW) is not None


@proves("LEASE-FENCE", "REFUSAL-CODES")
def test_fence_counts_beside_the_agent_name() -> None:
    """One agent in two processes: the fence of the older one is refused despite the right name."""
    world = with_fields(held(), attempts=2, fence=2)
    world.leases["T"] = lease("alice", 2)
    for command in (
        RenewLease("T", 1),
        ReleaseTask("T", fence=1),
        ReportOutcome("T", "done", fence=1),
    ):
        answer = world.decide(ALICE, command)
        assert isinstance(answer, Refusal)
        assert answer.code == "lease_lost"
        assert "held by alice under fence 2" in answer.detail
    assert world.code(ALICE, RenewLease("T", 2)) == ""
    assert world.code(ALICE, RenewLease("T", 3)) == "lease_lost", "a token of the future too"


def is_already_true(command: Command, status: Status) -> bool:
    """Expected answer to: is the task where this command would take it?"""
    if isinstance(command, MoveTask):
        return command.to == status
    ended = {"done": ("review", "done"), "blocked": ("blocked", "done"), "failed": ("done",)}
    return isinstance(command, ReportOutcome) and status in ended[command.outcome]


@proves("LEASE-LOST", "LEASE-FENCE", "REPORT-REPEAT")
@pytest.mark.parametrize("command", WRITE_COMMANDS, ids=repr)
@pytest.mark.parametrize(
    "since",
    ["run out", "ready again", "reclaimed", "resting", "review", "done", "deadletter", "cancelled"],
)
def test_former_holder_gets_lease_lost_for_every_write(command: Command, since: str) -> None:
    worlds = {
        "run out": held(expires_at=NOW),
        "ready again": World(task("T", attempts=1, agents=("alice",))),
        "reclaimed": reclaimed(),
        "resting": with_fields(World(task("T", attempts=1, agents=("alice",))), not_before=NOW + 9),
        "review": World(task("T", "review", "bob", attempts=2, agents=("alice", "bob"))),
        "done": World(task("T", "done", "bob", attempts=2, agents=("alice", "bob"))),
        "deadletter": World(task("T", "deadletter", attempts=5, agents=("alice",))),
        "cancelled": World(task("T", "cancelled", attempts=1, agents=("alice",))),
    }
    world = worlds[since]
    world.tasks["U"] = task("U")
    found = world.tasks["T"]
    # A command that is already true is a no-op, unless it names an old fence.
    fence = getattr(command, "fence", None)
    is_repeat = is_already_true(command, found.status) and fence in (None, found.fence)
    assert world.code(ALICE, command) == ("" if is_repeat else "lease_lost")


FENCED_COMMANDS: tuple[Command, ...] = (
    RenewLease("T", 1),
    MoveTask("T", "blocked", fence=1),
    MoveTask("T", "cancelled", fence=1),
    ReleaseTask("T", fence=1),
    CheckpointTask("T", "MANUAL", fence=1),
    ReportOutcome("T", "failed", fence=1),
    EndAttempt("T", fence=1),
    NoteTask("T", "I am back", 1),
    AliasTask("T", "bead:ol-1", 1),
    LinkTask("T", "parent", "U", 1),
    LinkTask("T", "discovered-from", "U", 1),
    UpdateTask("T", progress="I am back", fence=1),
    UpdateTask("T", "in-progress", fence=1),
    UpdateTask("T", "blocked", fence=1),
    EditTask("T", "I am back", fence=1),
)
"""Every command that can name a fence, with one."""

PRIVILEGED = pytest.mark.parametrize(
    "actor", [HUMAN, ORCHESTRATOR, COORDINATOR], ids=lambda actor: actor.role
)


@proves("LEASE-LOST", "LEASE-FENCE")
@PRIVILEGED
@pytest.mark.parametrize("command", FENCED_COMMANDS, ids=repr)
@pytest.mark.parametrize("since", ["run out", "ready again", "reclaimed", "review"])
def test_named_fence_is_enforced_for_privileged_roles(
    command: Command, since: str, actor: Actor
) -> None:
    """A privileged role that names a fence may have worked under it, and lost it."""
    agents = (actor.name, "bob")
    worlds = {
        "run out": held(expires_at=NOW),
        "ready again": World(task("T", attempts=1, agents=agents)),
        "reclaimed": reclaimed(),
        "review": World(task("T", "review", "bob", attempts=2, agents=agents)),
    }
    world = with_fields(worlds[since], discovered_from="U")
    world.tasks["U"] = task("U")
    assert world.code(actor, command) == "lease_lost"


@proves("LEASE-FENCE", "ROLE-TABLE")
@PRIVILEGED
def test_current_fence_is_accepted_from_privileged_roles(actor: Actor) -> None:
    unfenced = (MoveTask, NoteTask, AliasTask, LinkTask, UpdateTask, EditTask)
    for command in FENCED_COMMANDS:
        world = held()
        world.tasks["U"] = task("U")
        may_end = isinstance(command, EndAttempt) and actor is not COORDINATOR
        code = "" if isinstance(command, unfenced) or may_end else "unauthorized_agent"
        assert world.code(actor, command) == code, command


@proves("LEASE-FENCE", "ROLE-HOLDER")
@pytest.mark.parametrize("actor", [HUMAN, ORCHESTRATOR, COORDINATOR, BOB], ids=repr)
@pytest.mark.parametrize(
    "command", [RenewLease("T"), ReleaseTask("T"), ReportOutcome("T", "done")], ids=repr
)
def test_fence_of_another_attempt_gives_no_ownership(command: Command, actor: Actor) -> None:
    for fenced in (command, replace(command, fence=1)):
        assert held().decide(actor, fenced) == Refusal(
            "unauthorized_agent", f"T belongs to alice, not to {actor.name}"
        )
    assert held().code(actor, replace(command, fence=2)) == "lease_lost"


@proves("ROLE-TABLE", "LEASE-FENCE")
@pytest.mark.parametrize("fence", [None, 1, 2])
def test_observer_is_not_authorized_whatever_fence_it_names(fence: int | None) -> None:
    for command in (MoveTask("T", "blocked", fence=fence), EditTask("T", "Mine", fence=fence)):
        assert held().code(OBSERVER, command) == "not_authorized"


@proves("LEASE-FENCE")
def test_refusal_suggests_omitting_fence_to_privileged_roles() -> None:
    answer = reclaimed().decide(HUMAN, NoteTask("T", "mine", 1))
    assert isinstance(answer, Refusal)
    assert answer.detail == (
        "T is held by bob under fence 2: stop working on it; name no fence unless you work on it"
    )
    over = World(task("T", "review", "bob", attempts=2, agents=("bob",)))
    assert over.code(HUMAN, MoveTask("T", "review", fence=2)) == "", "a repeat under the newest"
    assert over.code(HUMAN, MoveTask("T", "review", fence=1)) == "lease_lost"


@proves("LEASE-LOST")
def test_lease_lost_detail_describes_current_state_of_task() -> None:
    def detail_in(world: World) -> str:
        answer = world.decide(ALICE, RenewLease("T"))
        assert isinstance(answer, Refusal)
        return answer.detail

    assert detail_in(held(expires_at=NOW)) == (
        "the lease on T (fence 1) ended at 2026-02-09T14:30:00.000Z: stop working on it"
    )
    assert detail_in(reclaimed()) == "T is held by bob under fence 2: stop working on it"
    for status in get_args(Status):
        if status != "in-progress":
            assert detail_in(World(task("T", status, "bob", agents=("alice",)))) == (
                f"nobody holds T now, it is {status}: stop working on it"
            )


@proves("LEASE-LOST")
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (task("T"), "nobody holds T: claim it first"),
        (task("T", assignee="alice"), "alice does not hold T: claim it first"),
    ],
)
def test_refusal_suggests_claim(found: Task, expected: str) -> None:
    answer = World(found).decide(ALICE, RenewLease("T"))
    assert isinstance(answer, Refusal)
    assert answer.detail == expected


@proves("LEASE-LOST")
def test_owner_of_finished_attempt_may_note_link_and_alias() -> None:
    """The attempt ended by its own report: notes, links and aliases are still accepted."""
    for status in ("review", "blocked", "done"):
        world = World(task("T", status, "alice", attempts=1, agents=("alice",)), task("U"))
        assert world.code(ALICE, NoteTask("T", "one more thing")) == ""
        assert world.code(ALICE, LinkTask("T", "discovered-from", "U")) == ""
        assert world.code(ALICE, AliasTask("T", "bead:x")) == ""
        assert world.code(ALICE, RenewLease("T")) == "lease_lost"


@proves("ROLE-HOLDER", "REFUSAL-CODES")
@pytest.mark.parametrize(
    "command",
    [
        RenewLease("T"),
        ReleaseTask("T"),
        CheckpointTask("T", "MANUAL"),
        ReportOutcome("T", "done"),
        EndAttempt("T"),
    ],
    ids=lambda write: type(write).__name__,
)
def test_attempt_commands_are_only_for_the_holder(command: Command) -> None:
    assert held().code(BOB, command) == "unauthorized_agent"
    assert World(task()).code(BOB, command) == "unassigned_task"
    assert World(task("T", "ready", "alice")).code(BOB, command) == "unauthorized_agent"
    assert World(task("T", "ready", "bob")).code(BOB, command) == "unauthorized_agent"
    assert World(task()).code(BOB, replace(command, task="nowhere")) == "task_not_found"
    if not isinstance(command, EndAttempt):
        assert held().code(HUMAN, command) == "unauthorized_agent"
    if not isinstance(command, EndAttempt | ReportOutcome | ReleaseTask):
        assert held().code(HUB, command) == "unauthorized_agent"


@proves("ROLE-HOLDER", "RUN-UNREPORTED")
def test_report_by_hub_for_silent_holder_is_attributed_to_hub() -> None:
    world = held()
    report = ReportOutcome("T", "failed", "exit code 3", fence=1, apply=True)
    (report_entry, requeued) = world.do(HUB, report).events

    assert report_entry[1] == TaskReported(1, "alice", "failed", "exit code 3", by="hub")
    assert isinstance(requeued[1], TaskRequeued)
    assert requeued[1].reason == "unreported_failed"
    reported = world.tasks["T"].reported
    assert reported is not None
    assert (reported.agent, reported.by) == ("alice", "hub")
    assert held().code(HUB, replace(report, fence=2)) == "lease_lost"
    assert World(task("T", "ready", "alice")).code(HUB, report) == "lease_lost"


@proves("LEASE-RELEASE")
def test_release_frees_task_without_a_failure() -> None:
    world = with_fields(held(), failures=2)
    world.do(ALICE, ReleaseTask("T", "going home", 1), NOW + 5)
    free = world.tasks["T"]
    assert (free.status, free.assignee, free.failures, free.not_before) == ("ready", "", 2, 0)
    assert world.leases == {}
    assert world.code(BOB, ClaimTask("T", "bob"), NOW + 5) == ""


@proves("LEASE-RELEASE", "RUN-UNREPORTED")
def test_release_by_hub_needs_current_fence() -> None:
    world = held()
    assert world.code(HUB, ReleaseTask("T", "hub_stopped", 2)) == "lease_lost"
    world.do(HUB, ReleaseTask("T", "hub_stopped", 1))
    assert (world.tasks["T"].status, world.leases) == ("ready", {})
    assert world.code(HUB, ReleaseTask("T", "hub_stopped", 1)) == "lease_lost"


@proves("LEASE-RELEASE", "LIMIT-TEXT")
def test_release_reason_is_bounded() -> None:
    assert held().code(ALICE, ReleaseTask("T", "x" * 4_000)) == ""
    assert held().code(ALICE, ReleaseTask("T", "x" * 4_001)) == "invalid_field"


@proves("LEASE-HEARTBEAT")
@given(st.lists(st.integers(-TTL * 3, TTL * 3), max_size=12), st.integers(1_000, TTL))
def test_clock_set_back_never_shortens_lease(steps: list[int], ttl: int) -> None:
    at, current = NOW, grant_lease("alice", 1, "", ttl, NOW)
    for step in steps:
        at += step
        before, current = current, renew_lease(current, at)
        assert current.expires_at == max(before.expires_at, at + ttl)
        assert current.last_heartbeat >= before.last_heartbeat
        assert current.heartbeats == before.heartbeats + 1
        assert (current.holder, current.fence, current.ttl_ms) == ("alice", 1, ttl)


@proves("LEASE-FENCE", "LEASE-LOST")
@pytest.mark.parametrize(
    "command",
    [
        NoteTask("T", "x", 1),
        AliasTask("T", "bead:b", 1),
        LinkTask("T", "parent", "U", 1),
        EndAttempt("T", fence=1),
    ],
    ids=lambda command: type(command).__name__,
)
def test_same_agent_under_old_fence_can_neither_write_nor_renew(command: Command) -> None:
    world = World()
    world.do(HUMAN, CreateTask("t", "T", ready=True))
    world.do(HUMAN, CreateTask("u", "U"))
    world.do(ALICE, ClaimTask("T", "alice"))
    world.do(ALICE, ReleaseTask("T"))
    world.do(ALICE, ClaimTask("T", "alice"))
    assert world.code(ALICE, command) == "lease_lost"
    assert world.code(ALICE, replace(command, fence=2)) == ""


@proves("LEASE-FENCE", "IDEM-REPEAT")
def test_repeat_under_old_fence_does_not_renew_lease() -> None:
    world = held()
    read = WorldRead(ALICE, world)
    assert renewal_by_activity(NoteTask("T", "x", 1), read, NOW) is not None
    assert renewal_by_activity(NoteTask("T", "x", 0), read, NOW) is None


@proves("ROLE-HOLDER", "LEASE-HEARTBEAT")
@pytest.mark.parametrize("role", sorted(MAY_HOLD))
def test_claimant_of_any_role_can_heartbeat_note_and_report(role: Role) -> None:
    world = World(task("T"))
    worker = Actor(role, "olga")
    world.do(HUMAN, ClaimTask("T", "olga"))
    for command in (RenewLease("T", 1), NoteTask("T", "half")):
        world.do(worker, command, NOW + 1_000)
        assert world.leases["T"].expires_at == NOW + 1_000 + TTL
    world.do(worker, ReportOutcome("T", "done", fence=1, apply=True))
    assert world.tasks["T"].status == "review"
    assert held().code(Actor("observer", "alice"), RenewLease("T")) == "lease_lost"


@proves("ROLE-TABLE", "TASK-REVIEW")
def test_orchestrator_may_not_approve_its_own_work() -> None:
    done = MoveTask("T", "done")
    own = World(task("T", "review", "olga"))
    assert own.code(ORCHESTRATOR, done) == "not_authorized"
    assert own.code(ORCHESTRATOR, MoveTask("T", "ready")) == ""
    assert own.code(HUMAN, done) == ""
    assert World(task("T", "review", "alice")).code(ORCHESTRATOR, done) == ""
    unreviewed = World(task("T", "review", "olga", review_required=False))
    assert unreviewed.code(ORCHESTRATOR, done) == ""


@proves("AOF-SESSION-END", "LEASE-LOST")
def test_session_end_after_lost_lease_is_a_no_op() -> None:
    for world in (held(expires_at=NOW), reclaimed()):
        before = dict(world.tasks), dict(world.leases)
        ended = world.do(ALICE, EndAttempt("T", "s-1"))
        assert ended.events == ()
        assert ended.receipt.warning.endswith(": stop working on it"), "why nothing came of it"
        assert (world.tasks, world.leases) == before
        assert world.code(ALICE, EndAttempt("T", "s-1", fence=1)) == "lease_lost"
        assert world.code(ALICE, EndAttempt("T")) == "lease_lost"
