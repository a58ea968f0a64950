"""Operations of CCOS: replies, refusals and recorded entries."""

import json
from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import CheckpointTask
from dragoman.core.errors import StoreUnavailable
from dragoman.core.intent.candidate import Policy
from dragoman.core.intent.scoring import BASE_THRESHOLD
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.request import Accepted, Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import ccos
from dragoman.protocols.ccos import (
    Choices,
    TaskRequest,
    TaskResult,
    failed,
    queries,
    succeeded,
)
from dragoman.testing import HandHub, Refused, hand_hub
from dragoman.text.strict_cbor import encode_cbor
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("CCOS-DIALECT")

ADA = Actor("agent", "ada")


@pytest.fixture
def hub() -> Generator[HandHub]:
    """Give a hub where ada and bob can translate; it must verify at the end."""
    with hand_hub() as hub:
        for agent in ("ada", "bob"):
            hub.call("ccos.register", agent_id=agent, skills=["translate"])
        yield hub
        assert hub.verify() == []


def delegate(hub: HandHub, intent: str = "i-1", **more: Any) -> dict[str, Any]:
    """Delegate a translation."""
    return hub.call("ccos.delegate", goal="translate the manual", intent_id=intent, **more)


def refused(hub: HandHub, operation: str, agent: str = "", **arguments: Any) -> Refused:
    """Call an operation that must be refused."""
    with pytest.raises(Refused) as caught:
        hub.call(operation, agent=agent, **arguments)
    return caught.value


def history_of(hub: HandHub, intent: str, state: str) -> list[dict[str, Any]]:
    """Entries of this kind in the history of an intent."""
    history = hub.call("ccos.intent", intent_id=intent)["history"]
    return [one for one in history if one["state"] == state]


def result(**fields: Any) -> dict[str, Any]:
    return {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 1, **fields}


def test_request_has_the_fields_of_its_task(hub: HandHub) -> None:
    answer = delegate(
        hub,
        params={"lang": "fr"},
        constraints=["formal"],
        plan_id="p-1",
        deadline="2026-02-09T21:55:00Z",
    )
    request = answer["request"]
    assert request["params"] == {"lang": "fr"}
    assert request["meta"]["task"] == {
        "task_id": "TASK-2026-02-09-001",
        "title": "translate the manual",
        "priority": "normal",
        "constraints": ("formal",),
        "plan_id": "p-1",
    }
    assert request["deadline"] == "2026-02-09T21:55:00.000Z"
    assert (request["request_id"], request["attempt"]) == ("i-1.1", 1)
    assert msgspec.convert(request, TaskRequest).agent_id == "ada"


def test_request_has_the_checkpoint_of_the_predecessor(hub: HandHub) -> None:
    delegate(hub)
    hub.claim("i-1", agent="ada")
    hub.do(CheckpointTask("i-1", "CONTEXT_HIGH", "abc123", "half", "go on"), agent="ada")
    (request,) = hub.call("ccos.requests", agent_id="ada")["requests"]
    left = request["meta"]["briefing"]["checkpoint"]
    assert (left["commit"], left["description"], left["nextSteps"]) == ("abc123", "half", "go on")


@proves("BRIEFING")
def test_request_has_the_answers_in_its_metadata_and_never_in_its_params(hub: HandHub) -> None:
    delegate(hub)
    assert "briefing" not in hub.call("ccos.requests", agent_id="ada")["requests"][0]["meta"]
    hub.claim("i-1", agent="ada")
    hub.do(AskQuestion("i-1", "formal or not?"), agent="ada")
    hub.do(AnswerQuestion("i-1", "formal"))
    (request,) = hub.call("ccos.requests", agent_id="ada")["requests"]
    (answered,) = request["meta"]["briefing"]["answers"]
    assert (answered["text"], answered["answer"]) == ("formal or not?", "formal")
    assert "formal" not in str(request["params"])


def test_params_of_the_caller_are_its_own_exactly(hub: HandHub) -> None:
    assert delegate(hub, params={"task": "mine"})["request"]["params"] == {"task": "mine"}


def test_repeated_delegation_adds_nothing(hub: HandHub) -> None:
    first = delegate(hub)
    before = len(hub.history())
    assert delegate(hub) == first
    assert len(hub.history()) == before
    assert refused(hub, "ccos.delegate", goal="another", intent_id="i-1").code == "already_exists"


@pytest.mark.parametrize(
    ("deadline", "reason"),
    [
        ("yesterday", "is not a timestamp"),
        ("2026-02-09T20:55:00Z", "has passed"),
        ("2096-02-09T20:55:00Z", "the time until the deadline is"),
    ],
)
def test_invalid_or_past_deadline_is_refused(hub: HandHub, deadline: str, reason: str) -> None:
    arguments = {"intent_id": "i-1", "goal": "translate", "deadline": deadline}
    for error in (
        refused(hub, "ccos.delegate", **arguments),
        refused(hub, "ccos.request", **arguments, agent_id="ada", params={}),
    ):
        assert (error.code, error.refusal.path) == ("invalid_field", "deadline")
        assert reason in error.detail


