"""Delegation: who may offer what to whom, what the other may say to it, and when it is late."""

from typing import get_args

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AcceptDelegation,
    ClaimTask,
    EditTask,
    EscalateDelegation,
    LinkTask,
    MoveTask,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.deciding.tasks.delegation import ANSWERS
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    Status,
    TaskBacklinked,
    TaskLinked,
    TaskTransitioned,
)
from dragoman.core.states.task import ActiveHandoff, Delegation, DelegationState
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
    events_of,
    held,
    lease,
    reclaimed,
    task,
    with_,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)
CAROL = Actor("agent", "carol")
DUE = NOW + 60_000

ASK = RequestDelegation(
    "CC",
    "T",
    "bob",
    DUE,
    ("All tests pass", "Update docs"),
    ("tests/report.md",),
    ("src/api/users.ts",),
    ("No new dependencies",),
)


def world_of(child: Status = "ready") -> World:
    """A world in which alice holds T, and CC stands beside it."""
    world = held()
    world.put(task("CC", child))
    return world


@proves("ACP-DELEGATED")
def test_what_is_handed_over_is_not_delegated_and_no_offer_of_it_is_taken() -> None:
    on_its_way = ActiveHandoff("H", "alice", "carol")
    world = with_(world_of(), "CC", handoff=on_its_way)
    for answer in (world.ask(ALICE, ASK), world.ask(HUMAN, ASK)):
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    world = with_(asked(), "CC", handoff=on_its_way)
    answer = world.ask(BOB, AcceptDelegation("CC"))
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert world.code(BOB, RejectDelegation("CC")) == ""


def asked(child: Status = "ready") -> World:
    """The same after alice has offered CC to bob."""
    world = world_of()
    world.do(ALICE, ASK)
    return with_(world, "CC", status=child)


@proves("DELEGATION-REQUEST")
def test_a_request_is_recorded_with_the_child_and_links_it_to_its_parent() -> None:
    world = world_of()
    decision = world.do(ALICE, ASK, NOW + 5)
    assert decision.events == (
        (
            "task:CC",
            DelegationRequested(
                "T",
                "alice",
                "bob",
                DUE,
                1,
                ("All tests pass", "Update docs"),
                ("tests/report.md",),
                ("src/api/users.ts",),
                ("No new dependencies",),
            ),
        ),
        ("task:CC", TaskLinked("parent", "T")),
        ("task:T", TaskBacklinked("parent", "CC")),
    )
    child = world.tasks["CC"]
    assert decision.receipt.task == "CC"
    assert (child.depth, child.parent, child.status) == (1, "T", "ready")
    assert world.tasks["T"].children == ("CC",)
    assert child.delegation == Delegation(
        "T",
        "alice",
        "bob",
        DUE,
        "requested",
        ASK.acceptance_criteria,
        ASK.expected_outputs,
        ASK.context_refs,
        ASK.constraints,
    )
    assert world.leases["T"].expires_at == NOW + 5 + TTL, "who delegates is alive"


@proves("DELEGATION-REQUEST", "TASK-LINKS")
def test_a_child_that_has_a_parent_keeps_it() -> None:
    world = world_of()
    world.put(task("Q"))
    world.do(HUMAN, LinkTask("CC", "parent", "Q"))
    assert [type(event) for event in events_of(world.do(HUMAN, ASK))] == [DelegationRequested]
    assert world.tasks["CC"].parent == "Q"


@proves("DELEGATION-REQUEST", "ROLE-HOLDER")
def test_an_agent_takes_over_no_part_of_another_task() -> None:
    world = world_of()
    world.put(task("Q"))
    world.do(HUMAN, LinkTask("CC", "parent", "Q"))
    answer = world.ask(ALICE, ASK)
    assert isinstance(answer, Refusal)
    assert (answer.code, "part of Q" in answer.detail) == ("unauthorized_agent", True)


@proves("DELEGATION-REQUEST", "ROLE-HOLDER")
@pytest.mark.parametrize("status", ["ready", "in-progress", "review", "blocked"])
@pytest.mark.parametrize(
    ("owner", "code"), [("carol", "unauthorized_agent"), ("alice", ""), ("bob", "")]
)
def test_an_agent_delegates_what_is_its_own_the_others_or_nobodys(
    owner: str, code: str, status: Status
) -> None:
    world = with_(world_of(status), "CC", assignee=owner)
    if status == "in-progress":
        world.leases["CC"] = lease(owner)
    assert world.code(ALICE, ASK) == code
    assert world.code(HUMAN, ASK) == ""


