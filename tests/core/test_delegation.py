"""AOF delegation: request, acceptance, rejection and escalation of a part of a task."""

from typing import get_args

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Status
from dragoman.core.delegation import (
    DELEGATION_TRANSITIONS,
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import ActivateHandoff, RejectHandoff
from dragoman.core.task_state import (
    ActiveHandoff,
    CreateTask,
    Delegation,
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    DelegationState,
    EditTask,
    LinkTask,
    MoveTask,
    TaskBacklinked,
    TaskLinked,
    TaskTransitioned,
)
from tests.core.handoffs import accept, offer, package
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
    with_fields,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)
CAROL = Actor("agent", "carol")
DUE = NOW + 60_000

REQUEST = RequestDelegation(
    "CC",
    "T",
    "bob",
    DUE,
    ("All tests pass", "Update docs"),
    ("tests/report.md",),
    ("src/api/users.ts",),
    ("No new dependencies",),
)


def with_child(child: Status = "ready") -> World:
    """World in which alice holds T, and CC exists."""
    world = held()
    world.put(task("CC", child))
    return world


@proves("ACP-DELEGATED")
def test_active_handoff_refuses_delegation_and_its_acceptance() -> None:
    active_handoff = ActiveHandoff("H", "alice", "carol")
    world = with_fields(with_child(), "CC", handoff=active_handoff)
    for answer in (world.decide(ALICE, REQUEST), world.decide(HUMAN, REQUEST)):
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    world = with_fields(requested(), "CC", handoff=active_handoff)
    answer = world.decide(BOB, AcceptDelegation("CC"))
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert world.code(BOB, RejectDelegation("CC")) == ""


def requested(child: Status = "ready") -> World:
    """World in which alice has delegated CC to bob."""
    world = with_child()
    world.do(ALICE, REQUEST)
    return with_fields(world, "CC", status=child)


@proves("DELEGATION-REQUEST")
def test_request_is_recorded_with_child_and_links_it_to_parent() -> None:
    world = with_child()
    decision = world.do(ALICE, REQUEST, NOW + 5)
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
        REQUEST.acceptance_criteria,
        REQUEST.expected_outputs,
        REQUEST.context_refs,
        REQUEST.constraints,
    )
    assert world.leases["T"].expires_at == NOW + 5 + TTL, "who delegates is alive"


@proves("DELEGATION-REQUEST", "TASK-LINKS")
def test_child_keeps_existing_parent() -> None:
    world = with_child()
    world.put(task("Q"))
    world.do(HUMAN, LinkTask("CC", "parent", "Q"))
    assert [type(event) for event in events_of(world.do(HUMAN, REQUEST))] == [DelegationRequested]
    assert world.tasks["CC"].parent == "Q"


@proves("DELEGATION-REQUEST", "ROLE-HOLDER")
def test_agent_may_not_delegate_child_of_another_task() -> None:
    world = with_child()
    world.put(task("Q"))
    world.do(HUMAN, LinkTask("CC", "parent", "Q"))
    answer = world.decide(ALICE, REQUEST)
    assert isinstance(answer, Refusal)
    assert (answer.code, "part of Q" in answer.detail) == ("unauthorized_agent", True)


@proves("DELEGATION-REQUEST", "ROLE-HOLDER")
@pytest.mark.parametrize("status", ["ready", "in-progress", "review", "blocked"])
@pytest.mark.parametrize(
    ("owner", "code"), [("carol", "unauthorized_agent"), ("alice", ""), ("bob", "")]
)
def test_agent_may_not_delegate_child_owned_by_third_agent(
    owner: str, code: str, status: Status
) -> None:
    world = with_fields(with_child(status), "CC", assignee=owner)
    if status == "in-progress":
        world.leases["CC"] = lease(owner)
    assert world.code(ALICE, REQUEST) == code
    assert world.code(HUMAN, REQUEST) == ""


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
def test_agent_replaces_only_its_own_or_its_predecessors_request(
    state: DelegationState, from_agent: str, parent: str, holders: tuple[str, ...], may: bool
) -> None:
    world = with_fields(requested(), "T", agents=holders)
    known = world.tasks["CC"].delegation
    assert known is not None
    earlier = replace(known, from_agent=from_agent, parent=parent, state=state, due_by=DUE + 1)
    with_fields(world, "CC", delegation=earlier)
    expected = "" if may or state == "rejected" else "unauthorized_agent"
    assert world.code(ALICE, REQUEST) == expected
    assert world.code(ORCHESTRATOR, REQUEST) == ""


