"""The causal chain: every entry is an Action with its cause, found by all of its fields."""

from collections.abc import Generator
from typing import Any

import pytest

from dragoman.core.agent import PauseAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import EditTask, MoveTask, RewindTask
from dragoman.protocols.ccos import failed, succeeded
from dragoman.protocols.ccos.render import ACTION_TYPES, render_entry
from dragoman.testing import HandHub, Refused, hand_hub
from tests.engine.lab import HUMAN, Lab
from tests.protocols.ccos.test_dialect import CcosHub
from tests.requirements import proves

pytestmark = proves("CCOS-CHAIN")


@pytest.fixture
def hub() -> Generator[HandHub]:
    """Give a hub where ada fails, bob is paused by governance, and eva succeeds."""
    with hand_hub() as hub:
        for agent, trust in (("ada", "T2"), ("bob", "T1"), ("eva", "T0")):
            hub.call("ccos.register", agent_id=agent, skills=["translate"], trust=trust)
        yield hub
        assert hub.verify() == []


def tree_lines(node: dict[str, Any], depth: int = 0) -> list[str]:
    """Format a tree as lines indented by dots."""
    below = [line for one in node.get("children", ()) for line in tree_lines(one, depth + 1)]
    return [f"{'.' * depth}{node['type']} {node.get('agent_id', '')}".strip(), *below]


