"""What an attempt's credential may say: words about its task, under its fencing token."""

from typing import get_args

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AckMail,
    AddWorkItem,
    AdoptTask,
    AnswerMail,
    AnyCommand,
    CancelIntent,
    CheckpointTask,
    ClaimTask,
    ClaimWorkItem,
    CompleteHandoff,
    CreateTask,
    DelegateIntent,
    DescribeAgent,
    DiscardDraft,
    DraftHandoff,
    EditTask,
    EndAttempt,
    EscalateMail,
    ExpireRequest,
    HandoffCommand,
    IssueToken,
    KeyAgent,
    LinkTask,
    MoveTask,
    NoteTask,
    PauseAgent,
    PostMail,
    ReadMail,
    RegisterAgent,
    RejectHandoff,
    RejectMessage,
    ReleaseReservations,
    ReleaseTask,
    ReleaseWorkItem,
    RenewLease,
    ReportOutcome,
    RequestDelegation,
    ReserveFiles,
    ResumeAgent,
    RevokeToken,
    TaskCommand,
    UpdateTask,
    WarnTask,
    WithdrawHandoff,
)
from dragoman.core.decide import renewal
from dragoman.core.deciding.scope import SPEAKS_FOR
from dragoman.core.errors import Refusal
from dragoman.core.states.agent import AgentRecord
from tests.core.handoffs import activated, offer
from tests.core.world import ALICE, HUMAN, NOW, TTL, Facts, World, held, lease, task
from tests.requirements import proves

pytestmark = proves("IDENTITY-ATTEMPT")

OWN = Actor("agent", "alice", "http", "T", 1)
STALE = Actor("agent", "alice", "http", "T", 1)

ABOUT_T: tuple[AnyCommand, ...] = (
    RenewLease("T"),
    NoteTask("T", "x"),
    UpdateTask("T", progress="x"),
    EditTask("T", "another title"),
    ReportOutcome("T", "done"),
    EndAttempt("T"),
    ReleaseTask("T"),
    MoveTask("T", "blocked"),
    LinkTask("T", "parent", "U"),
    RequestDelegation("U", "T", "bob", NOW + 1),
    CreateTask("found", discovered_from="T"),
    CreateTask("a part", parent="T"),
    ClaimTask("T", "alice", or_renew=True),
    CheckpointTask("T", "MANUAL"),
    AdoptTask("bead", "T"),
)
LETTERS: tuple[AnyCommand, ...] = (
    PostMail(("bob",), "lunch?", ""),
    PostMail(("bob",), "lunch?", "", bead="U"),
    PostMail(("bob",), "lunch?", "", bead="T"),
)
ABOUT_LETTERS: tuple[AnyCommand, ...] = (ReadMail("m"), AckMail("m"), AnswerMail("m"))
ELSEWHERE: tuple[AnyCommand, ...] = (
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
    KeyAgent("alice", ""),
    IssueToken("alice", "0" * 12, "0" * 64, NOW + 10_000),
    RevokeToken("alice"),
    PauseAgent("alice"),
    ResumeAgent("alice"),
    DescribeAgent("alice", ("python",)),
    DelegateIntent("another thing to do"),
    ExpireRequest("i"),
    CancelIntent("intent:i"),
)


def world() -> World:
    """Alice holds T in her first attempt, and there is U, which is hers too."""
    found = held()
    found.put(task("U", "ready", "alice"))
    found.do(HUMAN, PostMail(("alice",), "lunch?", "", id="m"))
    return found


def reclaimed_by_herself() -> World:
    """Alice holds T in her second attempt."""
    taken = task("T", "in-progress", "alice", attempts=2, agents=("alice",))
    return World(taken, task("U"), leases=[("T", lease("alice", 2))])


def test_every_command_has_its_place_in_the_table() -> None:
    kinds = {c for c in get_args(AnyCommand) if not issubclass(c, TaskCommand | HandoffCommand)}
    assert set(SPEAKS_FOR) == {TaskCommand, HandoffCommand, WarnTask, *kinds}


@pytest.mark.parametrize("command", ABOUT_T, ids=lambda command: type(command).__name__)
def test_it_speaks_about_its_own_task(command: AnyCommand) -> None:
    assert world().code(OWN, command) == ""