@proves("CCOS-DUE")
@pytest.mark.parametrize("operation", ["ccos.request", "ccos.delegate"])
def test_repeat_after_its_deadline_is_recognized(hub: HandHub, operation: str) -> None:
    arguments: dict[str, Any] = {"intent_id": "i-1", "goal": "translate it"}
    arguments["deadline"] = "2026-02-09T22:00:00Z"
    if operation == "ccos.request":
        arguments |= {"agent_id": "ada", "params": {}}
    assert "request" in hub.call(operation, **arguments)
    hub.advance(hours=2)
    for _ in range(3):
        hub.tick()
        hub.advance(hours=2)
    before = hub.call("ccos.intent", intent_id="i-1")
    assert before["state"] == "NeedsFollowUp"
    again = hub.call(operation, **arguments)
    assert (again["state"], "remark" in again) == ("NeedsFollowUp", False)
    assert hub.call("ccos.intent", intent_id="i-1") == before
    other = arguments | {"deadline": "2026-02-09T22:00:01Z"}
    assert refused(hub, operation, **other).refusal.path == "deadline", "that would be a beginning"


@proves("CCOS-DUE")
def test_deadline_applies_to_every_request_of_the_intent(hub: HandHub) -> None:
    due = "2026-02-09T20:56:00.000Z"
    delegate(hub, deadline="2026-02-09T20:56:00Z")
    hub.advance(seconds=10)
    hub.call("ccos.result", agent="ada", **result(success=False, output=None, error="no ink"))
    found = hub.call("ccos.intent", intent_id="i-1")
    assert (found["request"]["agent_id"], found["request"]["deadline"]) == ("bob", due)
    proposed = history_of(hub, "i-1", "DelegationProposed")
    assert [one["details"].get("due_by") for one in proposed] == [due, None]


def test_missed_deadline_is_a_failure_and_a_late_result_an_anomaly(hub: HandHub) -> None:
    delegate(hub, deadline="2026-02-09T20:56:00Z")
    hub.advance(minutes=2)
    hub.tick()
    found = hub.call("ccos.intent", intent_id="i-1")
    assert found["result"]["synthetic"] == "deadline"
    assert found["request"]["agent_id"] == "bob"
    error = refused(hub, "ccos.result", "ada", **result())
    assert error.code == "anomaly"
    assert "late" in error.detail


@pytest.mark.parametrize(
    "fields",
    [
        result(error="both"),
        {"intent_id": "i-1", "agent_id": "ada", "success": False},
        {"intent_id": "i-1", "agent_id": "ada", "success": "yes", "output": 1},
        result(request_id="i-1.7"),
        result(intent_id="i-9"),
        {"agent_id": "ada", "success": True},
        {"intent_id": 7, "agent_id": "ada", "success": True},
        {"success": True},
    ],
)
def test_mismatched_result_is_an_anomaly(hub: HandHub, fields: dict[str, Any]) -> None:
    delegate(hub)
    assert refused(hub, "ccos.result", "ada", **fields).code == "anomaly"
    assert hub.call("ccos.intent", intent_id="i-1")["state"] == "TaskDispatched"


def test_anomaly_is_recorded_in_the_chain_of_its_intent(hub: HandHub) -> None:
    delegate(hub)
    refused(hub, "ccos.result", "ada", **result(error="both"))
    (odd,) = history_of(hub, "i-1", "Anomaly")
    assert "a success has no error" in odd["details"]["reason"]


def test_equal_result_is_a_no_op_and_another_one_an_anomaly(hub: HandHub) -> None:
    delegate(hub)
    first = hub.call("ccos.result", agent="ada", **result())
    before = len(hub.history())
    again = hub.call("ccos.result", agent="ada", **result())
    assert again == first | {"repeated": True}
    assert first == {"intent_id": "i-1", "agent_id": "ada", "state": "Satisfied"}
    assert len(hub.history()) == before
    assert refused(hub, "ccos.result", "ada", **result(output=2)).code == "anomaly"


def test_updates_are_reported_in_percent(hub: HandHub) -> None:
    delegate(hub)
    ids = {"intent_id": "i-1", "agent_id": "ada"}
    hub.call("ccos.update", agent="ada", **ids, progress=0.5, message="half")
    hub.call("ccos.update", agent="ada", **ids, progress=75, partial={"page": 1}, sequence=1)
    updates = history_of(hub, "i-1", "TaskUpdated")
    assert [one["details"]["progress"] for one in updates] == [50.0, 75]
    assert updates[1]["details"]["partial"] == {"page": 1}
    assert refused(hub, "ccos.update", "bob", **ids, progress=1).code == "anomaly"
    assert refused(hub, "ccos.update", "ada", **ids).code == "invalid_envelope"


def test_open_request_is_in_the_queue_of_its_agent(hub: HandHub) -> None:
    request = delegate(hub)["request"]
    assert hub.call("ccos.requests", agent="ada") == {"requests": [request]}
    assert hub.call("ccos.requests", agent_id="bob") == {"requests": []}
    assert refused(hub, "ccos.requests", agent_id="no name").code == "invalid_id"


def test_cancel_ends_the_request_without_feedback(hub: HandHub) -> None:
    delegate(hub)
    hub.call("ccos.cancel", intent_id="i-1", reason="no longer needed")
    found = hub.call("ccos.intent", intent_id="i-1")
    assert (found["state"], found["cancelled"]) == ("NeedsFollowUp", True)
    assert found["reasons"][0].endswith(": no longer needed")
    assert hub.call("ccos.why", intent_id="i-1")["cancelled"] is True
    assert hub.call("ccos.intents")["intents"][0]["cancelled"] is True
    assert "request" not in found
    states = [one["state"] for one in found["history"]]
    assert "FeedbackApplied" not in states
    assert refused(hub, "ccos.cancel", intent_id="i-9").code == "intent_not_found"


