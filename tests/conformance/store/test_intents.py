"""Delegation of intents on every store: candidate index, lists, and a second hub."""

from msgspec.structs import replace

from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.intent.candidate import Policy, Requirements
from dragoman.core.intent.state import DelegateIntent, ExpireRequest, Intent, ReceiveResult
from dragoman.engine.candidate_index import CandidateIndex
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import stream_state
from tests.conformance.store.hubs import ALICE, ANN, BOB, HUB, NOW, Hub, Hubs
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "CCOS-LIFE")

GOAL = "Write python tests"
DONE = ReceiveResult("i", "alice", success=True, output={"naïve": [1, None, 2.5]})


def register_agents(hub: Hub) -> CandidateIndex:
    """Register alice and bob with the skills for the goal."""
    for name in ("alice", "bob"):
        hub.do(ANN, RegisterAgent(name), DescribeAgent(name, ("python", "tests"), cost=0.5))
    return CandidateIndex(hub.store)


def delegate(hub: Hub, rosters: CandidateIndex, id: str = "i", **more: object) -> None:
    """Delegate an intent of a plan, which the best candidate is asked for."""
    found = rosters.shortlist(Requirements(GOAL), Policy(), NOW)
    command = DelegateIntent(GOAL, id, {"é": 1}, plan="p", patience_ms=60_000, candidates=found)
    hub.do(ANN, replace(command, **more))


def streams_on_list(store: Store, name: str) -> list[str]:
    """List the streams on a list."""
    return [item.row.name for item in store.list_page(ListQuery(name))]


def intent(store: Store, id: str = "i") -> Intent:
    """Load the stored intent."""
    row = store.stream(f"intent:{id}")
    assert row is not None
    state = stream_state(store, row)
    assert isinstance(state, Intent)
    return state


@proves("CCOS-FEEDBACK", "CCOS-ROSTER", "CCOS-RESEND")
def test_intent_runs_from_goal_to_completion(hubs: Hubs) -> None:
    hub = hubs.new()
    rosters = register_agents(hub)
    delegate(hub, rosters)
    store = hub.store
    for name in ("intents", "intents:open", "plan:p", "delegated:alice", "requests"):
        assert streams_on_list(store, name) == ["intent:i"], name
    assert streams_on_list(store, "requests:alice") == ["intent:i"]
    assert streams_on_list(store, "roster") == ["reputation:alice", "reputation:bob"]
    other = hubs.new()
    assert intent(other.store).params == {"é": 1}
    refused = other.ask(BOB, replace(DONE, agent="bob"))
    assert isinstance(refused, Refusal)
    assert refused.code == "anomaly"
    other.do(ALICE, DONE)
    hub.do(ALICE, DONE)
    assert intent(store).state == "Satisfied"
    assert intent(store).anomalies == 1
    reputation = rosters.reputation("alice", NOW)
    assert reputation is not None
    assert (reputation.successes, reputation.open) == (1, 0)
    for name in ("intents:open", "requests", "requests:alice"):
        assert streams_on_list(store, name) == [], name


@proves("CCOS-DEADLINE", "CCOS-RETRY", "CCOS-FOLLOW-UP")
def test_overdue_intents_are_found_and_retried(hubs: Hubs) -> None:
    hub = hubs.new()
    rosters = register_agents(hub)
    delegate(hub, rosters)
    delegate(hub, rosters, "j", follows="i", patience_ms=90_000)
    store = hub.store
    assert streams_on_list(store, "follows:i") == ["intent:j"]
    assert store.overdue_streams(NOW + 59_999, 10) == []
    assert store.overdue_streams(NOW + 60_000, 10) == ["intent:i"]
    hubs.clock.advance(60_000)
    hub.do(HUB, ExpireRequest("i"))
    assert store.overdue_streams(NOW + 60_000, 10) == []
    assert store.overdue_streams(NOW + 120_000, 10) == ["intent:j", "intent:i"]
    request = intent(store).request
    assert request is not None
    assert (request.agent, request.deadline) == ("bob", NOW + 120_000)