@proves("DELEGATION-REQUEST", "ROLE-HOLDER")
@pytest.mark.parametrize("state", get_args(DelegationState))
@pytest.mark.parametrize(
    ("from_agent", "parent", "holders", "may"),
    [
        ("alice", "T", ("alice",), True),
        ("boss", "T", ("alice",), False),
        ("carol", "T", ("carol", "alice"), True),
        ("carol", "Q", ("carol", "alice"), False),
    ],
)
def test_an_agent_replaces_its_own_and_its_forerunners_request_and_no_other(
    state: DelegationState, from_agent: str, parent: str, holders: tuple[str, ...], may: bool
) -> None:
    world = with_(asked(), "T", agents=holders)
    known = world.tasks["CC"].delegation
    assert known is not None
    earlier = replace(known, from_agent=from_agent, parent=parent, state=state, due_by=DUE + 1)
    with_(world, "CC", delegation=earlier)
    expected = "" if may or state == "rejected" else "unauthorized_agent"
    assert world.code(ALICE, ASK) == expected
    assert world.code(ORCHESTRATOR, ASK) == ""


@proves("DELEGATION-REQUEST", "IDEM-REPEAT")
@pytest.mark.parametrize("state", get_args(DelegationState))
def test_the_same_request_again_is_a_no_op_whatever_was_answered(state: DelegationState) -> None:
    world = asked()
    known = world.tasks["CC"].delegation
    assert known is not None
    with_(world, "CC", delegation=replace(known, state=state, escalated=True), status="done")
    again = world.do(ALICE, ASK, NOW + 9)
    assert again.events == ()
    assert world.leases["T"].expires_at == NOW + 9 + TTL
    world.do(HUMAN, MoveTask("T", "blocked"))
    assert world.do(ALICE, ASK).events == (), "a repeat, though nobody holds the parent"


@proves("DELEGATION-REQUEST")
@pytest.mark.parametrize(
    "change",
    [
        {"to_agent": "carol"},
        {"due_by": DUE + 1},
        {"acceptance_criteria": ()},
        {"expected_outputs": ("x",)},
        {"context_refs": ()},
        {"constraints": ("x", "y")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_request_replaces_what_was_recorded(change: dict[str, object]) -> None:
    world = asked()
    world.do(BOB, AcceptDelegation("CC"))
    world.do(HUB, EscalateDelegation("CC"), DUE)
    decision = world.do(ALICE, replace(ASK, **change), NOW + 7)
    assert [type(event) for event in events_of(decision)] == [DelegationRequested]
    now_asked = world.tasks["CC"].delegation
    assert now_asked is not None
    assert (now_asked.state, now_asked.escalated) == ("requested", False)
    for field, value in change.items():
        assert getattr(now_asked, field) == value


@proves("DELEGATION-REQUEST", "ROLE-TABLE", "ROLE-HOLDER")
@pytest.mark.parametrize(
    ("actor", "code"),
    [
        (ALICE, ""),
        (HUMAN, ""),
        (ORCHESTRATOR, ""),
        (COORDINATOR, ""),
        (HUB, ""),
        (BOB, "unauthorized_agent"),
        (OBSERVER, "not_authorized"),
        (FILE, "not_authorized"),
    ],
    ids=lambda value: getattr(value, "label", value),
)
def test_who_may_delegate_a_part_of_a_task_that_alice_holds(actor: Actor, code: str) -> None:
    assert world_of().code(actor, ASK) == code


@proves("DELEGATION-REQUEST", "ROLE-HOLDER", "LEASE-LOST")
def test_an_agent_delegates_only_what_it_holds_now() -> None:
    free = World(task(), task("CC"))
    assert free.code(ALICE, ASK) == "unauthorized_agent"
    for lost in (held(expires_at=NOW), reclaimed()):
        lost.put(task("CC"))
        assert lost.code(ALICE, ASK) == "lease_lost"


@proves("DELEGATION-REQUEST")
def test_an_agent_delegates_in_its_own_name_only() -> None:
    assert world_of().code(ALICE, replace(ASK, from_agent="bob")) == "identity_mismatch"
    world = world_of()
    world.do(ORCHESTRATOR, replace(ASK, from_agent="alice"))
    on_behalf = world.tasks["CC"].delegation
    assert on_behalf is not None
    assert on_behalf.from_agent == "alice"
    assert world.do(ALICE, ASK).events == (), "the same request, by whom it was made for"


@proves("DELEGATION-REQUEST", "REFUSAL-CODES")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"task": "nowhere"}, "task_not_found"),
        ({"parent": "nowhere"}, "parent_not_found"),
        ({"task": "nowhere", "parent": "nowhere"}, "task_not_found"),
        ({"parent": "../T"}, "invalid_id"),
        ({"to_agent": ""}, "invalid_id"),
        ({"to_agent": "a b"}, "invalid_id"),
        ({"from_agent": "a b"}, "invalid_id"),
        ({"due_by": 10**15}, "invalid_field"),
        ({"due_by": -(10**15)}, "invalid_field"),
        ({"acceptance_criteria": ("x",) * 1_001}, "invalid_field"),
        ({"expected_outputs": ("x" * 4_001,)}, "invalid_field"),
        ({"context_refs": ("half \ud800",)}, "invalid_field"),
        ({"constraints": ("x" * 4_001,)}, "invalid_field"),
        ({"task": "T"}, "link_cycle"),
    ],
    ids=range(14),
)
def test_what_is_wrong_with_a_request_is_named(change: dict[str, object], code: str) -> None:
    assert world_of().code(ALICE, replace(ASK, **change)) == code