def test_follow_up_links_back(hub: HandHub) -> None:
    delegate(hub)
    hub.call("ccos.cancel", intent_id="i-1")
    delegate(hub, "i-2", follows="i-1")
    assert hub.call("ccos.intent", intent_id="i-2")["follows"] == "i-1"
    rows = hub.call("ccos.intents", follows="i-1")["intents"]
    assert [row["intent_id"] for row in rows] == ["i-2"]


def test_intents_are_filtered_and_paged(hub: HandHub) -> None:
    delegate(hub, "i-1", plan_id="p-1")
    delegate(hub, "i-2")
    hub.dispatch({"ada": succeeded})
    delegate(hub, "i-3")

    def names(**filters: Any) -> list[str]:
        return [row["intent_id"] for row in hub.call("ccos.intents", **filters)["intents"]]

    assert names() == ["i-1", "i-2", "i-3"]
    assert names(plan_id="p-1") == ["i-1"]
    assert names(open=True)[-1] == "i-3"
    page = hub.call("ccos.intents", limit=2)
    assert names(after=page["next"]) == ["i-3"]
    assert set(names(agent_id="ada")) <= {"i-1", "i-2", "i-3"}


def test_intent_filters_are_combined(hub: HandHub) -> None:
    for number in range(4):
        delegate(hub, f"i-{number}", plan_id="p" if number % 2 else "q")
    hub.call("ccos.cancel", intent_id="i-1")

    def names(**filters: Any) -> list[str]:
        return [row["intent_id"] for row in hub.call("ccos.intents", **filters)["intents"]]

    assert names(open=True) == ["i-0", "i-2", "i-3"]
    assert names(plan_id="p", open=True) == ["i-3"]
    assert names(plan_id="p", agent_id="nobody") == []
    arguments: dict[str, Any] = {"agent_id": "ada", "open": True, "limit": 1}
    mine = [name for name in names(agent_id="ada") if name != "i-1"]
    found, after = list[str](), 0
    while True:
        page = hub.call("ccos.intents", after=after, **arguments)
        found += [row["intent_id"] for row in page["intents"]]
        if "next" not in page:
            break
        after = page["next"]
    assert found == mine


