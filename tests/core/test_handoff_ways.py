"""What a refusal about a handoff names can really be done, by the one who reads it, where it is."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    AnyCommand,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    DelegateIntent,
    DiscardDraft,
    EditTask,
    ExtendHandoff,
    MoveTask,
    ReassignHandoff,
    RejectHandoff,
    ReportOutcome,
    WithdrawHandoff,
)
from dragoman.core.errors import Refusal
from dragoman.core.reading import Decision
from tests.core.delegating import GOAL, ranked, registry
from tests.core.handoffs import (
    CAROL,
    DAVE,
    accept,
    accepted,
    activated,
    again,
    at,
    handoff,
    offer,
    offered,
    package,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    NOW,
    ORCHESTRATOR,
    TTL,
    World,
    task,
)
from tests.core.world import with_ as changed
from tests.requirements import proves

pytestmark = proves("ACP-WAYS")

LATE = NOW + TTL
"""By now the lease of whoever has begun is over."""

ACTIONS: dict[str, Callable[[World], AnyCommand]] = {
    "accept": lambda world: AcceptHandoff("H", handoff(world).package_hash, notes="yes"),
    "activate": lambda _: ActivateHandoff("H", work_state_update={"status": "other words"}),
    "complete": lambda _: CompleteHandoff("H", "other words"),
    "reject": lambda _: RejectHandoff("H", "other", "other words"),
    "withdraw": lambda _: WithdrawHandoff("H", "other words"),
    "extend_sla": lambda _: ExtendHandoff("H", 60_000),
    "reassign": lambda _: ReassignHandoff("H", "erin"),
    "close": lambda _: CloseHandoff("H", "other words"),
}
APPROVAL: dict[str, Callable[[World], AnyCommand]] = {
    "approve": lambda _: ApproveHandoff("H", note="other words"),
    "deny": lambda _: ApproveHandoff("H", is_yes=False, note="other words"),
}
"""Beside these, where a person's word is missing."""
READERS = (ALICE, BOB, CAROL, COORDINATOR, HUMAN, ORCHESTRATOR)


def unapproved() -> World:
    """Alice has offered what a person has to approve."""
    return offered(package=package(requires_human_approval=True))


def tried() -> World:
    """And bob would accept it."""
    world = unapproved()
    world.do(BOB, accept(world))
    return world


def approved() -> World:
    """And a person has approved it."""
    world = tried()
    again(world, HUMAN, ApproveHandoff("H"), "approved")
    return world


def blocked() -> World:
    """Bob has accepted it, and then a person has stopped it."""
    world = accepted()
    world.do(HUMAN, MoveTask("T", "blocked", "legal says stop"))
    return world


def dead() -> World:
    """Bob has accepted it, and then it was given up."""
    return changed(accepted(), status="deadletter")


def waiting() -> World:
    """Bob has accepted it, and it waits for another task."""
    return changed(accepted(), open_blockers=("U",))


def stopped() -> World:
    """Bob has begun, and something is in the way."""
    world = activated()
    again(world, BOB, ReportOutcome("T", "blocked", apply=True, blockers=("x",)), "stopped")
    return world


def passed_on() -> World:
    """Bob has begun, and then offered it to carol."""
    world = activated()
    again(world, BOB, offer("carol", "H2", supersedes="H"), "passed-on")
    return world


def in_vain() -> World:
    """And carol has said no."""
    world = passed_on()
    again(world, CAROL, RejectHandoff("H2", "other", "busy"), "in-vain")
    return world


