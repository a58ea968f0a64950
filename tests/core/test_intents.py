"""Delegation: who is described by whom, who is given a goal, and what is rejected and why."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    CancelIntent,
    ClaimTask,
    CreateTask,
    DelegateIntent,
    DescribeAgent,
    MoveTask,
    ReceiveResult,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import IntentProposed, IntentRejected
from dragoman.core.limits import SKILLS
from dragoman.core.offers import Policy, Trust
from dragoman.core.reading import Decision
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.intent import lists_of_intent
from dragoman.core.states.standing import Descriptor, Standing, lists_of_standing
from tests.core.delegating import (
    CAROL,
    GOAL,
    HOUR,
    answer,
    delegated,
    names_of,
    open_request,
    ranked,
    registry,
    standing,
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
    ("actor", "asked", "had", "given"),
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
def test_trust_is_given_by_others(
    actor: Actor, asked: Trust | None, had: Trust | None, given: Trust
) -> None:
    world = World()
    world.agents["alice"] = AgentRecord("alice", "agent", (), NOW)
    if had is not None:
        world.do(HUMAN, DescribeAgent("alice", ("python", "rust"), trust=had))
    world.do(actor, DescribeAgent("alice", ("python",), trust=asked))
    descriptor = standing(world, "alice").descriptor
    assert descriptor == Descriptor(("python",), trust=given)


@proves("CCOS-DESCRIPTOR")
def test_the_same_description_again_is_a_no_op_and_another_keeps_what_was_learned() -> None:
    world = registry("alice")
    again = world.do(HUMAN, DescribeAgent("alice", ("python", "tests", "python")))
    assert again.events == ()
    assert again.receipt.stream == "standing:alice"
    delegated(world)
    answer(world)
    world.do(HUMAN, DescribeAgent("alice", ("rust",), ("fast",), ("eu",), None, 2.5, 100, 3, "q"))
    known = standing(world, "alice")
    assert known.descriptor == Descriptor(("rust",), ("fast",), ("eu",), "T1", 2.5, 100, 3, "q")
    assert (known.successes, known.assigned, known.open) == (1, 1, 0)


@proves("CCOS-DESCRIPTOR", "CCOS-GOVERNANCE")
@pytest.mark.parametrize(
    ("trust", "said", "counts"),
    [
        (
            "T2",
            DescribeAgent(
                "alice", ("paint", "rule"), ("kind",), ("eu", "us"), "T2", 0, 0, 0, "new"
            ),
            Descriptor(("paint",), (), ("us",), "T2", 50, 900, 1, "new"),
        ),
        (
            "T1",
            DescribeAgent("alice", ("rule",), ("fast",), (), None, 60, 1_000, 7),
            Descriptor(("paint", "cook"), ("fast",), ("us",), "T1", 60, 1_000, 1),
        ),
        (
            "T1",
            DescribeAgent("alice", ("rule",), (), ("eu",), "T0"),
            Descriptor(("rule",), (), ("eu",), "T0"),
        ),
        ("T0", DescribeAgent("alice", ("rule",)), Descriptor(("rule",))),
    ],
    ids=["loosens", "tightens", "gives its tier up", "nobody vouches"],
)
def test_an_agent_may_tighten_what_others_vouch_for_and_not_loosen_it(
    trust: Trust, said: DescribeAgent, counts: Descriptor
) -> None:
    world = World()
    world.agents["alice"] = AgentRecord("alice", "agent", (), NOW)
    known = DescribeAgent("alice", ("paint", "cook"), ("fast",), ("us",), trust, 50, 900, 1)
    world.do(HUMAN, known)
    world.do(ALICE, said)
    assert standing(world, "alice").descriptor == counts


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
        (HUMAN, DescribeAgent("alice", ("x",) * (SKILLS + 1)), "invalid_field"),
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
def test_who_may_describe_whom_and_how(actor: Actor, command: AnyCommand, code: str) -> None:
    world = registry("alice")
    world.agents["hera"] = AgentRecord("hera", "human", (), NOW)
    assert world.code(actor, command) == code


def test_a_goal_goes_to_the_first_candidate() -> None:
    world = registry()
    command = DelegateIntent(GOAL, "i", {"path": "x"}, patience_ms=HOUR, candidates=ranked(world))
    decision = world.do(HUMAN, command)
    assert names_of(decision, "intent:i") == [
        "IntentCreated",
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    assert names_of(decision, "task:i") == ["TaskCreated", "TaskEdited", "TaskTransitioned"]
    assert names_of(decision, "standing:alice") == ["AgentAssigned"]
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
    assert standing(world, "alice").open == 1


def test_without_an_id_it_gets_one_and_without_patience_no_deadline() -> None:
    world = registry()
    world.do(ALICE, DelegateIntent("one\nline of python tests", candidates=ranked(world)))
    intent = world.intents["cause-1"]
    assert (intent.by, intent.deadline) == ("alice", None)
    assert world.tasks["cause-1"].title == "one"
    assert world.tasks["cause-1"].body == "one\nline of python tests"


def test_a_task_that_exists_can_be_delegated() -> None:
    world = registry()
    world.do(HUMAN, CreateTask("Parser tests", "T", ready=True, assignee="dora"))
    decision = world.do(ORCHESTRATOR, DelegateIntent(GOAL, "T", candidates=ranked(world)))
    assert names_of(decision, "task:T") == ["TaskAliased", "TaskEdited"]
    assert world.tasks["T"].assignee == "alice"
    assert world.intents["T"].task == "T"
    world.do(HUMAN, CreateTask("Known", "UU", ready=True, aliases=("intent:u",)))
    assert "TaskAliased" not in names_of(world.do(HUMAN, DelegateIntent(GOAL, "u")), "task:")
    assert world.intents["u"].task == "UU"


def test_but_not_by_an_agent_nor_while_somebody_works_on_it() -> None:
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
def test_a_veto_leads_to_the_next_candidate() -> None:
    world = registry()
    world.do(HUMAN, DescribeAgent("alice", ("python", "tests"), cost=0.1, trust="T2"))
    command = DelegateIntent(GOAL, "i", candidates=ranked(world), policy=Policy(cost_ceiling=0.05))
    decision = world.do(HUMAN, command)
    assert names_of(decision, "intent:i")[1:] == [
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
def test_when_all_are_vetoed_it_is_rejected_with_the_reasons_and_its_task_blocked() -> None:
    world = registry(cost=3.0)
    intent = delegated(world, policy=Policy(cost_ceiling=1))
    assert intent.state == "DelegationRejected"
    assert intent.reasons == ("alice, bob: cost: it costs 3, and 1 is the most",)
    assert world.tasks["i"].status == "blocked"
    assert intent.request is None
    assert "intents:open" not in lists_of_intent(intent)


@proves("CCOS-GOVERNANCE")
def test_a_forbidden_goal_and_an_empty_registry_reach_nobody() -> None:
    world = registry()
    decision = world.do(
        HUMAN, DelegateIntent(GOAL, "i", candidates=ranked(world), policy=FORBIDDEN)
    )
    rejected = [event for event in events_of(decision) if isinstance(event, IntentRejected)]
    assert [event.agent for event in rejected] == [""]
    assert world.intents["i"].reasons == ("forbidden goal: it has the words 'python tests'",)
    assert delegated(World(), candidates=()).reasons == (
        "nobody in the registry has said what it can do: `dragoman agent add NAME --skill SKILL`",
    )


@proves("CCOS-GOVERNANCE")
@pytest.mark.parametrize("field", ["constraints", "skills"])
def test_what_is_asked_for_beside_the_goal_is_no_way_round_the_policy(field: str) -> None:
    asked: dict[str, Any] = {field: ("delete production",)}
    policy = Policy(forbidden_goals=("delete production",))
    intent = delegated(registry(), policy=policy, **asked)
    assert intent.reasons == ("forbidden goal: it comes with the words 'delete production'",)


@proves("CCOS-GOVERNANCE")
def test_what_has_changed_since_the_ranking_counts() -> None:
    world = registry("alice", "bob", capacity=1)
    before = ranked(world)
    delegated(world, "i", candidates=before)
    delegated(world, "j", candidates=before)
    assert open_request(world, "j").agent == "bob"
    assert delegated(world, "k", candidates=before).state == "DelegationRejected"
    answer(world)
    assert delegated(world, "l", candidates=before).state == "TaskDispatched"


@proves("CCOS-GOVERNANCE", "CCOS-RETRY")
def test_who_was_turned_down_for_the_moment_is_asked_when_the_reason_is_gone() -> None:
    world = registry("alice", "bob", "carol", "dave", capacity=1)
    candidates = ranked(world)
    for id in "ab":
        delegated(world, id, candidates=candidates)
    assert delegated(world, tries=4, candidates=candidates).turned_down == ("alice", "bob")
    assert open_request(world).agent == "carol"
    # Bob is free again, and alice is not: that was told before, and is not told anew.
    answer(world, id="b")
    request = open_request(world)
    failure = ReceiveResult("i", "carol", False, None, "it broke", request.id)
    decision = world.do(CAROL, failure)
    proposals = [event for event in events_of(decision) if isinstance(event, IntentProposed)]
    assert [event.agent for event in proposals] == ["bob"]
    answer(world, success=False)
    assert open_request(world).agent == "dave"
    answer(world, id="a")
    assert answer(world, success=False).state == "TaskDispatched"
    assert open_request(world).agent == "alice"


@proves("CCOS-DUE")
def test_a_deadline_that_has_passed_keeps_from_beginning_and_not_from_repeating() -> None:
    world = registry()
    asked = DelegateIntent(GOAL, "i", candidates=ranked(world), due_by=NOW + HOUR)
    assert world.code(HUMAN, replace(asked, id="j"), NOW + HOUR) == "invalid_field"
    world.do(HUMAN, asked)
    assert world.do(HUMAN, asked, NOW + HOUR).events == ()
    world.do(HUMAN, CancelIntent("intent:i"))
    world.do(HUMAN, replace(asked, id="k", candidates=()))
    assert world.do(HUMAN, replace(asked, id="k"), NOW + HOUR).events == ()
    anew = replace(asked, id="k", candidates=(), due_by=NOW + HOUR - 1)
    world.do(HUMAN, anew)
    assert world.do(HUMAN, anew, NOW + HOUR).events == (), "what was said last counts"
    refusal = world.ask(HUMAN, replace(asked, id="k"), NOW + HOUR)
    assert isinstance(refusal, Refusal)
    assert refusal.detail == "the deadline 2026-02-09T15:30:00.000Z has passed"
    world.do(HUMAN, replace(asked, id="l"))
    world.do(HUMAN, MoveTask("l", "blocked", "the net is down"))
    later = replace(asked, id="l", due_by=NOW + 2 * HOUR)
    assert world.do(HUMAN, replace(asked, id="l"), NOW + HOUR).events == ()
    assert world.do(HUMAN, later, NOW + HOUR).events != ()


def test_the_same_again_is_a_no_op_and_another_goal_is_refused() -> None:
    world = registry()
    delegated(world)
    again = DelegateIntent(GOAL, "i", candidates=ranked(world))
    assert world.do(ALICE, again).events == ()
    for other, what in (
        (replace(again, goal="another"), "another goal"),
        (replace(again, params={"fail": True}), "other params"),
        (replace(again, skills=("python",)), "other skills"),
    ):
        refusal = world.ask(HUMAN, other)
        assert isinstance(refusal, Refusal)
        assert (refusal.code, what in refusal.detail) == ("already_exists", True), refusal
    answer(world)
    assert world.do(HUMAN, again).events == ()
    del world.tasks["i"]
    world.names.clear()
    assert world.code(HUMAN, again) == "task_not_found"


@proves("CCOS-RETRY")
def test_what_was_rejected_can_be_delegated_anew_under_other_rules() -> None:
    world = registry(cost=3.0)
    delegated(world, policy=Policy(cost_ceiling=1))
    again = DelegateIntent(GOAL, "i", candidates=ranked(world), policy=Policy(cost_ceiling=5))
    assert world.code(BOB, again) == "not_authorized"
    world.do(HUMAN, again)
    intent = world.intents["i"]
    assert (intent.state, intent.policy, intent.reasons) == (
        "TaskDispatched",
        Policy(cost_ceiling=5),
        (),
    )
    assert world.tasks["i"].status == "ready"


@proves("CCOS-RETRY")
def test_a_second_beginning_may_be_rejected_too_and_asks_who_failed_last() -> None:
    world = registry("alice")
    delegated(world, actor=BOB)
    answer(world, success=False)
    assert world.intents["i"].state == "NeedsFollowUp"
    decision = world.do(BOB, DelegateIntent(GOAL, "i"))
    assert names_of(decision) == ["IntentRejected"]
    assert world.tasks["i"].status == "deadletter"
    world.agents["carol"] = AgentRecord("carol", "agent", (), NOW)
    world.do(HUMAN, DescribeAgent("carol", ("python",)))
    delegated(world, candidates=ranked(world))
    assert open_request(world).agent == "carol"
    assert world.tasks["i"].status == "ready"
    answer(world, success=False)
    # A new beginning: what it failed before does not count against it.
    assert open_request(world).agent == "alice"
    assert world.intents["i"].failed == ("carol",)


@pytest.mark.parametrize("to", ["cancelled", "in-progress"])
def test_what_has_ended_or_is_under_way_does_not_begin_anew(to: str) -> None:
    world = registry(cost=3.0)
    delegated(world, policy=Policy(cost_ceiling=1))
    if to == "cancelled":
        world.do(HUMAN, MoveTask("i", "cancelled"))
    else:
        world.put(replace(world.tasks["i"], status="in-progress"))
    assert world.do(HUMAN, DelegateIntent(GOAL, "i", candidates=ranked(world))).events == ()


@proves("CCOS-FOLLOW-UP")
def test_a_follow_up_is_linked_both_ways_and_passes_governance() -> None:
    world = registry()
    delegated(world)
    answer(world)
    delegated(world, "j", follows="i", plan="p")
    assert world.intents["j"].follows == "i"
    assert world.intents["i"].followed_by == ("j",)
    assert {"follows:i", "plan:p", "delegated:alice", "requests", "requests:alice"} <= set(
        lists_of_intent(world.intents["j"])
    )
    assert delegated(world, "k", follows="i", policy=FORBIDDEN).state == "DelegationRejected"
    assert world.code(HUMAN, DelegateIntent(GOAL, "n", follows="none")) == "intent_not_found"


@proves("CCOS-FOLLOW-UP")
def test_an_attempt_may_open_a_follow_up_of_its_own_intent_only() -> None:
    world = registry()
    delegated(world)
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
        {"skills": ("x",) * (SKILLS + 1)},
        {"patience_ms": 1},
        {"due_by": -1},
        {"kept_bytes": -1},
        {"plan": "a b"},
        {"follows": "a b"},
        {"tries": 0},
        {"candidates": ranked(registry()) * 20},
        {"policy": Policy(forbidden_goals=("x",) * 501)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_is_malformed_is_refused(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"goal": GOAL, "id": "i", **wrong}
    answered = registry().ask(HUMAN, DelegateIntent(**given))
    assert isinstance(answered, Refusal)
    assert answered.code in ("invalid_field", "invalid_id")


@pytest.mark.parametrize("actor", [OBSERVER, FILE])
def test_whoever_may_only_read_delegates_nothing(actor: Actor) -> None:
    assert registry().code(actor, DelegateIntent(GOAL, "i")) == "not_authorized"


def test_a_task_whose_alias_is_malformed_is_told_as_that() -> None:
    answered = registry().ask(HUMAN, DelegateIntent(GOAL, "-i"))
    assert isinstance(answered, Refusal)
    assert answered.code == "invalid_id"


def test_only_who_was_described_stands_on_the_roster() -> None:
    world = registry("alice")
    assert lists_of_standing(standing(world, "alice")) == ("roster",)
    assert lists_of_standing(Standing("carol")) == ()


def test_the_limit_of_tries_holds_for_each_ranking() -> None:
    names = ("a1", "a2", "a3", "a4")
    world = registry(*names)
    delegated(world, tries=2)
    answer(world, success=False)
    answer(world, success=False)
    intent = world.intents["i"]
    assert (intent.state, intent.failed) == ("NeedsFollowUp", ("a1", "a2"))
    delegated(world, tries=2, candidates=ranked(world))
    answer(world, success=False)
    answer(world, success=False)
    assert world.intents["i"].agents == names
    assert world.tasks["i"].status == "deadletter"


def test_a_yes_has_no_refusal() -> None:
    world = registry()
    decision = world.ask(CAROL, DelegateIntent(GOAL, "i", candidates=ranked(world)))
    assert isinstance(decision, Decision)
    assert decision.refusal is None


def test_what_is_said_anew_counts_or_is_refused() -> None:
    world = registry("alice", "bob")
    delegated(world, plan="p", patience_ms=60_000)
    again = DelegateIntent(GOAL, "i", plan="p", patience_ms=90_000, tries=2, kept_bytes=7)
    assert world.code(HUMAN, replace(again, plan="q")) == "already_exists"
    assert world.code(HUMAN, replace(again, agent="bob")) == "already_exists"
    assert world.do(HUMAN, replace(again, agent="alice")).events == ()
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, replace(again, candidates=ranked(world)))
    intent = world.intents["i"]
    assert (intent.patience_ms, intent.tries, intent.kept_bytes) == (90_000, 2, 7)
    assert open_request(world).deadline == NOW + 90_000


def test_not_everyone_may_follow_up_an_intent_and_not_for_ever() -> None:
    world = registry("alice")
    delegated(world)
    follow = DelegateIntent(GOAL, "j", follows="i", candidates=ranked(world))
    assert world.code(BOB, follow) == "not_authorized"
    world.do(ALICE, follow)
    world.intents["i"] = replace(world.intents["i"], followed_by=("x",) * 64)
    assert world.code(HUMAN, replace(follow, id="k")) == "invalid_field"


@proves("CCOS-RESEND")
def test_a_request_keeps_the_name_that_it_came_with_and_counts_once() -> None:
    world = registry()
    named = DelegateIntent(GOAL, "i", candidates=ranked(world), tries=1, request_id="outer.7")
    world.do(HUMAN, named)
    assert open_request(world).id == "outer.7"
    again = world.do(HUMAN, named)
    assert (again.events, again.receipt.before) == ((), True)
    answer(world, success=False)
    # The same request once more is a repeat, not a new beginning: that has another name.
    assert world.do(HUMAN, named).events == ()
    world.do(HUMAN, replace(named, request_id="outer.8", candidates=ranked(world)))
    assert open_request(world).id == "outer.8"
    assert world.code(HUMAN, replace(named, request_id="no name")) == "invalid_id"


@proves("CCOS-RESEND")
def test_a_name_that_came_from_outside_is_not_given_twice() -> None:
    world = registry()
    delegated(world, request_id="i.2")
    answer(world, success=False)
    assert open_request(world).id == "i.3"


@proves("CCOS-RESEND")
@pytest.mark.parametrize("said", ["R1", "i.1"])
def test_a_request_id_is_that_of_one_intent(said: str) -> None:
    world = registry()
    delegated(world, request_id="R1" if said == "R1" else "")
    no = world.ask(HUMAN, DelegateIntent(GOAL, "j", candidates=ranked(world), request_id=said))
    assert isinstance(no, Refusal)
    assert (no.code, no.detail) == (
        "already_exists",
        f"the request id {said} is that of a request of intent i: use another one",
    )


@proves("CCOS-RESEND")
def test_the_hub_gives_no_request_a_name_that_another_intent_s_has() -> None:
    world = registry()
    delegated(world, "i", request_id="j.1")
    delegated(world, "j")
    assert open_request(world, "j").id == "j.2"


@proves("CCOS-RESEND")
def test_a_request_id_is_known_again_however_many_came_after_it() -> None:
    world = registry()
    first = DelegateIntent(GOAL, "i", candidates=ranked(world), tries=1, request_id="R0")
    world.do(HUMAN, first)
    answer(world, success=False)
    world.intents["i"] = replace(world.intents["i"], closed=())
    assert world.do(HUMAN, first).events == ()


@proves("CCOS-CANCEL")
def test_whoever_wanted_it_may_take_it_back() -> None:
    world = registry()
    delegated(world, actor=CAROL)
    world.do(ALICE, ClaimTask("i", "alice"))
    assert world.code(ALICE, CancelIntent("intent:i")) == "not_authorized"
    decision = world.do(CAROL, CancelIntent("intent:i", "no longer needed"))
    assert (world.intents["i"].state, world.tasks["i"].status) == ("NeedsFollowUp", "cancelled")
    assert (world.leases, standing(world, "alice").recent) == ({}, "")
    assert world.intents["i"].reasons == ("cancelled by agent:carol: no longer needed",)
    assert decision.receipt.stream == "intent:i"
    assert world.do(CAROL, CancelIntent("intent:i")).events == ()


@proves("CCOS-CANCEL")
def test_what_had_come_to_nothing_is_told_as_cancelled_from_then_on() -> None:
    world = registry(cost=3.0)
    delegated(world, policy=Policy(cost_ceiling=1))
    assert world.intents["i"].state == "DelegationRejected"
    world.do(HUMAN, CancelIntent("intent:i", "too dear"))
    intent = world.intents["i"]
    assert intent.state == "NeedsFollowUp"
    assert intent.reasons == (f"cancelled by {HUMAN.label}: too dear",)


@proves("CCOS-CANCEL")
def test_what_is_over_cannot_be_taken_back_and_is_told_as_what_it_is() -> None:
    world = registry("alice")
    delegated(world)
    answer(world, success=False)
    refusal = world.ask(HUMAN, CancelIntent("intent:i"))
    assert isinstance(refusal, Refusal)
    assert refusal.detail == (
        "i is NeedsFollowUp and its task is deadletter: there is nothing left to cancel"
    )
    world.do(HUMAN, CreateTask("plain", "T"))
    assert world.code(HUMAN, CancelIntent("T")) == "intent_not_found"
    assert world.code(HUMAN, CancelIntent("nothing")) == "task_not_found"
    assert world.code(HUMAN, CancelIntent("intent:i", "x" * 99_999)) == "invalid_field"


@proves("CCOS-GOVERNANCE")
def test_a_reason_that_many_share_is_told_once() -> None:
    world = registry(*(f"a{number}" for number in range(7)), cost=3.0)
    intent = delegated(world, policy=Policy(cost_ceiling=1))
    assert intent.reasons == ("a0, a1, a2, a3, a4 and 2 more: cost: it costs 3, and 1 is the most",)
