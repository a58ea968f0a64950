"""Scope of an attempt's credential: commands about its task, under its fencing token."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.agent import (
    AgentRecord,
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
    LimitAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.base import Command
from dragoman.core.deciders import renewal_by_activity
from dragoman.core.delegation import RequestDelegation
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    CompleteHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.intent.state import CancelIntent, DelegateIntent, ExpireRequest
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.presence import ReportPresence
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import (
    AdoptTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    UpdateTask,
    WarnTask,
)
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem
from tests.core.handoffs import activated, offer
from tests.core.world import HUMAN, NOW, TTL, World, WorldRead, held, lease, task
from tests.requirements import proves

pytestmark = proves("IDENTITY-ATTEMPT")

OWN = Actor("agent", "alice", "http", "T", 1)
STALE = Actor("agent", "alice", "http", "T", 1)

ABOUT_T: tuple[Command, ...] = (
    RenewLease("T"),
    NoteTask("T", "x"),
    UpdateTask("T", progress="x"),
    EditTask("T", "another title"),
    ReportOutcome("T", "done"),
    EndAttempt("T"),
    ReleaseTask("T"),
    LimitAttempt("T"),
    MoveTask("T", "blocked"),
    LinkTask("T", "parent", "U"),
    RequestDelegation("U", "T", "bob", NOW + 1),
    CreateTask("found", discovered_from="T"),
    CreateTask("a part", parent="T"),
    ClaimTask("T", "alice", renew_if_held=True),
    CheckpointTask("T", "MANUAL"),
    AdoptTask("bead", "T"),
)
LETTERS: tuple[Command, ...] = (
    PostMail(("bob",), "lunch?", ""),
    PostMail(("bob",), "lunch?", "", bead="U"),
    PostMail(("bob",), "lunch?", "", bead="T"),
)
ABOUT_LETTERS: tuple[Command, ...] = (ReadMail("m"), AckMail("m"), AnswerMail("m"))
OUT_OF_SCOPE: tuple[Command, ...] = (
    NoteTask("U", "x"),
    UpdateTask("U", progress="x"),
    ClaimTask("", "alice"),
    ClaimTask("U", "alice"),
    MoveTask("U", "blocked"),
    RequestDelegation("T", "U", "bob", NOW + 1),
    CreateTask("out of nowhere"),
    CreateTask("a part of another", parent="U"),
    AdoptTask("bead", "U"),
    EscalateMail("m"),
    AddWorkItem("an item"),
    ClaimWorkItem("w-1"),
    ReleaseWorkItem("w-1"),
    RegisterAgent("alice"),
    SetAgentKey("alice", ""),
    IssueToken("alice", "0" * 12, "0" * 64, NOW + 10_000),
    RevokeToken("alice"),
    PauseAgent("alice"),
    ResumeAgent("alice"),
    ReportPresence("alice", "s-1", "working"),
    DescribeAgent("alice", ("python",)),
    DelegateIntent("another thing to do"),
    ExpireRequest("i"),
    CancelIntent("intent:i"),
)


def held_by_alice() -> World:
    """World in which alice holds T in her first attempt and owns U."""
    world = held()
    world.put(task("U", "ready", "alice"))
    world.do(HUMAN, PostMail(("alice",), "lunch?", "", id="m"))
    return world


def reclaimed_by_alice() -> World:
    """World in which alice holds T in her second attempt."""
    reclaimed_task = task("T", "in-progress", "alice", attempts=2, agents=("alice",))
    return World(reclaimed_task, task("U"), leases=[("T", lease("alice", 2))])


def test_new_command_is_allowed_to_no_attempt() -> None:
    class NewCommand(Command, frozen=True, tag="new"):
        """Command that nothing else knows."""

    assert held_by_alice().code(OWN, NewCommand()) == "not_authorized"


@pytest.mark.parametrize("command", ABOUT_T, ids=lambda command: type(command).__name__)
def test_attempt_may_command_its_own_task(command: Command) -> None:
    assert held_by_alice().code(OWN, command) == ""


@pytest.mark.parametrize("command", [*ABOUT_T, *LETTERS], ids=lambda one: type(one).__name__)
def test_attempt_of_agent_turned_observer_is_refused(command: Command) -> None:
    world = held_by_alice()
    world.agents["alice"] = AgentRecord("alice", "observer", (), NOW)
    assert world.code(OWN, command) == "not_authorized"


@pytest.mark.parametrize("command", OUT_OF_SCOPE, ids=lambda command: type(command).__name__)
def test_attempt_may_command_nothing_else(command: Command) -> None:
    answer = held_by_alice().decide(OWN, command)
    assert isinstance(answer, Refusal)
    assert answer.code == "not_authorized"
    assert "an attempt on T only" in answer.detail


@proves("LEASE-LOST")
@pytest.mark.parametrize("command", ABOUT_T, ids=lambda command: type(command).__name__)
def test_earlier_attempt_of_same_agent_gets_lease_lost(command: Command) -> None:
    assert reclaimed_by_alice().code(STALE, command) == "lease_lost"


@proves("LEASE-LOST")
def test_attempt_may_not_name_a_newer_fence() -> None:
    assert reclaimed_by_alice().code(STALE, RenewLease("T", 2)) == "lease_lost"
    assert held_by_alice().code(OWN, RenewLease("T", 1)) == ""
    answer = held_by_alice().decide(OWN, RenewLease("T", 2))
    assert isinstance(answer, Refusal)
    assert answer.code == "lease_lost"
    assert "under fence 1, and the command names fence 2" in answer.detail, (
        "the attempt itself is not over"
    )


@proves("LEASE-LOST")
def test_ended_attempt_does_not_renew_lease_of_next_one() -> None:
    """Renewal for a repeated request, which is answered before any decider runs."""
    read = WorldRead(STALE, reclaimed_by_alice())
    assert renewal_by_activity(NoteTask("T", "x"), read, NOW) is None
    assert renewal_by_activity(NoteTask("T", "x"), WorldRead(OWN, held_by_alice()), NOW) is not None


@proves("LEASE-LOST")
def test_ended_attempt_may_not_act_as_owner() -> None:
    ended = World(task("T", "blocked", "alice", attempts=1, agents=("alice",)))
    assert ended.code(Actor("agent", "alice"), EditTask("T", "mine")) == ""
    assert ended.code(OWN, EditTask("T", "mine")) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize("command", [CreateTask("a part", parent="T"), AdoptTask("bead", "T")])
def test_ended_attempt_may_not_create_tasks(command: Command) -> None:
    ended = World(task("T", "review", "alice", attempts=1, agents=("alice",)))
    assert ended.code(OWN, command) == "lease_lost"
    assert held_by_alice().code(OWN, command) == ""
    assert held_by_alice().code(OWN, command, NOW + TTL) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize("command", [*ABOUT_LETTERS, ReserveFiles(("a.py",), TTL)], ids=repr)
def test_ended_attempt_may_not_read_mail_or_reserve_files(command: Command) -> None:
    world = held_by_alice()
    assert world.code(OWN, command, NOW + TTL) == "lease_lost"
    world.do(OWN, ReleaseTask("T"))
    assert world.code(OWN, command) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END", "MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("command", LETTERS, ids=repr)
def test_letters_of_ended_attempt_are_delivered_without_renewal(command: Command) -> None:
    late = held_by_alice().do(OWN, command, NOW + TTL)
    assert late.lease is None
    released = held_by_alice()
    released.do(OWN, ReleaseTask("T"))
    assert released.code(OWN, command) == ""


@proves("IDENTITY-ATTEMPT-END")
def test_ended_attempt_may_release_its_reservations() -> None:
    world = held_by_alice()
    world.do(OWN, ReleaseTask("T"))
    assert world.code(OWN, ReleaseReservations()) == ""


@pytest.mark.parametrize("name", ["T", "U"])
def test_ended_attempt_may_add_warnings(name: str) -> None:
    world = held_by_alice()
    assert world.code(OWN, WarnTask(name, "x")) == ""
    world.do(OWN, ReportOutcome("T", "done", apply=True))
    assert world.code(OWN, WarnTask(name, "x")) == ""
    world.agents["alice"] = AgentRecord("alice", "observer", (), NOW)
    assert world.code(OWN, WarnTask(name, "x")) == "not_authorized"


def test_attempt_may_use_any_name_of_its_task() -> None:
    world = held()
    assert world.code(OWN, NoteTask(world.tasks["T"].aof_id, "x")) == ""
    assert world.code(OWN, NoteTask("V", "x")) == "task_not_found"


@proves("ACP-CALLERS")
def test_attempt_may_command_handoffs_of_its_task() -> None:
    world = held()
    world.do(OWN, offer())
    assert world.code(OWN, WithdrawHandoff("H")) == ""
    assert world.code(OWN, WithdrawHandoff("none")) == "not_authorized"
    elsewhere = replace(world.handoffs["H"], id="H2", task="U")
    world.handoffs["H2"] = elsewhere
    world.put(task("U", "ready", "alice"))
    assert world.code(OWN, WithdrawHandoff("H2")) == "not_authorized"
    activated_world = activated()
    current = Actor("agent", "bob", "http", "T", 2)
    assert activated_world.code(current, CompleteHandoff("H")) == ""
    assert activated_world.code(replace(current, fence=1), CompleteHandoff("H")) == "lease_lost"


@pytest.mark.parametrize(
    ("last", "other"),
    [
        (CompleteHandoff("H", "merged"), CompleteHandoff("H", "not merged")),
        (RejectHandoff("H", "other", "too much"), RejectHandoff("H", "other", "too little")),
    ],
)
@proves("ACP-REPEAT")
def test_repeat_of_command_that_ended_the_attempt_is_answered(
    last: Command, other: Command
) -> None:
    world, current = activated(), Actor("agent", "bob", "http", "T", 2)
    world.do(current, last)
    assert world.do(current, last).events == ()
    assert world.code(current, other) == "lease_lost"
    assert world.code(replace(current, fence=1), last) == "lease_lost"


def test_attempt_may_not_adopt_tasks() -> None:
    """An unused name is refused like the name of another task."""
    assert held_by_alice().code(OWN, AdoptTask("bead", "x-1")) == "not_authorized"


@pytest.mark.parametrize("command", [*LETTERS, *ABOUT_LETTERS], ids=repr)
def test_attempt_may_post_and_read_letters(command: Command) -> None:
    assert held_by_alice().code(OWN, command) == ""


def test_attempt_rejections_of_messages_are_recorded() -> None:
    assert held_by_alice().code(OWN, RejectMessage("invalid_json", "x", "U")) == "invalid_json"