def test_tree_leads_from_the_intent_to_the_feedback(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    hub.call("ccos.update", agent="ada", intent_id="i-1", agent_id="ada", progress=1)
    with pytest.raises(Refused):
        hub.call("ccos.result", agent="eva", intent_id="i-1", agent_id="eva", success=True)
    hub.dispatch({"ada": lambda request: failed(request, "no dictionary")})
    hub.dispatch({"bob": succeeded})
    answer = hub.call("ccos.why", intent_id="i-1")
    assert answer["state"] == "Satisfied"
    assert tree_lines(answer["actions"]) == [
        "New",
        ".DelegationProposed ada",
        "..DelegationApproved ada",
        "...TaskDispatched ada",
        "....TaskUpdated ada",
        "....Anomaly eva",
        "....TaskCompleted ada",
        ".....FeedbackApplied ada",
        ".....DelegationProposed bob",
        "......DelegationApproved bob",
        ".......TaskDispatched bob",
        "........TaskCompleted bob",
        ".........FeedbackApplied bob",
        "..........Satisfied",
    ]
    assert answer["count"] == 14


def test_rejection_follows_its_proposal_and_a_retry_follows_the_root(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="sing a song", intent_id="i-1")
    hub.call("ccos.register", agent_id="max", skills=["sing"])
    hub.call("ccos.delegate", goal="sing a song", intent_id="i-1")
    lines = tree_lines(hub.call("ccos.why", intent_id="i-1")["actions"])
    at = lines.index(".DelegationProposed ada")
    assert lines[at + 1] == "..DelegationRejected ada"
    assert ".DelegationRejected" in lines
    assert ".DelegationProposed max" in lines


def test_reassigned_task_supersedes_the_request(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    hub.do(EditTask("i-1", assignee="eva"))
    assert tree_lines(hub.call("ccos.why", intent_id="i-1")["actions"])[3:] == [
        "...TaskDispatched ada",
        "....RequestSuperseded ada",
        ".....DelegationProposed eva",
        "......DelegationApproved eva",
        ".......TaskDispatched eva",
    ]


@proves("CCOS-CAUSES")
def test_request_repeated_after_review_needs_no_new_approval(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    hub.do(ClaimTask("i-1", "ada"), agent="ada")
    hub.do(MoveTask("i-1", "review"), agent="ada")
    hub.do(MoveTask("i-1", "ready"))
    assert tree_lines(hub.call("ccos.why", intent_id="i-1")["actions"])[3:] == [
        "...TaskDispatched ada",
        "....RequestSuperseded ada",
        ".....TaskDispatched ada",
    ]


@proves("CCOS-CAUSES")
def test_request_repeated_after_a_rewind_has_a_new_approval(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    hub.do(ClaimTask("i-1", "ada"), agent="ada")
    hub.do(RewindTask("i-1", 3, "e" * 40, "rewind/i-1", "a wrong turn"))
    assert tree_lines(hub.call("ccos.why", intent_id="i-1")["actions"])[4:] == [
        "....RequestSuperseded ada",
        ".....DelegationProposed ada",
        "......DelegationApproved ada",
        ".......TaskDispatched ada",
    ]


def test_needs_follow_up_is_caused_by_the_last_rejection(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    hub.do(PauseAgent("bob"))
    hub.do(PauseAgent("eva"))
    hub.dispatch({"ada": lambda request: failed(request, "no dictionary")})
    assert tree_lines(hub.call("ccos.why", intent_id="i-1")["actions"])[4:] == [
        "....TaskCompleted ada",
        ".....FeedbackApplied ada",
        ".....DelegationProposed bob",
        "......DelegationRejected bob",
        ".....DelegationProposed eva",
        "......DelegationRejected eva",
        ".......NeedsFollowUp",
    ]


def test_history_is_paged(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-0")
    history = hub.call("ccos.intent", intent_id="i-0", limit=3)
    rest = hub.call("ccos.intent", intent_id="i-0", after=history["next"])
    assert [one["state"] for one in rest["history"]] == ["TaskDispatched"]


@proves("CCOS-BOUNDED")
def test_long_tree_is_cut_at_the_limit_and_continues_in_pages(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    for number in range(1, 6):
        update = {"intent_id": "i-1", "agent_id": "ada", "sequence": number}
        hub.call("ccos.update", agent="ada", **update, partial="x" * 2_000)
    hub.dispatch({"ada": lambda request: succeeded(request, "y" * 2_000)})
    answer = hub.call("ccos.why", intent_id="i-1", limit=5)
    assert (answer["count"], answer["more"], len(tree_lines(answer["actions"]))) == (12, True, 5)
    whole = hub.call("ccos.why", intent_id="i-1")
    assert ("more" in whole, len(tree_lines(whole["actions"]))) == (False, 12)
    # A page has the same causes as the whole, and only the sizes of long values.
    page = hub.call("ccos.intent", intent_id="i-1", after=4, limit=2)
    assert [one["parent_id"] for one in page["history"]] == ["i-1#4", "i-1#4"]
    assert page["history"][0]["details"] == {"sequence": 1, "partial_bytes": 2_002}
    assert page["next"] == 6
    assert page["result"]["output"] == "y" * 2_000  # the result is whole on each page


@proves("CCOS-BOUNDED")
def test_result_is_found_behind_many_later_anomalies(hub: HandHub) -> None:
    hub.call("ccos.delegate", goal="translate it", intent_id="i-1")
    assert "result" not in hub.call("ccos.intent", intent_id="i-1")
    hub.dispatch({"ada": lambda request: succeeded(request, 7)})
    for number in range(60):
        hub.advance(minutes=1)
        for name in ("x", "y"):
            with pytest.raises(Refused):
                hub.call(
                    "ccos.result",
                    agent="ada",
                    intent_id="i-1",
                    agent_id="ada",
                    success=True,
                    request_id=f"{name}{number}",
                )
    found = hub.call("ccos.intent", intent_id="i-1", limit=1)
    assert (found["anomalies"], found["result"]["output"]) == (120, 7)


def test_every_kind_of_entry_has_a_type_and_can_be_rendered_alone() -> None:
    hub = CcosHub()
    lab: Lab = hub.lab
    entries = [entry for entry in lab.store.entries(0, 100) if entry.stream == "intent:i-1"]
    assert next(render_entry(entry).type for entry in entries) == "New"
    assert len(set(ACTION_TYPES.values())) == len(ACTION_TYPES)
    assert HUMAN.label == render_entry(entries[0]).actor
    sent = render_entry(entries[3])
    assert sent.dispatched_at == sent.at