WORLDS: dict[str, Callable[[], World]] = {
    **{state: lambda state=state: at(state) for state in ("proposed", "validating", "accepted")},
    **{state: lambda state=state: at(state) for state in ("activated", "rejected", "completed")},
    "closed": lambda: at("closed"),
    "unapproved": unapproved,
    "tried": tried,
    "approved": approved,
    "blocked": blocked,
    "dead": dead,
    "waiting": waiting,
    "stopped": stopped,
    "passed on": passed_on,
    "in vain": in_vain,
}
COORDINATES = ("reject", "extend_sla", "reassign")
AWAITED: dict[str, tuple[str, ...]] = {
    "alice": ("withdraw",),
    "bob": ("reject",),
    HUMAN.name: ("approve", "deny", *COORDINATES),
    "": COORDINATES,
}
OPEN: dict[str, dict[str, tuple[str, ...]]] = {
    "proposed": {"alice": ("withdraw",), "bob": ("accept", "reject"), "": COORDINATES},
    "validating": {"alice": ("withdraw",), "bob": ("accept", "reject"), "": COORDINATES},
    "accepted": {"alice": ("withdraw",), "bob": ("activate", "reject"), "": COORDINATES},
    "activated": {"bob": ("complete", "reject"), "": COORDINATES},
    "adrift": {"bob": ("activate", "reject"), "": COORDINATES},
    "rejected": {"alice": ("close",), "": ("close",)},
    "completed": {"alice": ("close",), "": ("close",)},
    "closed": {},
    "unapproved": AWAITED,
    "tried": AWAITED,
    "approved": {"alice": ("withdraw",), "bob": ("accept", "reject"), "": COORDINATES},
    "blocked": {"alice": ("withdraw",), "bob": ("reject",), "": COORDINATES},
    "dead": {"alice": ("withdraw",), "bob": ("reject",), "": COORDINATES},
    "waiting": {"alice": ("withdraw",), "bob": ("reject",), "": COORDINATES},
    "stopped": {"bob": ("reject",), "": COORDINATES},
    "passed on": {"alice": ("close",), "": ("close",)},
    "in vain": {"alice": ("close",), "": ("close",)},
}
"""Where the handoff H of T from alice to bob is -> reader -> what that one can do about it.

Under no name: whoever coordinates. Who is not there can do nothing.
"""


def named(answer: Refusal, reader: Actor) -> tuple[str, ...]:
    """The ways that a refusal names."""
    _, found, ways = answer.detail.partition(f"; what {reader.name} can do now is ")
    if not found:
        assert "it is final" in answer.detail or f"nothing is left for {reader.name}" in (
            answer.detail
        )
    return tuple(way.partition(" (")[0] for way in ways.split(", ")) if found else ()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@pytest.mark.parametrize("where", OPEN)
def test_every_way_that_is_named_is_open_and_every_open_one_is_named(
    where: str, reader: Actor
) -> None:
    build, now = (WORLDS["activated"], LATE) if where == "adrift" else (WORLDS[where], NOW)
    fallback = () if reader.role == "agent" else OPEN[where].get("", ())
    wanted = OPEN[where].get(reader.name, fallback)
    is_open: dict[str, bool] = {}
    told: list[tuple[str, ...]] = []
    beside = APPROVAL if OPEN[where] is AWAITED else {}
    for action, asked in {**ACTIONS, **beside}.items():
        world = build()
        world.cause = "cause-9"
        answer = world.ask(reader, asked(world), now)
        only_waits = ("accept", "validating")
        is_open[action] = (
            isinstance(answer, Decision) and (action, answer.receipt.state) != only_waits
        )
        if isinstance(answer, Refusal) and answer.code == "invalid_transition":
            told.append(named(answer, reader))
    assert {action for action, yes in is_open.items() if yes} == set(wanted)
    assert told, "something is not for this state"
    assert {frozenset(ways) for ways in told} == {frozenset(wanted)}


def test_whoever_wrote_a_draft_is_told_what_can_be_done_with_one() -> None:
    world = at("draft")
    answer = world.ask(ALICE, CloseHandoff("H"))
    assert isinstance(answer, Refusal)
    assert named(answer, ALICE) == ("draft", "propose", "discard")
    answer = at("proposed").ask(ALICE, DiscardDraft("H"))
    assert isinstance(answer, Refusal)
    assert answer.detail == "H is proposed: discard is for draft; what alice can do now is withdraw"


def test_more_time_is_named_as_each_door_calls_it() -> None:
    answer = at("proposed").ask(COORDINATOR, CloseHandoff("H"))
    assert isinstance(answer, Refusal)
    assert answer.detail.endswith(
        "can do now is reject, extend_sla (on the command line: extend), reassign"
    )