@pytest.mark.parametrize("command", [*ABOUT_T, *LETTERS], ids=lambda one: type(one).__name__)
def test_nor_about_that_for_one_that_was_made_an_observer_meanwhile(command: AnyCommand) -> None:
    found = world()
    found.agents["alice"] = AgentRecord("alice", "observer", (), NOW)
    assert found.code(OWN, command) == "not_authorized"


@pytest.mark.parametrize("command", ELSEWHERE, ids=lambda command: type(command).__name__)
def test_and_about_nothing_else(command: AnyCommand) -> None:
    answer = world().ask(OWN, command)
    assert isinstance(answer, Refusal)
    assert answer.code == "not_authorized"
    assert "an attempt on T only" in answer.detail


@proves("LEASE-LOST")
@pytest.mark.parametrize("command", ABOUT_T, ids=lambda command: type(command).__name__)
def test_an_earlier_attempt_of_the_same_agent_is_over(command: AnyCommand) -> None:
    assert reclaimed_by_herself().code(STALE, command) == "lease_lost"


@proves("LEASE-LOST")
def test_naming_a_newer_fence_helps_nobody() -> None:
    assert reclaimed_by_herself().code(STALE, RenewLease("T", 2)) == "lease_lost"
    assert world().code(OWN, RenewLease("T", 1)) == ""
    said = world().ask(OWN, RenewLease("T", 2))
    assert isinstance(said, Refusal)
    assert said.code == "lease_lost"
    assert "under fence 1, and fence 2 is named" in said.detail, "the attempt itself is not over"


@proves("LEASE-LOST")
def test_one_whose_attempt_has_ended_is_not_sent_to_a_claim_that_it_may_not_make() -> None:
    ended = World(task("T", "review", "alice", attempts=1, agents=("alice",)))
    said = [ended.ask(actor, UpdateTask("T", notes="late", fence=1)) for actor in (OWN, ALICE)]
    ways = [one.detail.partition(": ")[2] for one in said if isinstance(one, Refusal)]
    assert ways == ["stop working on it", "claim it again to go on"]


@proves("LEASE-LOST")
def test_what_is_left_of_an_attempt_does_not_keep_the_next_one_alive() -> None:
    """A repeat is answered before anybody decides, and is a sign of life all the same."""
    read = Facts(STALE, reclaimed_by_herself())
    assert renewal(NoteTask("T", "x"), read, NOW) is None
    assert renewal(NoteTask("T", "x"), Facts(OWN, world()), NOW) is not None


@proves("LEASE-LOST")
def test_when_the_attempt_is_over_it_does_not_speak_as_the_owner() -> None:
    ended = World(task("T", "blocked", "alice", attempts=1, agents=("alice",)))
    assert ended.code(Actor("agent", "alice"), EditTask("T", "mine")) == ""
    assert ended.code(OWN, EditTask("T", "mine")) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize("command", [CreateTask("a part", parent="T"), AdoptTask("bead", "T")])
def test_when_the_attempt_is_over_it_makes_nothing_more(command: AnyCommand) -> None:
    ended = World(task("T", "review", "alice", attempts=1, agents=("alice",)))
    assert ended.code(OWN, command) == "lease_lost"
    assert world().code(OWN, command) == ""
    assert world().code(OWN, command, NOW + TTL) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize("command", [*ABOUT_LETTERS, ReserveFiles(("a.py",), TTL)], ids=repr)
def test_when_the_attempt_is_over_it_takes_and_reserves_nothing_more(command: AnyCommand) -> None:
    found = world()
    assert found.code(OWN, command, NOW + TTL) == "lease_lost"
    found.do(OWN, ReleaseTask("T"))
    assert found.code(OWN, command) == "lease_lost"