@proves("LIMIT-TEXT")
def test_a_bound_is_told_with_the_place() -> None:
    answer = world_of().ask(ALICE, replace(ASK, constraints=("ok", "x" * 4_001)))
    assert isinstance(answer, Refusal)
    assert answer.detail.startswith("constraints[1] has 4001 characters")


@proves("DELEGATION-REQUEST", "TASK-LIFECYCLE")
@pytest.mark.parametrize("status", STATUSES)
def test_what_has_ended_is_not_delegated(status: Status) -> None:
    code = "invalid_transition" if status in ("done", "cancelled") else ""
    assert world_of(status).code(ALICE, ASK) == code


@proves("DELEGATION-DEPTH")
def test_delegated_work_is_not_delegated_on() -> None:
    world = asked()
    world.do(BOB, ClaimTask("CC", "bob"))
    world.put(task("DDD"))
    for actor in (BOB, HUMAN, ORCHESTRATOR):
        on = RequestDelegation("DDD", "CC", "carol", DUE)
        assert world.code(actor, on) == "nested_delegation"


@proves("DELEGATION-DEPTH")
def test_a_chain_is_not_made_from_its_other_end_either() -> None:
    world = asked()
    world.put(task("TOP"))
    up = RequestDelegation("T", "TOP", "alice", DUE)
    assert world.code(HUMAN, up) == "nested_delegation"
    world.do(BOB, RejectDelegation("CC"))
    assert world.code(HUMAN, up) == "", "nobody works for T any longer"


@proves("DELEGATION-DEPTH", "TASK-LINKS")
def test_a_parent_is_not_delegated_to_its_own_part() -> None:
    world = held()
    world.put(task("UP"))
    world.do(HUMAN, LinkTask("T", "parent", "UP"))
    assert world.code(ALICE, replace(ASK, task="UP")) == "link_cycle"


@proves("DELEGATION-ANSWER")
@pytest.mark.parametrize("status", STATUSES)
def test_an_acceptance_is_recorded_and_moves_nothing(status: Status) -> None:
    world = asked(status)
    decision = world.do(BOB, AcceptDelegation("CC"), NOW + 2)
    assert decision.events == (("task:CC", DelegationAccepted("bob")),)
    accepted = world.tasks["CC"]
    assert (accepted.status, accepted.updated_at, accepted.moved_at) == (status, NOW + 2, NOW)
    assert accepted.delegation is not None
    assert accepted.delegation.state == "accepted"
    assert world.do(BOB, AcceptDelegation("CC")).events == ()


@proves("DELEGATION-ANSWER")
@pytest.mark.parametrize("status", [s for s in STATUSES if s != "in-progress"])
@pytest.mark.parametrize(("reason", "recorded"), [("too vague", "too vague"), ("", "")])
def test_a_rejection_blocks_what_is_still_to_be_done(
    status: Status, reason: str, recorded: str
) -> None:
    world = asked(status)
    decision = world.do(BOB, RejectDelegation("CC", reason))
    said = DelegationRejected("bob", recorded)
    if status in ("backlog", "ready"):
        moved = TaskTransitioned(status, "blocked", reason or "handoff rejected")
        assert events_of(decision) == [moved, said]
        assert decision.receipt.status == world.tasks["CC"].status == "blocked"
    else:
        assert events_of(decision) == [said]
        assert decision.receipt.status == world.tasks["CC"].status == status
    assert decision.lease is None
    assert world.do(BOB, RejectDelegation("CC", "again")).events == ()


@proves("DELEGATION-ANSWER", "LEASE-FENCE")
def test_a_rejection_ends_the_rejecters_own_attempt_and_nobody_elses() -> None:
    own = asked()
    own.do(BOB, AcceptDelegation("CC"))
    own.do(BOB, ClaimTask("CC", "bob"))
    own.do(BOB, RejectDelegation("CC"))
    assert own.tasks["CC"].status == "blocked"
    assert set(own.leases) == {"T"}

    anothers = asked()
    anothers.do(CAROL, ClaimTask("CC", "carol"))
    decision = anothers.do(BOB, RejectDelegation("CC", "not mine"))
    assert events_of(decision) == [DelegationRejected("bob", "not mine")]
    assert anothers.tasks["CC"].status == "in-progress"
    assert set(anothers.leases) == {"T", "CC"}