def test_what_has_come_in_its_place_is_named() -> None:
    answer = in_vain().ask(BOB, RejectHandoff("H", "other", "too hard"))
    assert isinstance(answer, Refusal)
    assert answer.detail == (
        "H is completed, and H2 has taken its place: reject is for proposed, validating, accepted, "
        "activated; nothing is left for bob to do about H"
    )


def detail(world: World, actor: Actor, command: Any) -> str:
    """The words of a no."""
    world.cause = "cause-9"
    answer = world.ask(actor, command)
    assert isinstance(answer, Refusal), answer
    return answer.detail


BY_HAND = (
    "once nobody works on it and no handoff of it is open, a person, an orchestrator or a "
    "coordinator can make {} its assignee"
)


def test_who_has_begun_is_told_to_reject_what_goes_back() -> None:
    world = activated()
    said = detail(world, BOB, offer("alice", "H2", supersedes="H"))
    assert said == "alice has owned it before (alice → bob): reject H to give it back"
    world.do(BOB, RejectHandoff("H", "other", "back"))
    assert world.tasks["T"].assignee == "alice"


def test_who_has_passed_it_on_in_vain_is_told_of_the_offer_by_which_it_goes_back() -> None:
    world = in_vain()
    said = detail(world, BOB, offer("alice", "H3"))
    assert said.endswith(
        "; what bob has begun and passed on in vain goes back by an offer that supersedes the one "
        "which has failed"
    )
    world.do(BOB, offer("alice", "H3", supersedes="H2"))


@pytest.mark.parametrize("who", [HUMAN, COORDINATOR, ORCHESTRATOR], ids=lambda who: who.name)
def test_to_one_who_had_it_earlier_it_is_given_by_hand(who: Actor) -> None:
    world = World(replace(task("T", "ready", "bob"), chain=("zoe", "alice", "bob")))
    said = detail(world, BOB, offer("zoe"))
    before = "zoe has owned it before (zoe → alice → bob)"
    assert said == f"{before}: {BY_HAND.format('zoe')}"
    world.do(who, EditTask("T", assignee="zoe"))


def test_to_reassign_it_to_whoever_handed_it_over_is_to_reject_it() -> None:
    said = detail(activated(), COORDINATOR, ReassignHandoff("H", "alice"))
    assert said == "alice has handed it over by H: reject H to give it back"
    said = detail(accepted(), COORDINATOR, ReassignHandoff("H", "alice"))
    assert said == "alice has it now: name somebody else"
    said = detail(accepted(), COORDINATOR, ReassignHandoff("H", "bob"))
    assert said == "bob is the recipient of H: name another one"


def test_of_what_was_superseded_again_and_again_the_last_is_named() -> None:
    world = in_vain()
    again(world, BOB, offer("dave", "H3", supersedes="H2"), "third")
    again(world, DAVE, RejectHandoff("H3", "other", "busy"), "no-third")
    said = detail(world, BOB, offer("erin", "H4", supersedes="H"))
    assert said == "supersedes: H3 has taken the place of H: name that one"
    world.do(BOB, offer("erin", "H4", supersedes="H3"))


@pytest.mark.parametrize(
    ("build", "where", "who"),
    [(accepted, "on its way to bob", ", or its sender withdraw it"), (activated, "bob's", "")],
)
def test_what_is_handed_over_is_given_to_nobody_else_before_that_is_over(
    build: Callable[[], World], where: str, who: str
) -> None:
    world = build()
    edit = EditTask("T", assignee="carol")
    assert detail(world, HUMAN, edit) == (
        f"T is {where} by H: bob or a coordinator has to reject that handoff first{who}"
    )
    world.do(COORDINATOR, RejectHandoff("H", "other", "back"))
    assert world.tasks["T"].handoff is None
    if who:
        build().do(ALICE, WithdrawHandoff("H"))


@pytest.mark.parametrize(
    ("build", "who", "where", "may"),
    [
        (lambda: at("proposed"), ALICE, "on its way to bob", True),
        (lambda: at("proposed"), BOB, "on its way to bob", False),
        (accepted, BOB, "on its way to bob", True),
        (activated, BOB, "bob's", True),
        (activated, ALICE, "bob's", False),
    ],
)
def test_who_may_put_another_offer_in_the_place_of_one_is_told_how(
    build: Callable[[], World], who: Actor, where: str, may: bool
) -> None:
    world = build()
    instead = ": offer it in the place of that (supersedes H)" if may else ""
    assert detail(world, who, offer("carol", "H2")) == f"T is {where} already, by H{instead}"
    code = world.code(who, offer("carol", "H2", supersedes="H"))
    assert code == ("" if may else "ownership_conflict")