@proves("DELEGATION-REQUEST", "IDEM-REPEAT")
@pytest.mark.parametrize("state", get_args(DelegationState))
def test_repeated_request_is_a_no_op_in_every_state(state: DelegationState) -> None:
    world = requested()
    known = world.tasks["CC"].delegation
    assert known is not None
    with_fields(world, "CC", delegation=replace(known, state=state, escalated=True), status="done")
    repeated = world.do(ALICE, REQUEST, NOW + 9)
    assert repeated.events == ()
    assert world.leases["T"].expires_at == NOW + 9 + TTL
    world.do(HUMAN, MoveTask("T", "blocked"))
    assert world.do(ALICE, REQUEST).events == (), "a repeat, though nobody holds the parent"


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
def test_changed_request_replaces_recorded_one(change: dict[str, object]) -> None:
    world = requested()
    world.do(BOB, AcceptDelegation("CC"))
    world.do(HUB, EscalateDelegation("CC"), DUE)
    decision = world.do(ALICE, replace(REQUEST, **change), NOW + 7)
    assert [type(event) for event in events_of(decision)] == [DelegationRequested]
    replaced = world.tasks["CC"].delegation
    assert replaced is not None
    assert (replaced.state, replaced.escalated) == ("requested", False)
    for field, value in change.items():
        assert getattr(replaced, field) == value


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
def test_delegation_of_held_task_depends_on_role(actor: Actor, code: str) -> None:
    assert with_child().code(actor, REQUEST) == code


@proves("DELEGATION-REQUEST", "ROLE-HOLDER", "LEASE-LOST")
def test_agent_without_valid_lease_on_parent_is_refused() -> None:
    free = World(task(), task("CC"))
    assert free.code(ALICE, REQUEST) == "unauthorized_agent"
    for lost in (held(expires_at=NOW), reclaimed()):
        lost.put(task("CC"))
        assert lost.code(ALICE, REQUEST) == "lease_lost"


@proves("DELEGATION-REQUEST")
def test_agent_delegates_in_its_own_name_only() -> None:
    assert with_child().code(ALICE, replace(REQUEST, from_agent="bob")) == "identity_mismatch"
    world = with_child()
    world.do(ORCHESTRATOR, replace(REQUEST, from_agent="alice"))
    on_behalf = world.tasks["CC"].delegation
    assert on_behalf is not None
    assert on_behalf.from_agent == "alice"
    assert world.do(ALICE, REQUEST).events == (), "the same request, by whom it was made for"


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
def test_invalid_request_is_refused_by_code(change: dict[str, object], code: str) -> None:
    assert with_child().code(ALICE, replace(REQUEST, **change)) == code


@proves("LIMIT-TEXT")
def test_refused_bound_names_index_of_the_item() -> None:
    answer = with_child().decide(ALICE, replace(REQUEST, constraints=("ok", "x" * 4_001)))
    assert isinstance(answer, Refusal)
    assert answer.detail.startswith("constraints[1] has 4001 characters")


@proves("DELEGATION-REQUEST", "TASK-LIFECYCLE")
@pytest.mark.parametrize("status", STATUSES)
def test_final_task_is_not_delegated(status: Status) -> None:
    code = "invalid_transition" if status in ("done", "cancelled") else ""
    assert with_child(status).code(ALICE, REQUEST) == code


@proves("DELEGATION-DEPTH")
def test_delegated_task_may_not_delegate_further() -> None:
    world = requested()
    world.do(BOB, ClaimTask("CC", "bob"))
    world.put(task("DDD"))
    for actor in (BOB, HUMAN, ORCHESTRATOR):
        further = RequestDelegation("DDD", "CC", "carol", DUE)
        assert world.code(actor, further) == "nested_delegation"


@proves("DELEGATION-DEPTH")
def test_parent_of_delegated_task_is_not_delegated() -> None:
    world = requested()
    world.put(task("TOP"))
    upward = RequestDelegation("T", "TOP", "alice", DUE)
    assert world.code(HUMAN, upward) == "nested_delegation"
    world.do(BOB, RejectDelegation("CC"))
    assert world.code(HUMAN, upward) == "", "nobody works for T any longer"


@proves("DELEGATION-DEPTH", "TASK-LINKS")
def test_ancestor_is_not_delegated_to_descendant() -> None:
    world = held()
    world.put(task("UP"))
    world.do(HUMAN, LinkTask("T", "parent", "UP"))
    assert world.code(ALICE, replace(REQUEST, task="UP")) == "link_cycle"