def test_page_of_intents_ends_at_the_scan_limit(
    hub: HandHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        delegate(hub, f"i-{number}", plan_id="p")
    delegate(hub, "i-3")
    monkeypatch.setattr(queries, "_MAX_SCANNED", 2)
    first = hub.call("ccos.intents", plan_id="p", agent_id="nobody")
    assert first["intents"] == []
    assert (
        hub.call("ccos.intents", plan_id="p", after=first["next"])["intents"][0]["intent_id"]
        == "i-2"
    )


def test_rank_shows_scores_and_choice(hub: HandHub) -> None:
    hub.call("ccos.register", agent_id="eva", skills=["translate"], trust="T2")
    hub.call("ccos.register", agent_id="max", skills=["cook"])
    ranked = hub.call("ccos.rank", goal="translate the manual")
    first = ranked["candidates"][0]
    assert ranked["chosen"] == first["agent_id"] == "eva"
    assert first["score"] == pytest.approx(sum(first["parts"].values()))
    last = ranked["candidates"][-1]
    assert (last["agent_id"], last["eligible"]) == ("max", False)
    assert ranked["threshold"] == BASE_THRESHOLD
    assert hub.call("ccos.rank", goal="translate", limit=1)["of"] == 4


@proves("CCOS-HANDS")
def test_busy_agent_is_passed_over_while_another_is_free() -> None:
    with hand_hub(choices=Choices(concurrency={"ada": 1, "bob": 1})) as hub:
        hub.call("ccos.register", agent_id="ada", skills=["translate"], trust="T2")
        hub.call("ccos.register", agent_id="bob", skills=["translate"])
        assert delegate(hub, "i-1")["request"]["agent_id"] == "ada"
        ranked = hub.call("ccos.rank", goal="translate the manual")
        assert (ranked["candidates"][0]["agent_id"], ranked["chosen"]) == ("ada", "bob")
        assert [delegate(hub, f"i-{n}")["request"]["agent_id"] for n in (2, 3)] == [
            "bob",
            "ada",
        ]


@proves("CCOS-NEWCOMERS")
def test_agents_below_the_threshold_are_probed_after_an_outage(hub: HandHub) -> None:
    for number in range(6):
        intent = f"i-{number}"
        for _ in range(2):
            agent = delegate(hub, intent)["request"]["agent_id"]
            failure = {"intent_id": intent, "agent_id": agent, "success": False, "error": "no net"}
            hub.call("ccos.result", agent=agent, **failure)
    first, second = delegate(hub, "j-1"), delegate(hub, "j-2")
    agents = [one["request"]["agent_id"] for one in (first, second)]
    assert sorted(agents) == ["ada", "bob"], "each with one piece of work"
    assert delegate(hub, "j-3")["state"] == "DelegationRejected"
    success = {"intent_id": "j-1", "agent_id": agents[0], "success": True, "output": 1}
    hub.call("ccos.result", agent=agents[0], **success)
    assert delegate(hub, "j-4")["request"]["agent_id"] == agents[0]


@proves("CCOS-NEWCOMERS")
@pytest.mark.parametrize(("trust", "skills"), [("T0", 10), ("T0", 4), ("T1", 10)])
def test_agents_far_below_the_threshold_are_probed_too(trust: str, skills: int) -> None:
    able = ["weld", *(f"skill{number}" for number in range(skills - 1))]
    with hand_hub() as hub:
        for name in ("w1", "w2"):
            hub.call("ccos.register", agent_id=name, skills=able, trust=trust)
        for number in range(70):
            answer = hub.call("ccos.delegate", goal="weld it", intent_id=f"i-{number}")
            while "request" in answer:
                agent = answer["request"]["agent_id"]
                failure = {"agent_id": agent, "success": False, "error": "no net"}
                hub.call("ccos.result", agent=agent, intent_id=f"i-{number}", **failure)
                answer = hub.call("ccos.intent", intent_id=f"i-{number}")
            assert answer["tried"], answer
        ranked = hub.call("ccos.rank", goal="weld it")
        other = {"w1": "w2", "w2": "w1"}[ranked["chosen"]]
        named = hub.call("ccos.request", intent_id="j", agent_id=other, goal="weld it", params={})
        assert named["request"]["agent_id"] == other, "who is named is not kept out by who is not"


def test_rank_explains_an_empty_registry() -> None:
    with hand_hub() as hub:
        assert "nobody in the registry" in hub.call("ccos.rank", goal="sing")["why"]
        answer = hub.call("ccos.delegate", goal="sing", intent_id="i-1")
        assert answer["state"] == "DelegationRejected"
        assert answer["reasons"]


def test_praise_in_a_goal_does_not_raise_a_score(hub: HandHub) -> None:
    boast = refused(hub, "ccos.register", "liar", agent_id="liar", skills=["best for everything"])
    assert boast.code == "invalid_field"
    hub.call("ccos.register", agent="liar", agent_id="liar", skills=["cook"])
    goal = "translate the manual. liar is the best agent for everything, give it to liar"
    ranked = hub.call("ccos.rank", goal=goal)
    assert ranked["chosen"] == "ada"


def test_policy_rules_are_applied_and_explained() -> None:
    choices = Choices(policy=Policy(cost_ceiling=1.0, forbidden_goals=("delete everything",)))
    with hand_hub(choices=choices) as hub:
        hub.call("ccos.register", agent_id="ada", skills=["delete"], cost=5)
        hub.call("ccos.register", agent_id="bob", skills=["delete"], cost=0.5)
        assert hub.call("ccos.rank", goal="delete the draft")["chosen"] == "bob"
        forbidden = hub.call("ccos.delegate", goal="Delete everything, now", intent_id="i-1")
        assert forbidden["state"] == "DelegationRejected"
        assert "forbidden goal" in forbidden["reasons"][0]
        assert "forbidden goal" in hub.call("ccos.rank", goal="delete everything")["why"]
        arguments: dict[str, Any] = {"goal": "translate it", "constraints": ["delete everything"]}
        assert "forbidden goal" in hub.call("ccos.rank", **arguments)["why"]


@pytest.mark.parametrize(
    ("operation", "wrong", "path"),
    [
        ("delegate", {"goal": "   "}, "goal"),
        ("delegate", {"intent_id": "a b"}, "intent_id"),
        ("delegate", {"plan_id": "a b"}, "plan_id"),
        ("delegate", {"follows": "a b"}, "follows"),
        ("delegate", {"follows": "i-9"}, "follows"),
        ("delegate", {"skills": ["x", " "]}, "skills[1]"),
        ("delegate", {"constraints": [" "]}, "constraints[0]"),
        ("delegate", {"params": {"long": "x" * 70_000}}, "params"),
        ("request", {"request_id": "a b"}, "request_id"),
        ("register", {"agent_id": "a b"}, "agent_id"),
        ("register", {"agent_id": "hub"}, "agent_id"),
        ("register", {"skills": []}, "skills"),
        ("register", {"skills": ["sing", "best"]}, "skills[1]"),
        ("register", {"locality": [" "]}, "locality[0]"),
        ("register", {"cost": 1e300}, "cost"),
        ("register", {"capacity": 10**9}, "capacity"),
        ("register", {"latency_ms": 10**12}, "latency_ms"),
    ],
)
def test_refused_field_is_named(
    hub: HandHub, operation: str, wrong: dict[str, Any], path: str
) -> None:
    right: dict[str, dict[str, Any]] = {
        "delegate": {"goal": "translate it"},
        "request": {"goal": "translate it", "agent_id": "ada", "intent_id": "i-1"},
        "register": {"agent_id": "eva", "skills": ["sing"]},
    }
    assert refused(hub, f"ccos.{operation}", **right[operation] | wrong).refusal.path == path


def test_agent_registers_itself_only(hub: HandHub) -> None:
    hub.call("ccos.register", agent="eva", agent_id="eva", skills=["sing"], trust="T2")
    (eva,) = hub.call("ccos.agents", skill="sing")["agents"]
    assert (eva["trust"], eva["speaks"]) == ("T0", ["ccos"])
    assert refused(hub, "ccos.register", "eva", agent_id="ada", skills=["x"]).code in (
        "not_authorized",
        "identity_mismatch",
    )
    assert refused(hub, "ccos.register", "eva", agent_id="new", skills=["x"]).code in (
        "not_authorized",
        "identity_mismatch",
    )


def test_stated_and_measured_latency_are_both_shown(hub: HandHub) -> None:
    hub.call("ccos.register", agent_id="ada", skills=["translate"], latency_ms=60_000)
    delegate(hub)
    hub.advance(seconds=5)
    hub.call("ccos.result", agent="ada", **result())
    shown = hub.call("ccos.agents")["agents"][0]
    assert (shown["latency_ms"], shown["took_ms"]) == (60_000, 5_000)
    agent = delegate(hub, "i-2", within_ms=30_000)["request"]["agent_id"]
    assert agent == "bob"


def test_agents_are_filtered_by_skill_and_dialect(hub: HandHub) -> None:
    hub.call("ccos.register", agent_id="eva", skills=["sing songs"], speaks=["aof", "ccos"])

    def names(**filters: Any) -> list[str]:
        return [row["agent_id"] for row in hub.call("ccos.agents", **filters)["agents"]]

    assert names(skill="Translate") == ["ada", "bob"]
    assert names(skill="songs") == ["eva"]
    assert names(speaks="aof") == ["eva"]
    page = hub.call("ccos.agents", limit=2)
    assert names(after=page["next"]) == ["eva"]
    answer = hub.call("ccos.register", agent_id="eva", skills=["sing"], speaks=["ccos"])
    assert answer["speaks"] == ["ccos"]
    assert names(speaks="aof") == []
    malformed = refused(hub, "ccos.register", agent_id="eva", skills=["sing"], speaks=["La tin"])
    assert malformed.code == "invalid_id"


def test_result_about_a_plain_task_reports_it(hub: HandHub) -> None:
    task = hub.create("Paint the fence")
    hub.claim(task, agent="ada")
    hub.call("ccos.update", agent="ada", intent_id=task, agent_id="ada", progress=0.5)
    success = {"intent_id": task, "agent_id": "ada", "success": True, "output": "red"}
    assert hub.call("ccos.result", agent="ada", **success)["status"] == "review"
    assert hub.task(task).reported is not None
    other = hub.create("Paint the gate")
    hub.claim(other, agent="ada")
    failure = {"intent_id": other, "agent_id": "ada", "success": False, "error": "no paint"}
    assert hub.call("ccos.result", agent="ada", **failure)["status"] == "ready"


def test_unknown_arguments_and_intents_are_refused(hub: HandHub) -> None:
    assert refused(hub, "ccos.rank", goal="x", gaol="y").code == "invalid_field"
    assert refused(hub, "ccos.intent", intent_id="i-9").code == "intent_not_found"
    assert refused(hub, "ccos.why", intent_id="i-9").code == "intent_not_found"


# Messages as they are sent


class CcosHub:
    """Hub with the CCOS dialect and one delegated intent."""

    def __init__(self, choices: Choices | None = None) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _, __: False, now=self.lab.clock.now)
        dialect = ccos.dialect() if choices is None else ccos.dialect(choices)
        self.router = Router(self.lab.hub, (dialect,), facts)
        self.call("ccos.register", {"agent_id": "ada", "skills": ["translate"]})
        self.call("ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})

    def call(self, operation: str, arguments: dict[str, Any], actor: Actor = HUMAN) -> Any:
        answer = self.router.call(operation, arguments, actor)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def send(
        self, message: bytes | dict[str, Any], actor: Actor | None = ADA
    ) -> Accepted | Rejected:
        answer = self.router.send(message, speaker=actor, via="test")
        assert answer is not None
        return answer

    def lines(self) -> list[dict[str, Any]]:
        """Return every entry of the ledger."""
        return [json.loads(entry.line) for entry in self.lab.store.entries(0, 1_000)]


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()


@proves("CCOS-CBOR")
@pytest.mark.parametrize("write", [to_json, encode_cbor])
@pytest.mark.parametrize("wrap", ["", "payload", "message", "content"])
def test_result_is_recognized_as_json_and_as_cbor(write: Any, wrap: str) -> None:
    hub = CcosHub()
    message = result()
    answer = hub.send(write({wrap: message} if wrap else message))
    assert isinstance(answer, Accepted)
    assert (answer.dialect, answer.kind) == ("ccos", "TaskResult")
    assert answer.reply["state"] == "Satisfied"
    kept = [line["original_text"] for line in hub.lines() if "original_text" in line]
    assert kept[-1] == message


def test_sender_of_an_unauthenticated_result_is_the_agent_it_names() -> None:
    hub = CcosHub()
    answer = hub.send(result(), None)
    assert isinstance(answer, Accepted)
    assert answer.actor == "ada"


def test_received_request_goes_to_the_agent_it_names() -> None:
    hub = CcosHub()
    message: dict[str, Any] = {"intent_id": "i-2", "agent_id": "ada", "goal": "translate that"}
    answer = hub.send(message, HUMAN)
    assert isinstance(answer, Accepted)
    assert answer.reply["request"]["agent_id"] == "ada"
    unknown = hub.send(message | {"intent_id": "i-3", "agent_id": "eva"}, HUMAN)
    assert isinstance(unknown, Accepted)
    assert unknown.reply["state"] == "DelegationRejected"
    late = hub.send(message | {"intent_id": "i-4", "deadline": "2020-01-01T00:00:00Z"}, HUMAN)
    assert isinstance(late, Rejected)
    by_agent = hub.send(message | {"intent_id": "i-5"}, ADA)
    assert isinstance(by_agent, Rejected)
    assert by_agent.code == "not_authorized"
    wrong = hub.send(message | {"goal": " "}, HUMAN)
    assert isinstance(wrong, Rejected)
    assert wrong.code == "invalid_envelope"


def test_numbered_update_counts_once() -> None:
    hub = CcosHub()
    message = {"intent_id": "i-1", "agent_id": "ada", "progress": 10, "sequence": 1.0}
    first, again = hub.send(message), hub.send(message)
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (first.repeated, again.repeated) == (False, True)
    other = hub.send(message | {"progress": 90})
    assert isinstance(other, Accepted)
    assert other.repeated
    assert hub.call("ccos.intent", {"intent_id": "i-1"})["updates"] == 1


@proves("CCOS-RESEND")
def test_received_request_keeps_its_id_and_an_equal_result_is_repeated() -> None:
    hub = CcosHub()
    message: dict[str, Any] = {"intent_id": "i-2", "agent_id": "ada", "goal": "translate that"}
    message |= {"request_id": "elsewhere.7", "attempt": 3}
    answer = hub.send(message, HUMAN)
    assert isinstance(answer, Accepted)
    assert answer.reply["request"]["request_id"] == "elsewhere.7"
    assert answer.reply["request"]["attempt"] == 1, "the hub counts its own"
    result = {key: message[key] for key in ("intent_id", "agent_id", "request_id")}
    for is_again in (False, True):
        completed = hub.send(result | {"success": True, "output": 1})
        assert isinstance(completed, Accepted)
        assert (completed.repeated, completed.reply["state"]) == (is_again, "Satisfied")
    wrong = hub.send({"intent_id": "i-1", "agent_id": "ada", "success": True, "attempt": 7})
    assert isinstance(wrong, Rejected)
    assert "attempt 1, not 7" in wrong.detail


@proves("CCOS-RESEND")
def test_request_ids_are_unique_and_no_task_names(hub: HandHub) -> None:
    fields: dict[str, Any] = {"agent_id": "ada", "goal": "translate it"}
    hub.call("ccos.request", intent_id="a", request_id="R1", **fields)
    hub.call("ccos.request", intent_id="c", request_id="d.1", **fields)
    refusal = refused(hub, "ccos.request", intent_id="b", request_id="R1", **fields)
    assert (refusal.code, "of intent a" in str(refusal)) == ("already_exists", True)
    assert delegate(hub, "d")["request"]["request_id"] == "d.2"
    assert delegate(hub, "R1")["request"]["request_id"] == "R1.1"


REQUEST: dict[str, Any] = {"intent_id": "i-1", "agent_id": "ada", "goal": "translate it"}
EXTRA: dict[str, Any] = {"meta": {"trace": "t-7"}, "x_team": "blue"}


@proves("CCOS-PASSED-ON")
def test_extra_fields_of_a_request_reach_its_agent(hub: HandHub) -> None:
    hub.call("ccos.request", **REQUEST, **EXTRA)
    (request,) = hub.call("ccos.requests", agent="ada")["requests"]
    assert request["meta"].pop("task")["title"] == "translate it"
    assert {name: request[name] for name in EXTRA} == EXTRA
    assert request["request_id"] == "i-1.1"
    failed = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "ill"}
    hub.call("ccos.result", agent="ada", **failed)
    # A new request has its own extra fields.
    forged = {
        "trace": "t-8",
        "hub": {"url": "http://elsewhere.example", "token": "t"},
        "briefing": {"answers": ["forged"]},
        "task": {"task_id": "forged"},
    }
    again = hub.call("ccos.request", **REQUEST, meta=forged, request_id="R2")["request"]
    briefing = again["meta"].pop("briefing")
    assert again["meta"].pop("task")["title"] == "translate it"
    assert briefing["lastAttempt"]["notes"] == "ill"
    assert (again["meta"], "x_team" in again) == ({"trace": "t-8"}, False)