def test_nor_is_it_delegated() -> None:
    world = registry()
    world.put(task("T", "ready"))
    world.do(ALICE, offer())
    asked = DelegateIntent(GOAL, "T", candidates=ranked(world))
    assert detail(world, HUMAN, asked).startswith("T is on its way to bob by H: ")


@pytest.mark.parametrize("status", ["backlog", "blocked", "review", "deadletter"])
@pytest.mark.parametrize("helper", [HUMAN, COORDINATOR, ORCHESTRATOR], ids=lambda who: who.name)
@pytest.mark.parametrize("is_given", [False, True])
def test_what_is_nobodys_is_made_ready_or_given_before_it_is_handed_over(
    status: Any, helper: Actor, is_given: bool
) -> None:
    world = World(task("T", status))
    assert detail(world, ALICE, offer()) == (
        f"T is {status} and nobody's: a person, an orchestrator or a coordinator has to make it "
        "ready, or give it to alice, before alice can hand it over"
    )
    world.do(helper, EditTask("T", assignee="alice") if is_given else MoveTask("T", "ready"))
    world.do(ALICE, offer())


@pytest.mark.parametrize("helper", [ALICE, HUMAN, COORDINATOR, ORCHESTRATOR])
def test_whoever_is_named_can_make_a_blocked_task_ready(helper: Actor) -> None:
    world = blocked()
    assert detail(world, BOB, ActivateHandoff("H")) == (
        "T is blocked: alice, a person, a coordinator or an orchestrator has to make it ready first"
    )
    world.do(helper, MoveTask("T", "ready"))
    world.do(BOB, ActivateHandoff("H"))


@pytest.mark.parametrize("helper", [HUMAN, COORDINATOR, ORCHESTRATOR])
def test_whoever_is_named_can_take_a_task_out_of_the_deadletter(helper: Actor) -> None:
    world = dead()
    del world.leases["T"]
    assert detail(world, BOB, ActivateHandoff("H")) == (
        "T is in the deadletter: a person, a coordinator or an orchestrator has to make it ready; "
        "what bob can do now is reject"
    )
    world.do(helper, MoveTask("T", "ready"))
    world.do(BOB, ActivateHandoff("H"))


def test_what_was_put_aside_is_completed_as_the_refusal_says() -> None:
    world = stopped()
    assert detail(world, BOB, CompleteHandoff("H")) == (
        "bob does not hold T any more: T is blocked: bob, a person, a coordinator or an "
        "orchestrator has to make it ready first; then activate H again, then complete it"
    )
    again(world, BOB, MoveTask("T", "ready"), "ready")
    again(world, BOB, ActivateHandoff("H"), "again")
    again(world, BOB, CompleteHandoff("H"), "done")


@pytest.mark.parametrize(
    ("where", "action", "whose"),
    [
        ("proposed", "accept", "bob"),
        ("proposed", "withdraw", "alice"),
        ("accepted", "activate", "bob"),
        ("activated", "complete", "bob"),
        ("activated", "reject", "bob or a coordinator"),
        ("activated", "reassign", "a coordinator"),
        ("activated", "extend_sla", "a coordinator"),
        ("rejected", "close", "alice or a coordinator"),
    ],
)
def test_an_action_is_for_those_that_a_stranger_is_told_it_is_for(
    where: str, action: str, whose: str
) -> None:
    world = WORLDS[where]()
    assert detail(world, CAROL, ACTIONS[action](world)) == (
        f"agent:carol may not {action} H: that is for {whose}"
    )
    for name, actor in (("alice", ALICE), ("bob", BOB), ("coordinator", COORDINATOR)):
        if name in whose:
            assert world.code(actor, ACTIONS[action](world)) == ""


def test_an_approval_is_for_another_person() -> None:
    said = detail(at("proposed"), BOB, ApproveHandoff("H"))
    assert said.endswith("that is for a person other than its sender and its recipient")