@proves("DELEGATION-ANSWER")
@pytest.mark.parametrize("status", STATUSES)
def test_acceptance_is_recorded_without_status_change(status: Status) -> None:
    world = requested(status)
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
def test_rejection_blocks_unfinished_task(status: Status, reason: str, recorded: str) -> None:
    world = requested(status)
    decision = world.do(BOB, RejectDelegation("CC", reason))
    rejected = DelegationRejected("bob", recorded)
    if status in ("backlog", "ready"):
        moved = TaskTransitioned(status, "blocked", reason or "handoff rejected")
        assert events_of(decision) == [moved, rejected]
        assert decision.receipt.status == world.tasks["CC"].status == "blocked"
    else:
        assert events_of(decision) == [rejected]
        assert decision.receipt.status == world.tasks["CC"].status == status
    assert decision.lease is None
    assert world.do(BOB, RejectDelegation("CC", "again")).events == ()


@proves("DELEGATION-ANSWER", "LEASE-FENCE")
def test_rejection_ends_only_the_rejecters_attempt() -> None:
    own = requested()
    own.do(BOB, AcceptDelegation("CC"))
    own.do(BOB, ClaimTask("CC", "bob"))
    own.do(BOB, RejectDelegation("CC"))
    assert own.tasks["CC"].status == "blocked"
    assert set(own.leases) == {"T"}

    anothers = requested()
    anothers.do(CAROL, ClaimTask("CC", "carol"))
    decision = anothers.do(BOB, RejectDelegation("CC", "not mine"))
    assert events_of(decision) == [DelegationRejected("bob", "not mine")]
    assert anothers.tasks["CC"].status == "in-progress"
    assert set(anothers.leases) == {"T", "CC"}


@proves("DELEGATION-ANSWER")
@pytest.mark.parametrize(
    ("owner", "becomes"), [("carol", "ready"), ("alice", "blocked"), ("bob", "blocked")]
)
def test_rejection_does_not_block_task_of_third_agent(owner: str, becomes: Status) -> None:
    world = requested()
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
def test_delegation_answer_comes_only_from_requested_agent(
    actor: Actor, code: str, answer: AcceptDelegation | RejectDelegation
) -> None:
    assert requested().code(actor, answer) == code


@proves("DELEGATION-ANSWER", "REFUSAL-CODES")
def test_delegation_answer_without_request_is_refused() -> None:
    for answer in (AcceptDelegation("CC"), RejectDelegation("CC")):
        assert with_child().code(BOB, answer) == "invalid_transition"
        assert with_child().code(BOB, replace(answer, task="nowhere")) == "task_not_found"
    assert requested().code(BOB, RejectDelegation("CC", "x" * 4_001)) == "invalid_field"


@proves("DELEGATION-ANSWER")
def test_delegation_answers_in_every_state() -> None:
    answers = {"accepted": AcceptDelegation("CC"), "rejected": RejectDelegation("CC", "no")}
    allowed = {
        ("requested", "accepted"),
        ("requested", "rejected"),
        ("accepted", "rejected"),
        ("accepted", "accepted"),
        ("rejected", "rejected"),
    }
    for state in get_args(DelegationState):
        for answer, command in answers.items():
            world = requested()
            if state != "requested":
                world.do(BOB, answers[state])
            code = "" if (state, answer) in allowed else "invalid_transition"
            assert world.code(BOB, command) == code
    assert set(DELEGATION_TRANSITIONS) == set(get_args(DelegationState))


@proves("DELEGATION-SLA")
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("state", get_args(DelegationState))
def test_overdue_delegation_is_escalated_once_without_status_change(
    state: DelegationState, status: Status
) -> None:
    world = requested(status)
    known = world.tasks["CC"].delegation
    assert known is not None
    with_fields(world, "CC", delegation=replace(known, state=state))
    assert world.do(HUB, EscalateDelegation("CC"), DUE - 1).events == ()
    decision = world.do(HUB, EscalateDelegation("CC"), DUE)
    is_waited_for = state != "rejected" and status not in ("done", "cancelled")
    assert events_of(decision) == ([DelegationEscalated(DUE)] if is_waited_for else [])
    assert world.do(HUB, EscalateDelegation("CC"), DUE + 9).events == ()
    assert world.tasks["CC"].status == status


@proves("DELEGATION-SLA", "ROLE-TABLE")
def test_escalation_permission_depends_on_role() -> None:
    for actor in (HUB, HUMAN, ORCHESTRATOR):
        assert requested().code(actor, EscalateDelegation("CC"), DUE) == ""
    for actor in (ALICE, BOB, COORDINATOR, OBSERVER, FILE):
        assert requested().code(actor, EscalateDelegation("CC"), DUE) == "not_authorized"
    assert requested().code(HUB, EscalateDelegation("nowhere"), DUE) == "task_not_found"
    assert with_child().do(HUB, EscalateDelegation("CC"), DUE).events == ()