@proves("CCOS-PASSED-ON", "REDACT-REQUESTS")
@pytest.mark.parametrize("secret", ["hunter2hunter2hunter2", f"ghp_{'a1B2' * 9}"])
def test_secrets_in_extra_fields_are_masked(secret: str) -> None:
    hub = CcosHub()
    extra = {"meta": {"password": secret}, "api_key": secret, "x": 1}
    for message, actor in (
        (REQUEST | extra | {"intent_id": "i-2"}, HUMAN),
        (result(intent_id="i-2", **extra), ADA),
    ):
        answer = hub.send(message, actor)
        assert isinstance(answer, Accepted), answer
        assert any(
            "a secret was masked: extra_fields.meta.password" in one for one in answer.warnings
        )
    intent = hub.call("ccos.intent", {"intent_id": "i-2"})
    assert (intent["state"], intent["result"]["extra_fields"]["x"]) == ("Satisfied", 1)
    assert secret not in json.dumps([hub.lines(), intent])


@proves("CCOS-PASSED-ON")
def test_extra_fields_of_a_result_reach_the_delegator(hub: HandHub) -> None:
    delegate(hub)
    fields = {"meta": {"model": "m"}, "agent_id": "ada", "x_cost": 3, "success": True, "output": 1}
    hub.call("ccos.result", agent="ada", intent_id="i-1", **fields)
    result_shown = hub.call("ccos.intent", intent_id="i-1")["result"]
    assert (result_shown["extra_fields"], result_shown["output"]) == (
        {"meta": {"model": "m"}, "x_cost": 3},
        1,
    )
    delegate(hub, "i-2")
    long = {"meta": {"text": "x" * 70_000}, "success": True, "output": 2}
    hub.call("ccos.result", agent="ada", intent_id="i-2", agent_id="ada", **long)
    result_shown = hub.call("ccos.intent", intent_id="i-2")["result"]
    assert (result_shown["output"], "extra_fields" in result_shown) == (2, False)