@proves("DELEGATION-ANSWER")
@pytest.mark.parametrize(
    ("owner", "becomes"), [("carol", "ready"), ("alice", "blocked"), ("bob", "blocked")]
)
def test_a_rejection_does_not_stop_what_was_given_to_a_third(owner: str, becomes: Status) -> None:
    world = asked()
    world.do(HUMAN, EditTask("CC", assignee=owner))
    world.do(BOB, RejectDelegation("CC", "not mine"))
    assert world.tasks["CC"].status == becomes
    delegation = world.tasks["CC"].delegation
    assert delegation is not None
    assert delegation.state == "rejected"


@proves("DELEGATION-ANSWER", "ROLE-TABLE")
@pytest.mark.parametrize("answer", [AcceptDelegation("CC"), RejectDelegation("CC", "no")])
@pytest.mark.parametrize(
    ("actor", "code"),
    [
        (BOB, ""),
        (Actor("orchestrator", "bob"), ""),
        (ALICE, "unauthorized_agent"),
        (CAROL, "unauthorized_agent"),
        (HUMAN, "unauthorized_agent"),
        (ORCHESTRATOR, "unauthorized_agent"),
        (COORDINATOR, "unauthorized_agent"),
        (HUB, "unauthorized_agent"),
        (OBSERVER, "not_authorized"),
        (FILE, "not_authorized"),
        (Actor("observer", "bob"), "not_authorized"),
    ],
    ids=lambda value: getattr(value, "label", None),
)
def test_only_who_was_asked_answers(
    actor: Actor, code: str, answer: AcceptDelegation | RejectDelegation
) -> None:
    assert asked().code(actor, answer) == code


@proves("DELEGATION-ANSWER", "REFUSAL-CODES")
def test_an_answer_to_nothing_is_refused() -> None:
    for answer in (AcceptDelegation("CC"), RejectDelegation("CC")):
        assert world_of().code(BOB, answer) == "invalid_transition"
        assert world_of().code(BOB, replace(answer, task="nowhere")) == "task_not_found"
    assert asked().code(BOB, RejectDelegation("CC", "x" * 4_001)) == "invalid_field"


@proves("DELEGATION-ANSWER")
def test_the_answers_by_every_pair() -> None:
    says = {"accepted": AcceptDelegation("CC"), "rejected": RejectDelegation("CC", "no")}
    allowed = {
        ("requested", "accepted"),
        ("requested", "rejected"),
        ("accepted", "rejected"),
        ("accepted", "accepted"),
        ("rejected", "rejected"),
    }
    for state in get_args(DelegationState):
        for answer, command in says.items():
            world = asked()
            if state != "requested":
                world.do(BOB, says[state])
            code = "" if (state, answer) in allowed else "invalid_transition"
            assert world.code(BOB, command) == code
    assert set(ANSWERS) == set(get_args(DelegationState))


@proves("DELEGATION-SLA")
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("state", get_args(DelegationState))
def test_what_is_late_is_escalated_once_and_nothing_moves(
    state: DelegationState, status: Status
) -> None:
    world = asked(status)
    known = world.tasks["CC"].delegation
    assert known is not None
    with_(world, "CC", delegation=replace(known, state=state))
    assert world.do(HUB, EscalateDelegation("CC"), DUE - 1).events == ()
    decision = world.do(HUB, EscalateDelegation("CC"), DUE)
    is_waited_for = state != "rejected" and status not in ("done", "cancelled")
    assert events_of(decision) == ([DelegationEscalated(DUE)] if is_waited_for else [])
    assert world.do(HUB, EscalateDelegation("CC"), DUE + 9).events == ()
    assert world.tasks["CC"].status == status


@proves("DELEGATION-SLA", "ROLE-TABLE")
def test_who_may_escalate() -> None:
    for actor in (HUB, HUMAN, ORCHESTRATOR):
        assert asked().code(actor, EscalateDelegation("CC"), DUE) == ""
    for actor in (ALICE, BOB, COORDINATOR, OBSERVER, FILE):
        assert asked().code(actor, EscalateDelegation("CC"), DUE) == "not_authorized"
    assert asked().code(HUB, EscalateDelegation("nowhere"), DUE) == "task_not_found"
    assert world_of().do(HUB, EscalateDelegation("CC"), DUE).events == ()


@proves("DELEGATION-ANSWER", "LEASE-HEARTBEAT")
def test_an_answer_of_the_childs_holder_renews_its_lease() -> None:
    world = asked("in-progress")
    world.leases["CC"] = lease("bob", 1)
    with_(world, "CC", assignee="bob", attempts=1, fence=1, agents=("bob",))
    world.do(BOB, AcceptDelegation("CC"), NOW + 50)
    assert world.leases["CC"].expires_at == NOW + 50 + TTL
