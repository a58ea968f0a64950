"""The five acceptance criteria of section 12, tests named by number."""

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from dragoman.agents.function_runner import AgentFunction, FunctionRunner, RunningFunction
from dragoman.agents.http_runner import HttpRunner, WriteRequest
from dragoman.core.intent.candidate import Policy
from dragoman.engine.ports import Assignment, Runner
from dragoman.protocols import ccos
from dragoman.protocols.ccos import TaskRequest, TaskResult, failed, succeeded
from dragoman.testing import HandHub, Refused, hand_hub
from tests.requirements import proves

pytestmark = proves("CCOS-ACCEPTANCE")

ASSIGNMENT = Assignment("ada", "i-1", "TASK-2026-02-09-001", "t", 1, 1, "s-1", 1_000, "do it")
SPEC = Path(ccos.__file__).with_name("SPEC.md")


def delegate_translation(hub: HandHub) -> dict[str, Any]:
    """Register two agents that can translate, and delegate an intent, which goes to the first."""
    hub.call("ccos.register", agent_id="ada", skills=["translate"], trust="T2")
    hub.call("ccos.register", agent_id="bob", skills=["translate"])
    return hub.call("ccos.delegate", goal="translate the manual", intent_id="i-1")


def states(hub: HandHub) -> list[str]:
    """Return the states of the intent's history."""
    history = hub.call("ccos.intent", intent_id="i-1")["history"]
    return [action["state"] for action in history]


def outcome_counts(hub: HandHub, agent: str) -> tuple[int, int]:
    """Return successes and failures of an agent."""
    (row,) = [one for one in hub.call("ccos.agents")["agents"] if one["agent_id"] == agent]
    return row["successes"], row["failures"]


def test_criterion_1_orchestrator_hook() -> None:
    """An approved delegation builds and dispatches a TaskRequest."""
    with hand_hub() as hub:
        answer = delegate_translation(hub)
        assert answer["state"] == "TaskDispatched"
        assert answer["request"]["agent_id"] == "ada"
        assert answer["request"]["goal"] == "translate the manual"
        assert states(hub) == ["New", "DelegationProposed", "DelegationApproved", "TaskDispatched"]
        assert hub.task("i-1").assignee == "ada"


def test_criterion_1_without_approval_nothing_is_dispatched() -> None:
    """A rejected delegation builds no TaskRequest and is in no queue."""
    with hand_hub(choices=ccos.Choices(Policy(forbidden_goals=("the manual",)))) as hub:
        answer = delegate_translation(hub)
        assert (answer["state"], "request" in answer) == ("DelegationRejected", False)
        assert hub.call("ccos.requests", agent_id="ada") == {"requests": []}
        assert "TaskDispatched" not in states(hub)
        assert (hub.task("i-1").status, hub.task("i-1").assignee) == ("blocked", "")


def run_agent(request: TaskRequest) -> TaskResult:
    """Compute the result of a request, as the agent does."""
    return succeeded(request, {"goal": request.goal, "id": request.request_id})


def dispatch_synchronously(hub: HandHub) -> None:
    """Dispatch through the dispatcher for tests."""
    assert hub.dispatch({"ada": run_agent}) == 1


def dispatch_by_runner(
    make: Callable[[WriteRequest, AgentFunction], Runner],
) -> Callable[[HandHub], None]:
    """Dispatch through a real runner that gets an assignment."""

    def dispatch(hub: HandHub) -> None:
        (request,) = hub.call("ccos.requests", agent_id="ada")["requests"]
        runner = make(lambda _: msgspec.json.encode(request), run_agent_on_bytes)

        async def receive(data: bytes) -> str:
            hub.call("ccos.result", agent="ada", **msgspec.json.decode(data))
            return ""

        async def run() -> None:
            running = await runner.start(ASSIGNMENT, receive)
            if isinstance(running, RunningFunction):
                assert (await running.wait()).problem == ""

        asyncio.run(run())

    return dispatch


def run_agent_on_bytes(data: bytes) -> bytes:
    """Run the agent on an encoded request."""
    return ccos.as_json(run_agent(ccos.read(data, TaskRequest)))