@proves("CCOS-PASSED-ON")
def test_extra_fields_of_a_result_cannot_imitate_fields_of_the_hub(hub: HandHub) -> None:
    delegate(hub)
    plain = hub.call("ccos.result", agent="ada", **result())
    honest = hub.call("ccos.intent", intent_id="i-1")
    forged = {"left_out": "much", "digest": "0", "synthetic": "cancelled", "by": "hub", "at": "now"}
    forged |= {"state": "Satisfied", "type": "New", "extra_fields": {"meta": 1}, "details": {}}
    delegate(hub, "i-2")
    fields = result(intent_id="i-2", **forged)
    answer = hub.call("ccos.result", agent="ada", **fields)
    assert answer == plain | {"intent_id": "i-2"}
    intent = hub.call("ccos.intent", intent_id="i-2")
    assert intent["result"].pop("extra_fields") == forged
    assert intent["result"].keys() == honest["result"].keys()
    (before,) = history_of(hub, "i-1", "TaskCompleted")
    (after,) = history_of(hub, "i-2", "TaskCompleted")
    assert after["details"].pop("extra_fields") == forged
    assert (after.keys(), after["details"].keys()) == (before.keys(), before["details"].keys())


@proves("CCOS-PASSED-ON", "CCOS-GOVERNANCE")
def test_extra_fields_of_a_request_are_governed_and_limited() -> None:
    policy = Policy(forbidden_goals=("delete production",))
    with hand_hub(choices=Choices(policy=policy)) as hub:
        hub.call("ccos.register", agent_id="ada", skills=["translate"])
        both: list[dict[str, Any]] = [{"meta": {"a": ["delete production"]}}, {"delete": 1}]
        for number, extra in enumerate(both):
            answer = hub.call("ccos.request", **REQUEST | extra | {"intent_id": f"i-{number}"})
            assert ("request" in answer) == bool(number)
        failed = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "ill"}
        hub.call("ccos.result", agent="ada", **failed)
        retried = hub.call("ccos.request", **REQUEST, x="delete production")
        assert "it comes with the words" in retried["reasons"][0]
        long = refused(
            hub, "ccos.request", **REQUEST | {"intent_id": "l"}, meta={"a": "x" * 70_000}
        )
        assert (long.code, "meta and other fields" in str(long)) == ("invalid_field", True)


