"""The five acceptance criteria of section 12, each a test by its number."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.request import FunctionRunner, UrlRunner
from dragoman.engine.runner import Runner
from dragoman.protocols import ccos
from dragoman.protocols.ccos import TaskRequest, TaskResult, failed, succeeded
from dragoman.testing import HandHub, Refused, hand_hub
from tests.requirements import proves

pytestmark = proves("CCOS-ACCEPTANCE")

SPEC = Path(ccos.__file__).with_name("SPEC.md")


def ready(hub: HandHub) -> dict[str, Any]:
    """Two agents that can translate, and an intent that goes to the first."""
    hub.call("ccos.register", agent_id="ada", skills=["translate"], trust="T2")
    hub.call("ccos.register", agent_id="bob", skills=["translate"])
    return hub.call("ccos.delegate", goal="translate the manual", intent_id="i-1")


def states(hub: HandHub) -> list[str]:
    """The states of the intent's history."""
    history = hub.call("ccos.intent", intent_id="i-1")["history"]
    return [action["state"] for action in history]


def counted(hub: HandHub, agent: str) -> tuple[int, int]:
    """Successes and failures of an agent."""
    (row,) = [one for one in hub.call("ccos.agents")["agents"] if one["agent_id"] == agent]
    return row["successes"], row["failures"]


def test_criterion_1_orchestrator_hook() -> None:
    """When a delegation is approved, a TaskRequest is built and dispatched."""
    with hand_hub() as hub:
        answer = ready(hub)
        assert answer["state"] == "TaskDispatched"
        assert answer["request"]["agent_id"] == "ada"
        assert answer["request"]["goal"] == "translate the manual"
        assert states(hub) == ["New", "DelegationProposed", "DelegationApproved", "TaskDispatched"]
        assert hub.task("i-1").assignee == "ada"


def test_criterion_2_pluggable_dispatcher() -> None:
    """A synchronous dispatcher for tests; real ones that keep the same contract."""
    seen: list[TaskRequest] = []

    def ada(request: TaskRequest) -> TaskResult:
        seen.append(request)
        return succeeded(request, {"pages": 3})

    with hand_hub() as hub:
        ready(hub)
        assert hub.dispatch({"ada": ada}) == 1
        assert hub.dispatch({"ada": ada}) == 0
        assert [request.request_id for request in seen] == ["i-1.1"]
        assert hub.call("ccos.intent", intent_id="i-1")["result"]["output"] == {"pages": 3}
    real: tuple[type[Runner], ...] = (UrlRunner, FunctionRunner)
    assert all(hasattr(runner, "start") for runner in real)


def test_criterion_3_receipt_handler() -> None:
    """A TaskResult is validated, appended as an Action, and feeds back."""
    with hand_hub() as hub:
        ready(hub)
        hub.advance(seconds=5)
        hub.dispatch({"ada": lambda request: succeeded(request, 1)})
        assert states(hub)[4:] == ["TaskCompleted", "FeedbackApplied", "Satisfied"]
        completed = hub.call("ccos.intent", intent_id="i-1")["history"][4]
        assert completed["agent_id"] == "ada"
        assert (completed["success"], completed["duration_ms"]) == (True, 5_000)
        assert completed["dispatched_at"] == "2026-02-09T20:55:00.000Z"
        assert hub.verify() == []


def test_criterion_4_happy_path_success() -> None:
    """Success satisfies the intent, and its task is done."""
    with hand_hub() as hub:
        ready(hub)
        hub.dispatch({"ada": lambda request: succeeded(request, "fini")})
        assert hub.call("ccos.intent", intent_id="i-1")["state"] == "Satisfied"
        assert hub.task("i-1").status == "done"


def test_criterion_4_failure() -> None:
    """Failure goes to the next candidate, and to nobody twice."""
    with hand_hub() as hub:
        ready(hub)
        hub.dispatch({"ada": lambda request: failed(request, "no dictionary")})
        assert hub.call("ccos.intent", intent_id="i-1")["request"]["agent_id"] == "bob"
        hub.dispatch({"bob": lambda request: failed(request, "no time")})
        found = hub.call("ccos.intent", intent_id="i-1")
        assert found["state"] == "NeedsFollowUp"
        assert hub.task("i-1").status == "deadletter"


def test_criterion_4_mismatched_agent_id_rejection() -> None:
    """A result of another agent is an anomaly Action: no feedback, no change."""
    with hand_hub() as hub:
        ready(hub)
        said = {"intent_id": "i-1", "success": True, "output": 1}
        for agent, claims in (("bob", "bob"), ("bob", "ada"), ("ada", "bob")):
            with pytest.raises(Refused) as refused:
                hub.call("ccos.result", agent=agent, agent_id=claims, **said)
            assert refused.value.code == "anomaly"
        assert states(hub)[4:] == ["Anomaly"] * 3
        assert hub.call("ccos.intent", intent_id="i-1")["state"] == "TaskDispatched"
        assert counted(hub, "ada") == counted(hub, "bob") == (0, 0)


def test_criterion_4_feedback_metric_update() -> None:
    """Success and failure are counted once each, also when they are sent again."""
    with hand_hub() as hub:
        ready(hub)
        said = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "no"}
        for _ in range(2):
            hub.call("ccos.result", agent="ada", **said)
        hub.dispatch({"bob": succeeded})
        assert (counted(hub, "ada"), counted(hub, "bob")) == ((0, 1), (1, 0))


def test_criterion_5_docs() -> None:
    """The status of the specification is Implemented, and every deviation has its reason."""
    text = SPEC.read_text(encoding="utf-8")
    assert "**Status: Implemented.**" in text
    assert "## Departures, each with its reason" in text