def make_url_runner(write: WriteRequest, work: AgentFunction) -> HttpRunner:
    def exchange(_: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        return 200, cast(bytes, work(body))

    return HttpRunner(write, exchange, ThreadPoolExecutor(1))


@pytest.mark.parametrize(
    "dispatch",
    [
        dispatch_synchronously,
        dispatch_by_runner(FunctionRunner),
        dispatch_by_runner(make_url_runner),
    ],
    ids=["synchronous", "function", "url"],
)
def test_criterion_2_pluggable_dispatcher(dispatch: Callable[[HandHub], None]) -> None:
    """One contract: any dispatcher leads from the same request to the same chain.

    Programs keep it too: tests/agents/test_single_request_runner.py runs real ones.
    """
    with hand_hub() as hub:
        delegate_translation(hub)
        dispatch(hub)
        found = hub.call("ccos.intent", intent_id="i-1")
        assert found["result"]["output"] == {"goal": "translate the manual", "id": "i-1.1"}
        assert states(hub)[4:] == ["TaskCompleted", "FeedbackApplied", "Satisfied"]
        assert hub.dispatch({"ada": run_agent}) == 0, "nothing is left to hand over"
        assert outcome_counts(hub, "ada") == (1, 0)


def test_criterion_3_receipt_handler() -> None:
    """A TaskResult is validated, appended as an Action, and feeds back."""
    with hand_hub() as hub:
        delegate_translation(hub)
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
        delegate_translation(hub)
        hub.dispatch({"ada": lambda request: succeeded(request, "fini")})
        assert hub.call("ccos.intent", intent_id="i-1")["state"] == "Satisfied"
        assert hub.task("i-1").status == "done"


def test_criterion_4_failure() -> None:
    """Failure goes to the next candidate, never twice to the same."""
    with hand_hub() as hub:
        delegate_translation(hub)
        hub.dispatch({"ada": lambda request: failed(request, "no dictionary")})
        assert hub.call("ccos.intent", intent_id="i-1")["request"]["agent_id"] == "bob"
        hub.dispatch({"bob": lambda request: failed(request, "no time")})
        found = hub.call("ccos.intent", intent_id="i-1")
        assert found["state"] == "NeedsFollowUp"
        assert hub.task("i-1").status == "deadletter"


def test_criterion_4_mismatched_agent_id_rejection() -> None:
    """A result of another agent is an anomaly Action: no feedback, no change."""
    with hand_hub() as hub:
        delegate_translation(hub)
        claim = {"intent_id": "i-1", "success": True, "output": 1}
        for agent, claims in (("bob", "bob"), ("bob", "ada"), ("ada", "bob")):
            with pytest.raises(Refused) as refused:
                hub.call("ccos.result", agent=agent, agent_id=claims, **claim)
            assert refused.value.code == "anomaly"
        assert states(hub)[4:] == ["Anomaly"] * 3
        assert hub.call("ccos.intent", intent_id="i-1")["state"] == "TaskDispatched"
        assert outcome_counts(hub, "ada") == outcome_counts(hub, "bob") == (0, 0)


def test_criterion_4_feedback_metric_update() -> None:
    """Success and failure are counted once each, also when the result is sent again."""
    with hand_hub() as hub:
        delegate_translation(hub)
        failure = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "no"}
        for _ in range(2):
            hub.call("ccos.result", agent="ada", **failure)
        hub.dispatch({"bob": succeeded})
        assert (outcome_counts(hub, "ada"), outcome_counts(hub, "bob")) == ((0, 1), (1, 0))


SECTIONS = ("4.1", "4.2", "5", "6", "7", "8", "9", "10", "12", "13", "14", "15")
"""Sections of the specification with requirements."""


def test_criterion_5_docs() -> None:
    """The status is Implemented; each section and open point has its row, whose files exist."""
    text = SPEC.read_text(encoding="utf-8")
    assert "**Status: Implemented.**" in text
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    listed = [row[0].split()[0] for row in rows]
    assert [section for section in SECTIONS if section not in listed] == []
    assert [tag for tag in (f"S-CCOS-{n}" for n in range(1, 10)) if tag not in listed] == []
    named = set(re.findall(r"`([\w/]+\.py)(?:`|:)", text)) | set(
        re.findall(r"`(tests/[\w/]+)`", text)
    )
    assert len(named) > 20
    assert [name for name in sorted(named) if not _exists(name)] == []


def test_criterion_5_every_departure_has_its_reason() -> None:
    """Every departure states its reason."""
    text = SPEC.read_text(encoding="utf-8").partition("## Departures, each with its reason")[2]
    departures = text.strip().split("\n- ")
    assert len(departures) >= 3
    assert [one for one in departures if ":" not in one] == []


def _exists(name: str) -> bool:
    """Return whether a file named in SPEC.md exists, by the rule at its beginning."""
    root = Path(__file__).parents[3]
    folders = (SPEC.parent, root / "src/dragoman", root / "tests/protocols/ccos", root)
    return any((folder / name).exists() for folder in folders)