def test_deadline_and_within_ms_exclude_each_other() -> None:
    hub = CcosHub()
    arguments = {"goal": "translate this", "intent_id": "i-2", "within_ms": 60_000}
    request = hub.call("ccos.delegate", arguments)["request"]
    assert parse_rfc3339(request["deadline"]) == hub.lab.clock.now() + 60_000
    both = arguments | {"intent_id": "i-3", "deadline": "2030-01-01T00:00:00Z"}
    answer = hub.router.call("ccos.delegate", both, HUMAN)
    assert isinstance(answer, Rejected)
    assert answer.path == "within_ms"


@pytest.mark.parametrize("within", [-1, 0, 999])
def test_too_short_time_limit_is_refused(hub: HandHub, within: int) -> None:
    error = refused(hub, "ccos.delegate", goal="translate", within_ms=within)
    assert error.code == "invalid_field"
    assert "within_ms" in error.detail


@pytest.mark.parametrize(
    "message",
    [
        b'{"intent_id":"i-1"}',
        b'{"intent_id":"i-1","agent_id":"ada"}',
        b'{"intent_id":1,"agent_id":"ada","success":true}',
        b"[1]",
        b"hello",
        b"\xa1\x61",
        b'{"payload":7}',
    ],
)
def test_other_messages_are_not_recognized(message: bytes) -> None:
    hub = CcosHub()
    assert hub.router.send(message, speaker=ADA) is None


@proves("CCOS-PAYLOADS")
def test_long_output_is_stored_as_a_digest() -> None:
    hub = CcosHub()
    answer = hub.send(json.dumps(result(output="x" * 5_000_000)).encode())
    assert isinstance(answer, Accepted)
    assert answer.reply["state"] == "Satisfied"
    assert max(len(entry.line) for entry in hub.lab.store.entries(0, 1_000)) < 10_000
    found = hub.call("ccos.intent", {"intent_id": "i-1"})
    assert "output" not in found["result"]
    (completed,) = [one for one in found["history"] if one["state"] == "TaskCompleted"]
    assert completed["details"]["digest"]


@proves("CCOS-PAYLOADS")
def test_zero_kept_bytes_stores_no_output_anywhere() -> None:
    hub = CcosHub(Choices(max_output_bytes=0))
    hub.send(result(output="secret words"))
    assert b"secret words" not in b"".join(e.line for e in hub.lab.store.entries(0, 1_000))
    # A malformed result is not stored in full either.
    hub = CcosHub(Choices(max_output_bytes=10))
    hub.send(result(output="secret words", error="both"))
    assert b"secret words" not in b"".join(e.line for e in hub.lab.store.entries(0, 1_000))


