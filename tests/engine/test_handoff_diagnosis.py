"""What a diagnosis says is true when it is said, and what it names can be done by whom it names."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    AnyCommand,
    ApproveHandoff,
    CheckpointTask,
    CloseHandoff,
    CompleteHandoff,
    DiscardDraft,
    DraftHandoff,
    EditTask,
    ExtendHandoff,
    MoveTask,
    ReassignHandoff,
    RegisterAgent,
    RejectHandoff,
    ReportOutcome,
    WithdrawHandoff,
)
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import Delegation
from dragoman.engine.handoff_diagnosis import Diagnosis, Step, diagnose, look_at
from dragoman.engine.handoff_surroundings import Surroundings
from dragoman.engine.operation import Outlook
from tests.engine.handoffs import COORDINATOR, accept, activate, make, offer, package, state
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("ACP-DIAGNOSE", "ACP-PASSED-BACK")

ACTORS = {actor.name: actor for actor in (ALICE, BOB, CAROL, COORDINATOR, HUMAN)}
DAN = Actor("agent", "dan")
OPEN = "; the record of this handoff is still open"


def offered(lab: Lab) -> None:
    """Alice has offered the work to bob."""
    lab.do(HUMAN, RegisterAgent("carl", role="coordinator"))
    make(lab)
    offer(lab)


def accepted(lab: Lab) -> None:
    """Bob has accepted it."""
    offered(lab)
    accept(lab)


def begun(lab: Lab) -> None:
    """Bob has begun."""
    accepted(lab)
    activate(lab)


def unapproved(lab: Lab) -> None:
    """Bob would accept it, and nobody has approved it yet."""
    make(lab)
    policy = {"classification": "internal", "requires_human_approval": True}
    offer(lab, package=package(policy=policy))
    accept(lab)


def rejected(lab: Lab) -> None:
    """Bob does not want it."""
    offered(lab)
    lab.do(BOB, RejectHandoff("h1", "other", "busy"))


def handed_in(lab: Lab) -> None:
    """Bob is done."""
    begun(lab)
    lab.do(BOB, CompleteHandoff("h1"))


def sent_back(lab: Lab) -> None:
    """And whoever looks at it is not content."""
    handed_in(lab)
    lab.do(HUMAN, MoveTask("t1", "ready", "no tests"))


def approved(lab: Lab) -> None:
    """Bob is done, and whoever looks at it is content."""
    handed_in(lab)
    lab.do(HUMAN, MoveTask("t1", "done"))


def left(lab: Lab) -> None:
    """Bob wants a successor."""
    begun(lab)
    lab.do(BOB, CheckpointTask("t1", "PAUSE", "abc1234"))


def silent(lab: Lab) -> None:
    """Bob has begun, and was not heard of since."""
    begun(lab)
    lab.clock.advance(10 * 60_000)


def blocked(lab: Lab) -> None:
    """Bob has accepted what a person has stopped since."""
    accepted(lab)
    lab.do(HUMAN, MoveTask("t1", "blocked", "legal says stop"))


def stopped(lab: Lab) -> None:
    """Bob has begun, and something is in the way."""
    begun(lab)
    lab.do(BOB, ReportOutcome("t1", "blocked", apply=True, blockers=("x",)))


def put_aside(lab: Lab) -> None:
    """Bob has begun, and a person has put it aside."""
    begun(lab)
    lab.do(HUMAN, MoveTask("t1", "ready"))
    lab.do(HUMAN, MoveTask("t1", "backlog"))


def put_aside_before(lab: Lab) -> None:
    """Bob has accepted what a person has put aside since."""
    accepted(lab)
    lab.do(HUMAN, MoveTask("t1", "backlog"))


def given_up(lab: Lab) -> None:
    """Bob has accepted what a person has given up."""
    accepted(lab)
    lab.do(HUMAN, MoveTask("t1", "deadletter"))


def passed_on(lab: Lab) -> None:
    """Bob has begun, and offered it to carol then."""
    begun(lab)
    offer(lab, "h2", to="carol", by=BOB, supersedes="h1")


def taken_further(lab: Lab) -> None:
    """And carol has begun."""
    passed_on(lab)
    accept(lab, "h2", CAROL)
    activate(lab, "h2", CAROL)


def in_vain(lab: Lab) -> None:
    """Carol has said no to what bob has passed on."""
    passed_on(lab)
    lab.do(CAROL, RejectHandoff("h2", "other", "busy"))


def closed_since(lab: Lab) -> None:
    """And the record of that is closed."""
    in_vain(lab)
    lab.do(BOB, CloseHandoff("h2"))


def done_since(lab: Lab) -> None:
    """And bob has done it after all."""
    in_vain(lab)
    lab.do(BOB, ReportOutcome("t1", "done", apply=True))


def blocked_since(lab: Lab) -> None:
    """Or was stopped."""
    in_vain(lab)
    lab.do(BOB, ReportOutcome("t1", "blocked", apply=True, blockers=("x",)))


def given_up_since(lab: Lab) -> None:
    """Or a person has given it up."""
    in_vain(lab)
    lab.do(HUMAN, MoveTask("t1", "deadletter"))


def offered_again(lab: Lab) -> None:
    """Or has offered it to dan, who has not answered yet."""
    in_vain(lab)
    offer(lab, "h3", to="dan", by=BOB, supersedes="h2")


def in_vain_again(lab: Lab) -> None:
    """Who has said no as well."""
    offered_again(lab)
    lab.do(DAN, RejectHandoff("h3", "other", "busy"))


def taken_away(lab: Lab) -> None:
    """Or a person has given it to dan."""
    in_vain(lab)
    lab.do(HUMAN, MoveTask("t1", "ready"))
    lab.do(HUMAN, EditTask("t1", assignee="dan"))


def nobodys(lab: Lab) -> None:
    """Or to nobody."""
    in_vain(lab)
    lab.do(HUMAN, MoveTask("t1", "ready"))
    lab.do(HUMAN, EditTask("t1", assignee=""))


def nobodys_and_aside(lab: Lab) -> None:
    """And has put it aside."""
    nobodys(lab)
    lab.do(HUMAN, MoveTask("t1", "backlog"))


def not_begun_in_vain(lab: Lab) -> None:
    """Bob has passed on what it has only accepted, in vain."""
    accepted(lab)
    offer(lab, "h2", to="carol", by=BOB, supersedes="h1")
    lab.do(CAROL, RejectHandoff("h2", "other", "busy"))


_BUSY = "it was rejected (other: busy): "
_BACK = "bob has the work and may offer it anew, also back to alice, with --supersedes "
_ON = "bob has passed the work on as h2; "
TOLD: tuple[tuple[Callable[[Lab], None], str, str], ...] = (
    (offered, "h1", "bob has to accept or reject it"),
    (accepted, "h1", "bob has accepted it and has to begin"),
    (unapproved, "h1", "a person has to approve this package, then bob accepts it again"),
    (rejected, "h1", f"{_BUSY}nobody has the work, and whoever takes it may offer it anew"),
    (begun, "h1", "bob works on it; its lease lasts until 2026-02-09T14:35:00.000Z"),
    (
        silent,
        "h1",
        "bob has it, but no live lease: it has to activate it again, or is gone",
    ),
    (handed_in, "h1", f"bob has done its part; t1 waits for a review{OPEN}"),
    (sent_back, "h1", f"bob has done its part; bob has the work and may offer it anew{OPEN}"),
    (approved, "h1", f"bob has done its part; t1 is done by now{OPEN}"),
    (
        left,
        "h1",
        "bob has done its part; nobody has the work, and whoever takes it may offer it anew" + OPEN,
    ),
    (
        blocked,
        "h1",
        (
            "bob has accepted it, and cannot begin yet: t1 is blocked: alice, a person, a "
            "coordinator or an orchestrator has to make it ready first"
        ),
    ),
    (
        given_up,
        "h1",
        (
            "bob has accepted it, and cannot begin yet: t1 is in the deadletter: a person, a "
            "coordinator or an orchestrator has to make it ready"
        ),
    ),
    (
        stopped,
        "h1",
        (
            "bob has it, and cannot go on: t1 is blocked: bob, a person, a coordinator or an "
            "orchestrator has to make it ready first"
        ),
    ),
    (
        put_aside,
        "h1",
        (
            "bob has it, and cannot go on: t1 is in the backlog: a person, a coordinator or an "
            "orchestrator has to make it ready first"
        ),
    ),
    (
        put_aside_before,
        "h1",
        (
            "bob has accepted it, and cannot begin yet: t1 is in the backlog: a person, a "
            "coordinator or an orchestrator has to make it ready first"
        ),
    ),
    (passed_on, "h1", f"{_ON}the work is on its way to carol by h2{OPEN}"),
    (taken_further, "h1", f"{_ON}carol has the work by h2{OPEN}"),
    (in_vain, "h1", f"{_ON}{_BACK}h2{OPEN}"),
    (in_vain, "h2", f"{_BUSY}{_BACK}h2"),
    (closed_since, "h2", f"it is closed, rejected by carol (other: busy): {_BACK}h2"),
    (done_since, "h1", f"{_ON}t1 waits for a review{OPEN}"),
    (done_since, "h2", f"{_BUSY}t1 waits for a review"),
    (
        blocked_since,
        "h2",
        (
            f"{_BUSY}bob has the work, which is blocked, and may offer it anew, also back to "
            "alice, with --supersedes h2"
        ),
    ),
    (
        given_up_since,
        "h2",
        (
            f"{_BUSY}bob has the work, which is deadletter, and may offer it anew, also back to "
            "alice, with --supersedes h2; nobody can begin before a person, a coordinator or an "
            "orchestrator has made it ready"
        ),
    ),
    (
        offered_again,
        "h2",
        f"{_BUSY}h3 has taken its place; the work is on its way to dan by h3",
    ),
    (in_vain_again, "h1", f"{_ON}{_BACK}h3{OPEN}"),
    (in_vain_again, "h2", f"{_BUSY}h3 has taken its place; {_BACK}h3"),
    (taken_away, "h1", f"{_ON}dan has the work and may offer it anew{OPEN}"),
    (taken_away, "h2", f"{_BUSY}dan has the work and may offer it anew"),
    (nobodys, "h2", f"{_BUSY}nobody has the work, and whoever takes it may offer it anew"),
    (nobodys_and_aside, "h2", f"{_BUSY}nobody has the work, and t1 is backlog"),
    (
        not_begun_in_vain,
        "h2",
        f"{_BUSY}nobody has the work, and whoever takes it may offer it anew",
    ),
)
"""How things stand -> which handoff -> what is said of it."""

ASKED: dict[str, Callable[[Lab, str], AnyCommand]] = {
    "accept": lambda lab, id: AcceptHandoff(id, state(lab, id).package_hash),
    "activate": lambda _, id: ActivateHandoff(id),
    "approve": lambda _, id: ApproveHandoff(id),
    "deny": lambda _, id: ApproveHandoff(id, is_yes=False),
    "close": lambda _, id: CloseHandoff(id),
    "complete": lambda _, id: CompleteHandoff(id),
    "extend": lambda _, id: ExtendHandoff(id, 60_000),
    "ready": lambda _, __: MoveTask("t1", "ready"),
    "reassign": lambda _, id: ReassignHandoff(id, "erin"),
    "reject": lambda _, id: RejectHandoff(id, "other", "no"),
    "withdraw": lambda _, id: WithdrawHandoff(id),
    "draft": lambda _, id: DraftHandoff({"work_state": {}}, id),
    "discard": lambda _, id: DiscardDraft(id),
}


def found(lab: Lab, id: str) -> Diagnosis:
    """The diagnosis by now."""
    return look_at(lab.store, state(lab, id), lab.clock.now())


def done(build: Callable[[Lab], None], id: str, step: Step) -> None:
    """All of those that a step names do it, each in a world of its own."""
    for name in step.who or (HUMAN.name,):
        lab = Lab()
        build(lab)
        lab.do(ACTORS[name], ASKED[step.action](lab, id))


@pytest.mark.parametrize(
    ("build", "id", "summary"), TOLD, ids=[f"{build.__name__}-{id}" for build, id, _ in TOLD]
)
def test_it_says_how_things_stand_and_every_step_can_be_done(
    build: Callable[[Lab], None], id: str, summary: str
) -> None:
    lab = Lab()
    build(lab)
    told = found(lab, id)
    assert told.summary == summary
    is_over = state(lab, id).status == "closed"
    assert bool(told.steps) != is_over
    for step in told.steps:
        done(build, id, step)
    if " has the work" in summary and "may offer it anew" in summary:
        _offer_anew(build, summary)


def _offer_anew(build: Callable[[Lab], None], summary: str) -> None:
    """Whoever is said to have the work offers it anew; and back, where that is said."""
    before, _, after = summary.partition(" has the work")
    name = before.rpartition(" ")[2]
    owner = ACTORS.get(name, DAN) if name != "nobody" else CAROL
    lab = Lab()
    build(lab)
    offer(lab, "h9", to="erin", by=owner)
    if "also back to" in after:
        lab = Lab()
        build(lab)
        words = after.removesuffix(OPEN).partition(";")[0].split()
        offer(lab, "h9", to="alice", by=owner, supersedes=words[-1])
        assert "alice," in words


def test_whoever_is_named_first_speaks_in_every_command() -> None:
    for build in (stopped, given_up, put_aside):
        lab = Lab()
        build(lab)
        step = next(step for step in found(lab, "h1").steps if step.action == "ready")
        assert step.command == f"dragoman task move t1 ready --as {step.who[0]}"


def test_nobody_is_told_to_accept_what_has_to_be_approved_first() -> None:
    def unseen(lab: Lab) -> None:
        make(lab)
        policy = {"classification": "internal", "requires_human_approval": True}
        offer(lab, package=package(policy=policy))

    for build in (unseen, unapproved):
        lab = Lab()
        build(lab)
        assert [step.action for step in found(lab, "h1").steps] == ["approve", "deny", "reject"]


@pytest.mark.parametrize("build", [offered, accepted, begun, silent, blocked, stopped])
def test_what_coordinators_can_do_about_what_is_late_they_can_do(
    build: Callable[[Lab], None],
) -> None:
    def late(lab: Lab) -> None:
        build(lab)
        lab.clock.advance(25 * 3_600_000)

    lab = Lab()
    late(lab)
    told = found(lab, "h1")
    assert told.late
    due_by = state(lab, "h1").due_by
    assert due_by is not None
    assert told.due_by == to_rfc3339(due_by)
    by_carl = {step.action for step in told.steps if step.who == ("carl",)}
    assert by_carl >= {"extend", "reassign", "reject"}
    for step in told.steps:
        done(late, "h1", step)


def drafted(lab: Lab) -> None:
    """Alice has begun a package."""
    lab.do(ALICE, DraftHandoff({"context": {"summary": "half done"}}, "h1", "bob"))


def checked(lab: Lab) -> None:
    """Bob would accept it, and something is in the way."""
    offered(lab)
    accept(lab, waits_for="the disk does not answer")


@pytest.mark.parametrize(
    ("build", "says", "actions"),
    [
        (drafted, "cannot be offered as it stands", ["draft", "discard"]),
        (offered, "alice has to put that right", ["withdraw", "reject"]),
        (
            unapproved,
            "alice has to put that right, and a person has to approve this package, then bob",
            ["withdraw", "approve", "deny", "reject"],
        ),
        (checked, "alice has to put that right", ["withdraw", "reject"]),
        (accepted, "cannot begin", ["reject", "withdraw"]),
    ],
)
def test_what_was_found_outside_of_the_ledger_goes_before_the_next_step(
    build: Callable[[Lab], None], says: str, actions: list[str]
) -> None:
    lab = Lab()
    build(lab)
    seen = Outlook(obstacles=("log.txt is gone",))
    told = look_at(lab.store, state(lab, "h1"), lab.clock.now(), outlook=seen)
    assert says in told.summary
    assert [step.action for step in told.steps] == actions
    assert told.findings[0] == "log.txt is gone"
    for step in told.steps:
        done(build, "h1", step)


def test_who_has_what_was_promised_to_another_is_not_told_to_offer_it() -> None:
    lab = Lab()
    in_vain(lab)
    promised = replace(lab.task("t1"), delegation=Delegation("t0", "alice", "zoe", START))
    told = diagnose(state(lab, "h2"), Surroundings(START, promised)).summary
    assert told == f"{_BUSY}bob has the work"
    resting = Surroundings(START, replace(promised, status="blocked"))
    told = diagnose(state(lab, "h2"), resting).summary
    assert told == f"{_BUSY}bob has the work, and t1 is blocked"


def test_of_a_task_that_is_not_there_nothing_is_said() -> None:
    lab = Lab()
    in_vain(lab)
    assert diagnose(state(lab, "h2"), Surroundings(START)).summary == (
        f"{_BUSY}its task is not there"
    )
