"""Delegation of intents: descriptions of agents, candidates, vetoes, follow-ups, cancellation."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import (
    AgentDescriptor,
    AgentRecord,
    DescribeAgent,
    Reputation,
    Trust,
    reputation_list_keys,
)
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.intent.candidate import Policy
from dragoman.core.intent.state import (
    CancelIntent,
    DelegateIntent,
    IntentProposed,
    IntentRejected,
    ReceiveResult,
    intent_list_keys,
)
from dragoman.core.limits import MAX_SKILLS
from dragoman.core.read import Decision
from dragoman.core.task_state import CreateTask, MoveTask
from tests.core.intents import (
    CAROL,
    GOAL,
    HOUR,
    delegate_intent,
    event_names,
    open_request,
    rank_candidates,
    registry,
    reputation_of,
    submit_result,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    FILE,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    events_of,
    lease,
    task,
)
from tests.requirements import proves

pytestmark = proves("CCOS-LIFE")

FORBIDDEN = Policy(forbidden_goals=("python tests",))


@proves("CCOS-DESCRIPTOR")
@pytest.mark.parametrize(
    ("actor", "requested", "before", "expected"),
    [
        (HUMAN, None, None, "T1"),
        (HUMAN, "T2", None, "T2"),
        (ORCHESTRATOR, None, "T2", "T2"),
        (HUMAN, "T0", "T2", "T0"),
        (ALICE, None, None, "T0"),
        (ALICE, "T2", None, "T0"),
        (ALICE, "T2", "T1", "T1"),
        (ALICE, "T0", "T1", "T0"),
        (ALICE, None, "T1", "T1"),
    ],
)
def test_trust_tier_is_set_by_others(
    actor: Actor, requested: Trust | None, before: Trust | None, expected: Trust
) -> None:
    world = World()
    world.agents["alice"] = AgentRecord("alice", "agent", (), NOW)
    if before is not None:
        world.do(HUMAN, DescribeAgent("alice", ("python", "rust"), trust=before))
    world.do(actor, DescribeAgent("alice", ("python",), trust=requested))
    descriptor = reputation_of(world, "alice").descriptor
    assert descriptor == AgentDescriptor(("python",), trust=expected)


@proves("CCOS-DESCRIPTOR")
def test_repeated_description_is_a_no_op_and_new_one_keeps_results() -> None:
    world = registry("alice")
    repeated = world.do(HUMAN, DescribeAgent("alice", ("python", "tests", "python")))
    assert repeated.events == ()
    assert repeated.receipt.stream == "reputation:alice"
    delegate_intent(world)
    submit_result(world)
    world.do(HUMAN, DescribeAgent("alice", ("rust",), ("fast",), ("eu",), None, 2.5, 100, 3, "q"))
    known = reputation_of(world, "alice")
    assert known.descriptor == AgentDescriptor(
        ("rust",), ("fast",), ("eu",), "T1", 2.5, 100, 3, "q"
    )
    assert (known.successes, known.assigned, known.open) == (1, 1, 0)


@proves("CCOS-DESCRIPTOR", "CCOS-GOVERNANCE")
@pytest.mark.parametrize(
    ("trust", "command", "expected"),
    [
        (
            "T2",
            DescribeAgent(
                "alice", ("paint", "rule"), ("kind",), ("eu", "us"), "T2", 0, 0, 0, "new"
            ),
            AgentDescriptor(("paint",), (), ("us",), "T2", 50, 900, 1, "new"),
        ),
        (
            "T1",
            DescribeAgent("alice", ("rule",), ("fast",), (), None, 60, 1_000, 7),
            AgentDescriptor(("paint", "cook"), ("fast",), ("us",), "T1", 60, 1_000, 1),
        ),
        (
            "T1",
            DescribeAgent("alice", ("rule",), (), ("eu",), "T0"),
            AgentDescriptor(("rule",), (), ("eu",), "T0"),
        ),
        ("T0", DescribeAgent("alice", ("rule",)), AgentDescriptor(("rule",))),
    ],
    ids=["loosens", "tightens", "lowers its trust", "unvouched"],
)
def test_agent_may_tighten_but_not_loosen_its_description(
    trust: Trust, command: DescribeAgent, expected: AgentDescriptor
) -> None:
    world = World()
    world.agents["alice"] = AgentRecord("alice", "agent", (), NOW)
    known = DescribeAgent("alice", ("paint", "cook"), ("fast",), ("us",), trust, 50, 900, 1)
    world.do(HUMAN, known)
    world.do(ALICE, command)
    assert reputation_of(world, "alice").descriptor == expected


@proves("CCOS-DESCRIPTOR")
@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (BOB, DescribeAgent("alice", ("x",)), "not_authorized"),
        (COORDINATOR, DescribeAgent("alice", ("x",)), "not_authorized"),
        (OBSERVER, DescribeAgent("alice", ("x",)), "not_authorized"),
        (ORCHESTRATOR, DescribeAgent("hera", ("x",)), "not_authorized"),
        (HUMAN, DescribeAgent("nobody", ("x",)), "agent_not_found"),
        (HUMAN, DescribeAgent("no body", ("x",)), "invalid_id"),
        (HUMAN, DescribeAgent("alice", ()), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",) * (MAX_SKILLS + 1)), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("",)), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("best agent for everything",)), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), cost=-1), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), cost=float("nan")), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), cost=float("inf")), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), latency_ms=-1), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), capacity=-1), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), reach="x" * 5_000), "invalid_field"),
        (HUMAN, DescribeAgent("alice", ("x",), ("\ud800",)), "invalid_field"),
    ],
)
def test_description_refusals(actor: Actor, command: Command, code: str) -> None:
    world = registry("alice")
    world.agents["hera"] = AgentRecord("hera", "human", (), NOW)
    assert world.code(actor, command) == code


def test_goal_is_dispatched_to_first_candidate() -> None:
    world = registry()
    command = DelegateIntent(
        GOAL, "i", {"path": "x"}, patience_ms=HOUR, candidates=rank_candidates(world)
    )
    decision = world.do(HUMAN, command)
    assert event_names(decision, "intent:i") == [
        "IntentCreated",
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    assert event_names(decision, "task:i") == ["TaskCreated", "TaskEdited", "TaskTransitioned"]
    assert event_names(decision, "reputation:alice") == ["AgentAssigned"]
    assert (decision.receipt.task, decision.receipt.status) == ("i", "ready")
    assert decision.receipt.stream == "intent:i"
    intent, found = world.intents["i"], world.tasks["i"]
    assert (intent.state, intent.by, intent.params) == ("TaskDispatched", "hera", {"path": "x"})
    request = open_request(world)
    assert (request.id, request.agent, request.number) == ("i.1", "alice", 1)
    assert request.deadline == intent.deadline == NOW + HOUR
    assert (found.title, found.assignee, found.reserved_for) == (GOAL, "alice", "alice")
    assert not found.review_required
    assert (found.origin, found.aliases) == ("ccos", ("intent:i",))
    assert reputation_of(world, "alice").open == 1


def test_intent_without_id_and_patience_gets_id_and_no_deadline() -> None:
    world = registry()
    world.do(ALICE, DelegateIntent("one\nline of python tests", candidates=rank_candidates(world)))
    intent = world.intents["cause-1"]
    assert (intent.by, intent.deadline) == ("alice", None)
    assert world.tasks["cause-1"].title == "one"
    assert world.tasks["cause-1"].body == "one\nline of python tests"


def test_existing_task_can_be_delegated() -> None:
    world = registry()
    world.do(HUMAN, CreateTask("Parser tests", "T", ready=True, assignee="dora"))
    decision = world.do(ORCHESTRATOR, DelegateIntent(GOAL, "T", candidates=rank_candidates(world)))
    assert event_names(decision, "task:T") == ["TaskAliased", "TaskEdited"]
    assert world.tasks["T"].assignee == "alice"
    assert world.intents["T"].task == "T"
    world.do(HUMAN, CreateTask("Known", "UU", ready=True, aliases=("intent:u",)))
    assert "TaskAliased" not in event_names(world.do(HUMAN, DelegateIntent(GOAL, "u")), "task:")
    assert world.intents["u"].task == "UU"


def test_existing_task_is_not_delegated_by_agent_or_while_held() -> None:
    world = registry()
    world.do(HUMAN, CreateTask("T", "T", ready=True))
    assert world.code(ALICE, DelegateIntent(GOAL, "T")) == "not_authorized"
    world.do(BOB, ClaimTask("T", "bob"))
    assert world.code(HUMAN, DelegateIntent(GOAL, "T")) == "not_ready"
    world.put(task("D", "done"))
    assert world.code(HUMAN, DelegateIntent(GOAL, "D")) == "not_ready"
    world.put(task("LL", "ready"))
    world.leases["LL"] = lease()
    assert world.code(HUMAN, DelegateIntent(GOAL, "LL")) == "not_ready"
    world.put(replace(task("X"), aliases=("bead:b",)))
    world.put(replace(task("YY"), aliases=("mail:b",)))
    assert world.code(HUMAN, DelegateIntent(GOAL, "b")) == "ambiguous_name"


@proves("CCOS-GOVERNANCE")
def test_veto_leads_to_next_candidate() -> None:
    world = registry()
    world.do(HUMAN, DescribeAgent("alice", ("python", "tests"), cost=0.1, trust="T2"))
    command = DelegateIntent(
        GOAL, "i", candidates=rank_candidates(world), policy=Policy(cost_ceiling=0.05)
    )
    decision = world.do(HUMAN, command)
    assert event_names(decision, "intent:i")[1:] == [
        "IntentProposed",
        "IntentRejected",
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    proposals = [event for event in events_of(decision) if isinstance(event, IntentProposed)]
    assert [len(event.candidates) for event in proposals] == [2, 0]
    assert open_request(world).agent == "bob"


@proves("CCOS-GOVERNANCE")
def test_intent_with_all_candidates_vetoed_is_rejected_and_blocked() -> None:
    world = registry(cost=3.0)
    intent = delegate_intent(world, policy=Policy(cost_ceiling=1))
    assert intent.state == "DelegationRejected"
    assert intent.reasons == ("alice, bob: cost: it costs 3, and 1 is the most",)
    assert world.tasks["i"].status == "blocked"
    assert intent.request is None
    assert "intents:open" not in intent_list_keys(intent)


@proves("CCOS-GOVERNANCE")
def test_forbidden_goal_and_empty_registry_reject_intent() -> None:
    world = registry()
    decision = world.do(
        HUMAN, DelegateIntent(GOAL, "i", candidates=rank_candidates(world), policy=FORBIDDEN)
    )
    rejected = [event for event in events_of(decision) if isinstance(event, IntentRejected)]
    assert [event.agent for event in rejected] == [""]
    assert world.intents["i"].reasons == ("forbidden goal: it has the words 'python tests'",)
    assert delegate_intent(World(), candidates=()).reasons == (
        "nobody in the registry has said what it can do: `dragoman agent add NAME --skill SKILL`",
    )


@proves("CCOS-GOVERNANCE")
@pytest.mark.parametrize("field", ["constraints", "skills"])
def test_forbidden_words_in_constraints_and_skills_reject_intent(field: str) -> None:
    fields: dict[str, Any] = {field: ("delete production",)}
    policy = Policy(forbidden_goals=("delete production",))
    intent = delegate_intent(registry(), policy=policy, **fields)
    assert intent.reasons == ("forbidden goal: it comes with the words 'delete production'",)


@proves("CCOS-GOVERNANCE")
def test_changes_since_ranking_count() -> None:
    world = registry("alice", "bob", capacity=1)
    before = rank_candidates(world)
    delegate_intent(world, "i", candidates=before)
    delegate_intent(world, "j", candidates=before)
    assert open_request(world, "j").agent == "bob"
    assert delegate_intent(world, "k", candidates=before).state == "DelegationRejected"
    submit_result(world)
    assert delegate_intent(world, "l", candidates=before).state == "TaskDispatched"


@proves("CCOS-GOVERNANCE", "CCOS-RETRY")
def test_vetoed_agent_is_dispatched_when_reason_is_gone() -> None:
    world = registry("alice", "bob", "carol", "dave", capacity=1)
    candidates = rank_candidates(world)
    for id in "ab":
        delegate_intent(world, id, candidates=candidates)
    assert delegate_intent(world, max_agents=4, candidates=candidates).vetoed == ("alice", "bob")
    assert open_request(world).agent == "carol"
    # Bob is free again. Alice is not: her veto is recorded already, and not repeated.
    submit_result(world, id="b")
    request = open_request(world)
    failure = ReceiveResult("i", "carol", False, None, "it broke", request.id)
    decision = world.do(CAROL, failure)
    proposals = [event for event in events_of(decision) if isinstance(event, IntentProposed)]
    assert [event.agent for event in proposals] == ["bob"]
    submit_result(world, success=False)
    assert open_request(world).agent == "dave"
    submit_result(world, id="a")
    assert submit_result(world, success=False).state == "TaskDispatched"
    assert open_request(world).agent == "alice"


@proves("CCOS-DUE")
def test_past_deadline_refuses_new_delegation_but_not_repeat() -> None:
    world = registry()
    command = DelegateIntent(GOAL, "i", candidates=rank_candidates(world), due_by=NOW + HOUR)
    assert world.code(HUMAN, replace(command, id="j"), NOW + HOUR) == "invalid_field"
    world.do(HUMAN, command)
    assert world.do(HUMAN, command, NOW + HOUR).events == ()
    world.do(HUMAN, CancelIntent("intent:i"))
    world.do(HUMAN, replace(command, id="k", candidates=()))
    assert world.do(HUMAN, replace(command, id="k"), NOW + HOUR).events == ()
    changed = replace(command, id="k", candidates=(), due_by=NOW + HOUR - 1)
    world.do(HUMAN, changed)
    assert world.do(HUMAN, changed, NOW + HOUR).events == (), "what was said last counts"
    refusal = world.decide(HUMAN, replace(command, id="k"), NOW + HOUR)
    assert isinstance(refusal, Refusal)
    assert refusal.detail == "the deadline 2026-02-09T15:30:00.000Z has passed"
    world.do(HUMAN, replace(command, id="l"))
    world.do(HUMAN, MoveTask("l", "blocked", "the net is down"))
    later = replace(command, id="l", due_by=NOW + 2 * HOUR)
    assert world.do(HUMAN, replace(command, id="l"), NOW + HOUR).events == ()
    assert world.do(HUMAN, later, NOW + HOUR).events != ()


def test_repeated_delegation_is_a_no_op_and_another_goal_is_refused() -> None:
    world = registry()
    delegate_intent(world)
    repeat = DelegateIntent(GOAL, "i", candidates=rank_candidates(world))
    assert world.do(ALICE, repeat).events == ()
    for other, difference in (
        (replace(repeat, goal="another"), "another goal"),
        (replace(repeat, params={"fail": True}), "other params"),
        (replace(repeat, skills=("python",)), "other skills"),
    ):
        refusal = world.decide(HUMAN, other)
        assert isinstance(refusal, Refusal)
        assert (refusal.code, difference in refusal.detail) == ("already_exists", True), refusal
    submit_result(world)
    assert world.do(HUMAN, repeat).events == ()
    del world.tasks["i"]
    world.names.clear()
    assert world.code(HUMAN, repeat) == "task_not_found"


@proves("CCOS-RETRY")
def test_rejected_intent_can_be_delegated_under_new_policy() -> None:
    world = registry(cost=3.0)
    delegate_intent(world, policy=Policy(cost_ceiling=1))
    second = DelegateIntent(
        GOAL, "i", candidates=rank_candidates(world), policy=Policy(cost_ceiling=5)
    )
    assert world.code(BOB, second) == "not_authorized"
    world.do(HUMAN, second)
    intent = world.intents["i"]
    assert (intent.state, intent.policy, intent.reasons) == (
        "TaskDispatched",
        Policy(cost_ceiling=5),
        (),
    )
    assert world.tasks["i"].status == "ready"


@proves("CCOS-RETRY")
def test_second_delegation_may_be_rejected_and_resets_failures() -> None:
    world = registry("alice")
    delegate_intent(world, actor=BOB)
    submit_result(world, success=False)
    assert world.intents["i"].state == "NeedsFollowUp"
    decision = world.do(BOB, DelegateIntent(GOAL, "i"))
    assert event_names(decision) == ["IntentRejected"]
    assert world.tasks["i"].status == "deadletter"
    world.agents["carol"] = AgentRecord("carol", "agent", (), NOW)
    world.do(HUMAN, DescribeAgent("carol", ("python",)))
    delegate_intent(world, candidates=rank_candidates(world))
    assert open_request(world).agent == "carol"
    assert world.tasks["i"].status == "ready"
    submit_result(world, success=False)
    # A new delegation resets the failures of the one before.
    assert open_request(world).agent == "alice"
    assert world.intents["i"].failed == ("carol",)


@pytest.mark.parametrize("to", ["cancelled", "in-progress"])
def test_ended_or_running_intent_is_not_delegated_again(to: str) -> None:
    world = registry(cost=3.0)
    delegate_intent(world, policy=Policy(cost_ceiling=1))
    if to == "cancelled":
        world.do(HUMAN, MoveTask("i", "cancelled"))
    else:
        world.put(replace(world.tasks["i"], status="in-progress"))
    assert (
        world.do(HUMAN, DelegateIntent(GOAL, "i", candidates=rank_candidates(world))).events == ()
    )


@proves("CCOS-FOLLOW-UP")
def test_follow_up_is_linked_and_checked_by_governance() -> None:
    world = registry()
    delegate_intent(world)
    submit_result(world)
    delegate_intent(world, "j", follows="i", plan="p")
    assert world.intents["j"].follows == "i"
    assert {"follows:i", "plan:p", "delegated:alice", "requests", "requests:alice"} <= set(
        intent_list_keys(world.intents["j"])
    )
    assert delegate_intent(world, "k", follows="i", policy=FORBIDDEN).state == "DelegationRejected"
    assert world.code(HUMAN, DelegateIntent(GOAL, "n", follows="none")) == "intent_not_found"


@proves("CCOS-FOLLOW-UP")
def test_attempt_may_follow_up_only_its_own_intent() -> None:
    world = registry()
    delegate_intent(world)
    world.do(ALICE, ClaimTask("i", "alice"))
    own = Actor("agent", "alice", "http", "i", 1)
    assert world.code(own, DelegateIntent(GOAL, "j", follows="i")) == ""
    assert world.code(own, DelegateIntent(GOAL, "j")) == "not_authorized"


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "a b"},
        {"goal": " "},
        {"goal": "x" * 5_000},
        {"params": {"x": float("nan")}},
        {"params": {"x": "y" * 70_000}},
        {"constraints": ("",)},
        {"skills": ("x",) * (MAX_SKILLS + 1)},
        {"patience_ms": 1},
        {"due_by": -1},
        {"max_output_bytes": -1},
        {"plan": "a b"},
        {"follows": "a b"},
        {"max_agents": 0},
        {"candidates": rank_candidates(registry()) * 20},
        {"policy": Policy(forbidden_goals=("x",) * 501)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_malformed_delegation_is_refused(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"goal": GOAL, "id": "i", **wrong}
    answer = registry().decide(HUMAN, DelegateIntent(**fields))
    assert isinstance(answer, Refusal)
    assert answer.code in ("invalid_field", "invalid_id")


@pytest.mark.parametrize("actor", [OBSERVER, FILE])
def test_read_only_role_may_not_delegate(actor: Actor) -> None:
    assert registry().code(actor, DelegateIntent(GOAL, "i")) == "not_authorized"


def test_malformed_intent_id_is_refused() -> None:
    answer = registry().decide(HUMAN, DelegateIntent(GOAL, "-i"))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_id"


def test_only_described_agents_are_on_the_roster() -> None:
    world = registry("alice")
    assert reputation_list_keys(reputation_of(world, "alice")) == ("roster",)
    assert reputation_list_keys(Reputation("carol")) == ()


def test_limit_of_tries_applies_per_delegation() -> None:
    names = ("a1", "a2", "a3", "a4")
    world = registry(*names)
    delegate_intent(world, max_agents=2)
    submit_result(world, success=False)
    submit_result(world, success=False)
    intent = world.intents["i"]
    assert (intent.state, intent.failed) == ("NeedsFollowUp", ("a1", "a2"))
    delegate_intent(world, max_agents=2, candidates=rank_candidates(world))
    submit_result(world, success=False)
    submit_result(world, success=False)
    assert world.intents["i"].agents == names
    assert world.tasks["i"].status == "deadletter"


def test_accepted_delegation_has_no_refusal() -> None:
    world = registry()
    decision = world.decide(CAROL, DelegateIntent(GOAL, "i", candidates=rank_candidates(world)))
    assert isinstance(decision, Decision)
    assert decision.refusal is None


def test_changed_terms_count_or_are_refused() -> None:
    world = registry("alice", "bob")
    delegate_intent(world, plan="p", patience_ms=60_000)
    second = DelegateIntent(
        GOAL, "i", plan="p", patience_ms=90_000, max_agents=2, max_output_bytes=7
    )
    assert world.code(HUMAN, replace(second, plan="q")) == "already_exists"
    assert world.code(HUMAN, replace(second, agent="bob")) == "already_exists"
    assert world.do(HUMAN, replace(second, agent="alice")).events == ()
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, replace(second, candidates=rank_candidates(world)))
    intent = world.intents["i"]
    assert (intent.patience_ms, intent.max_agents, intent.max_output_bytes) == (90_000, 2, 7)
    assert open_request(world).deadline == NOW + 90_000


@proves("CCOS-RESEND")
def test_request_keeps_external_id_and_counts_once() -> None:
    world = registry()
    named = DelegateIntent(
        GOAL, "i", candidates=rank_candidates(world), max_agents=1, request_id="outer.7"
    )
    world.do(HUMAN, named)
    assert open_request(world).id == "outer.7"
    repeated = world.do(HUMAN, named)
    assert (repeated.events, repeated.receipt.is_repeat) == ((), True)
    submit_result(world, success=False)
    # The same request id is a repeat; a new delegation has another id.
    assert world.do(HUMAN, named).events == ()
    world.do(HUMAN, replace(named, request_id="outer.8", candidates=rank_candidates(world)))
    assert open_request(world).id == "outer.8"
    assert world.code(HUMAN, replace(named, request_id="no name")) == "invalid_id"


@proves("CCOS-RESEND")
def test_external_request_id_is_not_assigned_twice() -> None:
    world = registry()
    delegate_intent(world, request_id="i.2")
    submit_result(world, success=False)
    assert open_request(world).id == "i.3"


@proves("CCOS-RESEND")
@pytest.mark.parametrize("request_id", ["R1", "i.1"])
def test_request_id_belongs_to_one_intent(request_id: str) -> None:
    world = registry()
    delegate_intent(world, request_id="R1" if request_id == "R1" else "")
    refusal = world.decide(
        HUMAN, DelegateIntent(GOAL, "j", candidates=rank_candidates(world), request_id=request_id)
    )
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.detail) == (
        "already_exists",
        f"the request id {request_id} is that of a request of intent i: use another one",
    )


@proves("CCOS-RESEND")
def test_hub_skips_request_id_of_another_intent() -> None:
    world = registry()
    delegate_intent(world, "i", request_id="j.1")
    delegate_intent(world, "j")
    assert open_request(world, "j").id == "j.2"


@proves("CCOS-RESEND")
def test_old_request_id_is_recognized_as_repeat() -> None:
    world = registry()
    first = DelegateIntent(
        GOAL, "i", candidates=rank_candidates(world), max_agents=1, request_id="R0"
    )
    world.do(HUMAN, first)
    submit_result(world, success=False)
    world.intents["i"] = replace(world.intents["i"], closed=())
    assert world.do(HUMAN, first).events == ()


@proves("CCOS-CANCEL")
def test_requester_may_cancel_intent() -> None:
    world = registry()
    delegate_intent(world, actor=CAROL)
    world.do(ALICE, ClaimTask("i", "alice"))
    assert world.code(ALICE, CancelIntent("intent:i")) == "not_authorized"
    decision = world.do(CAROL, CancelIntent("intent:i", "no longer needed"))
    assert (world.intents["i"].state, world.tasks["i"].status) == ("NeedsFollowUp", "cancelled")
    assert (world.leases, reputation_of(world, "alice").recent) == ({}, "")
    assert world.intents["i"].reasons == ("cancelled by agent:carol: no longer needed",)
    assert decision.receipt.stream == "intent:i"
    assert world.do(CAROL, CancelIntent("intent:i")).events == ()


@proves("CCOS-CANCEL")
def test_rejected_intent_is_shown_as_cancelled_after_cancellation() -> None:
    world = registry(cost=3.0)
    delegate_intent(world, policy=Policy(cost_ceiling=1))
    assert world.intents["i"].state == "DelegationRejected"
    world.do(HUMAN, CancelIntent("intent:i", "too dear"))
    intent = world.intents["i"]
    assert intent.state == "NeedsFollowUp"
    assert intent.reasons == (f"cancelled by {HUMAN.label}: too dear",)


@proves("CCOS-CANCEL")
def test_cancelling_ended_intent_is_refused_with_its_state() -> None:
    world = registry("alice")
    delegate_intent(world)
    submit_result(world, success=False)
    refusal = world.decide(HUMAN, CancelIntent("intent:i"))
    assert isinstance(refusal, Refusal)
    assert refusal.detail == (
        "i is NeedsFollowUp and its task is deadletter: there is nothing left to cancel"
    )
    world.do(HUMAN, CreateTask("plain", "T"))
    assert world.code(HUMAN, CancelIntent("T")) == "intent_not_found"
    assert world.code(HUMAN, CancelIntent("nothing")) == "task_not_found"
    assert world.code(HUMAN, CancelIntent("intent:i", "x" * 99_999)) == "invalid_field"


@proves("CCOS-GOVERNANCE")
def test_shared_reason_is_listed_once() -> None:
    world = registry(*(f"a{number}" for number in range(7)), cost=3.0)
    intent = delegate_intent(world, policy=Policy(cost_ceiling=1))
    assert intent.reasons == ("a0, a1, a2, a3, a4 and 2 more: cost: it costs 3, and 1 is the most",)