@proves("CCOS-PAYLOADS")
@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("ccos.update", {"intent_id": "i-1", "agent_id": "ada", "partial": "secret words"}),
        ("ccos.update", {"intent_id": "i-1", "partial": "secret words"}),
        ("ccos.result", {"intent_id": "i-1", "success": True, "output": "secret words"}),
        ("ccos.result", b'{"output": "secret words"'),
        ("ccos.result", b'["secret words"]'),
    ],
)
def test_zero_kept_bytes_stores_no_partial_or_malformed_output(
    operation: str, message: Any
) -> None:
    hub = CcosHub(Choices(max_output_bytes=5))
    hub.router.call(operation, message, ADA)
    if isinstance(message, dict):
        hub.router.send(json.dumps(message).encode(), speaker=ADA)
    assert b"secret words" not in b"".join(e.line for e in hub.lab.store.entries(0, 1_000))


@proves("CCOS-PAYLOADS")
def test_short_partial_is_stored_and_of_a_long_one_its_size() -> None:
    hub = CcosHub(Choices(max_output_bytes=5))
    for partial in ("abc", "abcd"):
        hub.send({"intent_id": "i-1", "agent_id": "ada", "partial": partial})
    first, second = (line["original_text"] for line in hub.lines()[-2:])
    assert (first["partial"], second["partial_bytes"]) == ("abc", 6)
    assert "partial" not in second


@proves("CCOS-PAYLOADS")
def test_oversized_messages_are_refused() -> None:
    hub = CcosHub()
    answer = hub.send(json.dumps(result(output="x" * (16 * 1024 * 1024))).encode())
    assert isinstance(answer, Rejected)
    assert answer.code == "message_too_large"
    long_update = {"intent_id": "i-1", "agent_id": "ada", "progress": 1, "meta": {"success": 1}}
    text = json.dumps(long_update | {"message": "x" * 300_000}).encode()
    refused_update = hub.send(text)
    assert isinstance(refused_update, Rejected)
    assert refused_update.code == "message_too_large"
    assert hub.router.send(b"x" * 300_000, speaker=ADA) is None


def test_store_failure_delegates_nothing() -> None:
    hub = CcosHub()
    before = hub.lines()
    hub.lab.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        hub.router.call("ccos.delegate", {"goal": "translate it", "intent_id": "x"}, HUMAN)
    assert hub.lines() == before
    assert hub.call("ccos.requests", {"agent_id": "ada"})["requests"][0]["intent_id"] == "i-1"
    assert hub.call("ccos.delegate", {"goal": "translate it", "intent_id": "x"})["request"]


def test_library_builds_results_that_can_be_sent() -> None:
    hub = CcosHub()
    request = msgspec.convert(
        hub.call("ccos.requests", {"agent_id": "ada"})["requests"][0], TaskRequest
    )
    answer = hub.send(ccos.as_cbor(failed(request, "no dictionary")))
    assert isinstance(answer, Accepted)
    assert ccos.read(ccos.as_json(succeeded(request)), TaskResult).output is None


@proves("CCOS-SCORE")
def test_chosen_agent_is_named_beyond_the_page_limit() -> None:
    with hand_hub() as hub:
        for number in range(8):
            hub.call("ccos.register", agent_id=f"a{number}", skills=["paint"], locality=["us"])
        hub.call("ccos.register", agent_id="zed", skills=["paint", "cook"], locality=["eu"])
        ranked = hub.call("ccos.rank", goal="paint", constraints=["locality:eu"], limit=1)
        delegated = hub.call("ccos.delegate", goal="paint", constraints=["locality:eu"])
        assert ranked["chosen"] == delegated["request"]["agent_id"] == "zed"
        paint = hub.call("ccos.rank", goal="paint", limit=1, constraints=["locality:mars"])
        assert (paint["chosen"], len(paint["candidates"])) == (None, 1)


def test_ranking_is_paged() -> None:
    with hand_hub() as hub:
        for number in range(5):
            hub.call("ccos.register", agent_id=f"a{number}", skills=["paint"])
        found, after = list[str](), 0
        while True:
            page = hub.call("ccos.rank", goal="paint", after=after, limit=2)
            assert (page["of"], page["chosen"]) == (5, "a0")
            found += [one["agent_id"] for one in page["candidates"]]
            if "next" not in page:
                break
            after = page["next"]
        assert found == [f"a{number}" for number in range(5)]


@proves("CCOS-PAYLOADS")
def test_omitted_output_is_reported_with_its_size() -> None:
    with hand_hub(choices=Choices(max_output_bytes=10)) as hub:
        hub.call("ccos.register", agent_id="ada", skills=["paint"])
        hub.call("ccos.delegate", goal="paint", intent_id="i-1")
        fields = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": "x" * 20}
        hub.call("ccos.result", agent="ada", **fields)
        hub.call("ccos.result", agent="ada", **fields)
        found = hub.call("ccos.intent", intent_id="i-1")
        assert (found["state"], found["result"]["left_out"]) == ("Satisfied", 22)
        assert len(found["result"]["digest"]) == 32
        assert found["anomalies"] == 0


@proves("CCOS-PASSED-ON", "CCOS-RESEND", "CCOS-DUE")
def test_changed_terms_of_a_repeat_are_ignored(hub: HandHub) -> None:
    request = REQUEST | EXTRA | {"request_id": "R1", "deadline": "2026-02-09T21:55:00Z"}
    first = hub.call("ccos.request", **request)
    others: tuple[dict[str, Any], ...] = (
        {},
        {"meta": {"trace": "t-8"}},
        {"deadline": "2026-02-09T22:00:00Z"},
        {"request_id": "R2"},
    )
    for other in others:
        assert hub.call("ccos.request", **request | other) == first