@proves("IDENTITY-ATTEMPT-END", "MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("command", LETTERS, ids=repr)
def test_but_its_letters_are_delivered_and_keep_nothing_alive(command: AnyCommand) -> None:
    late = world().do(OWN, command, NOW + TTL)
    assert late.lease is None
    released = world()
    released.do(OWN, ReleaseTask("T"))
    assert released.code(OWN, command) == ""


@proves("IDENTITY-ATTEMPT-END")
def test_and_it_gives_back_the_files_that_it_has_reserved() -> None:
    found = world()
    found.do(OWN, ReleaseTask("T"))
    assert found.code(OWN, ReleaseReservations()) == ""


@pytest.mark.parametrize("name", ["T", "U"])
def test_and_what_was_odd_about_its_last_words_is_noted(name: str) -> None:
    found = world()
    assert found.code(OWN, WarnTask(name, "x")) == ""
    found.do(OWN, ReportOutcome("T", "done", apply=True))
    assert found.code(OWN, WarnTask(name, "x")) == ""
    found.agents["alice"] = AgentRecord("alice", "observer", (), NOW)
    assert found.code(OWN, WarnTask(name, "x")) == "not_authorized"


def test_by_any_name_of_the_task_and_of_none_that_there_is_not() -> None:
    found = held()
    assert found.code(OWN, NoteTask(found.tasks["T"].aof_id, "x")) == ""
    assert found.code(OWN, NoteTask("V", "x")) == "task_not_found"


@proves("ACP-CALLERS")
def test_of_handoffs_it_speaks_about_those_of_its_task() -> None:
    found = held()
    found.do(OWN, offer())
    assert found.code(OWN, WithdrawHandoff("H")) == ""
    assert found.code(OWN, WithdrawHandoff("none")) == "not_authorized"
    elsewhere = replace(found.handoffs["H"], id="H2", task="U")
    found.handoffs["H2"] = elsewhere
    found.put(task("U", "ready", "alice"))
    assert found.code(OWN, WithdrawHandoff("H2")) == "not_authorized"
    begun = activated()
    current = Actor("agent", "bob", "http", "T", 2)
    assert begun.code(current, CompleteHandoff("H")) == ""
    assert begun.code(replace(current, fence=1), CompleteHandoff("H")) == "lease_lost"


@pytest.mark.parametrize(
    ("last", "other"),
    [
        (CompleteHandoff("H", "merged"), CompleteHandoff("H", "not merged")),
        (RejectHandoff("H", "other", "too much"), RejectHandoff("H", "other", "too little")),
    ],
)
@proves("ACP-REPEAT")
def test_what_has_ended_its_attempt_and_its_handoff_is_answered_again(
    last: AnyCommand, other: AnyCommand
) -> None:
    begun, current = activated(), Actor("agent", "bob", "http", "T", 2)
    begun.do(current, last)
    assert begun.do(current, last).events == ()
    assert begun.code(current, other) == "lease_lost"
    assert begun.code(replace(current, fence=1), last) == "lease_lost"


def about(name: object) -> DraftHandoff:
    """A draft D of a task."""
    return DraftHandoff({"task": {"task_id": name}}, "D", "bob")


@proves("ACP-DRAFT")
def test_drafts_are_written_about_its_own_task() -> None:
    found = world()
    assert found.code(OWN, about("U")) == "not_authorized"
    found.do(OWN, about("T"))
    found.do(OWN, DraftHandoff({"context": {"summary": "half done"}}, "D"))
    assert found.code(OWN, about("U")) == "not_authorized"
    found.do(OWN, DiscardDraft("D"))
    found.do(OWN, DiscardDraft("D"))  # a repeat
    found.do(OWN, about("T"))
    found.do(OWN, offer(id="D"))


@proves("ACP-DRAFT")
@pytest.mark.parametrize("name", ["U", "V", "", None, 7])
def test_a_draft_about_another_task_is_not_touched_by_it(name: object) -> None:
    found = world()
    found.do(Actor("agent", "alice"), about(name))
    for command in (about("T"), DraftHandoff({}, "D"), DiscardDraft("D"), offer(id="D")):
        answer = found.ask(OWN, command)
        assert isinstance(answer, Refusal)
        assert answer.code == "not_authorized"
        assert "names T" in answer.detail
    assert found.code(OWN, DraftHandoff({"context": {"summary": "of what?"}})) == "not_authorized"


@proves("ACP-DRAFT")
def test_nobody_is_told_by_it_of_the_drafts_of_others() -> None:
    found = world()
    found.do(Actor("agent", "bob"), about("U"))
    assert found.code(OWN, DiscardDraft("D")) == "handoff_not_found"
    assert found.code(OWN, DiscardDraft("E")) == "handoff_not_found"


def test_it_adopts_nothing() -> None:
    """A name that nobody has yet is as little its own as another task's."""
    assert world().code(OWN, AdoptTask("bead", "x-1")) == "not_authorized"


@pytest.mark.parametrize("command", [*LETTERS, *ABOUT_LETTERS], ids=repr)
def test_letters_are_free(command: AnyCommand) -> None:
    assert world().code(OWN, command) == ""


def test_what_could_not_be_understood_is_recorded_as_ever() -> None:
    assert world().code(OWN, RejectMessage("invalid_json", "x", "U")) == "invalid_json"