@proves("DELEGATION-ANSWER", "LEASE-HEARTBEAT")
def test_delegation_answer_by_holder_renews_its_lease() -> None:
    world = requested("in-progress")
    world.leases["CC"] = lease("bob", 1)
    with_fields(world, "CC", assignee="bob", attempts=1, fence=1, agents=("bob",))
    world.do(BOB, AcceptDelegation("CC"), NOW + 50)
    assert world.leases["CC"].expires_at == NOW + 50 + TTL


# --- created and requested at once ------------------------------------------------------------

PART = CreateTask(
    "a part",
    id="P",
    ready=True,
    assignee="bob",
    parent="T",
    due_by=DUE,
    acceptance_criteria=("all tests pass",),
    expected_outputs=("outputs/part.md",),
    context_refs=("docs/plan.md",),
    constraints=("no network",),
)


@proves("DELEGATION-ATOMIC")
def test_task_with_deadline_is_created_and_delegated_in_one_decision() -> None:
    world = held()
    decision = world.do(ALICE, PART)
    assert [type(event).__name__ for event in events_of(decision)] == [
        "TaskCreated",
        "TaskBacklinked",
        "DelegationRequested",
    ]
    assert world.tasks["P"].depth == 1
    assert world.tasks["P"].delegation == Delegation(
        "T",
        "alice",
        "bob",
        DUE,
        acceptance_criteria=("all tests pass",),
        expected_outputs=("outputs/part.md",),
        context_refs=("docs/plan.md",),
        constraints=("no network",),
    )
    assert decision.lease is not None
    assert decision.lease.task == "T"


@proves("DELEGATION-ATOMIC")
@pytest.mark.parametrize(
    ("actor", "changes", "code"),
    [
        (BOB, {}, "unauthorized_agent"),
        (ALICE, {"parent": ""}, "invalid_field"),
        (ALICE, {"assignee": ""}, "invalid_field"),
        (ALICE, {"due_by": None}, "invalid_field"),
        (ALICE, {"due_by": 10**18}, "invalid_field"),
        (ALICE, {"constraints": ("x" * 10_000,)}, "invalid_field"),
        (ALICE, {"parent": "nowhere"}, "parent_not_found"),
        (OBSERVER, {}, "not_authorized"),
    ],
)
def test_part_that_cannot_be_delegated_is_not_created(
    actor: Actor, changes: dict[str, object], code: str
) -> None:
    assert held().code(actor, replace(PART, **changes)) == code


@proves("DELEGATION-ATOMIC", "DELEGATION-DEPTH")
def test_part_of_delegated_work_is_not_created() -> None:
    world = held()
    world.do(ALICE, PART)
    world.do(BOB, ClaimTask("P", "bob"))
    assert world.code(BOB, replace(PART, id="Q", parent="P", assignee="carol")) == (
        "nested_delegation"
    )


# --- handed over after the delegation ---------------------------------------------------------


def handed_over() -> World:
    """World in which bob, the delegate of P, has handed it over to carol, who works on it."""
    world = held()
    world.do(ALICE, PART)
    world.do(BOB, ClaimTask("P", "bob"))
    parts = package()
    parts["task"]["task_id"] = "P"
    world.do(BOB, replace(offer("carol", package=parts), task="P"))
    world.do(CAROL, accept(world))
    world.do(CAROL, ActivateHandoff("H"))
    return world


@proves("DELEGATION-HANDED-OVER")
def test_former_delegate_may_not_reject_work_that_another_agent_has_by_a_handoff() -> None:
    world = handed_over()
    refusal = world.decide(BOB, RejectDelegation("P", "not for me"))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.kind) == ("ownership_conflict", "active_handoff")
    assert "P is carol's by H" in refusal.detail
    assert world.tasks["P"].delegation_deadline == DUE
    world.do(HUB, EscalateDelegation("P"), DUE)
    delegation = world.tasks["P"].delegation
    assert delegation is not None
    assert (delegation.state, delegation.escalated) == ("requested", True)


@proves("DELEGATION-HANDED-OVER", "DELEGATION-ANSWER")
def test_delegate_may_reject_again_when_the_handoff_has_given_the_work_back() -> None:
    world = handed_over()
    world.do(CAROL, RejectHandoff("H", "other", "not for me"))
    world.do(BOB, RejectDelegation("P", "not for me"))
    assert world.tasks["P"].status == "blocked"


@proves("DELEGATION-HANDED-OVER", "DELEGATION-ANSWER")
def test_recipient_of_a_handoff_who_is_the_delegate_may_reject() -> None:
    world = held()
    world.do(ALICE, replace(PART, assignee="bob"))
    found = world.tasks["P"]
    world.put(replace(found, handoff=ActiveHandoff("H", "alice", "bob", is_taken=True)))
    assert world.code(BOB, RejectDelegation("P", "not for me")) == ""
