"""Rendered intent events: a line for each step and anomaly, with its task, without output."""

import json
from typing import Any

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.intent.candidate import Policy, Requirements
from dragoman.core.intent.state import DelegateIntent, ReceiveResult, UpdateIntent
from dragoman.core.task_state import MoveTask
from dragoman.engine.candidate_index import CandidateIndex
from dragoman.engine.queries.tasks import find_task
from dragoman.protocols.aof.render import render_lines
from tests.engine.lab import ALICE, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("CCOS-LIFE", "CCOS-RECEIPT")

BOB = Actor("agent", "bob")
SECRET = "a long output that is nobody's business"


def lines(lab: Lab) -> list[dict[str, Any]]:
    """Return all rendered lines of the ledger."""

    def aof_id_of(name: str) -> str:
        found = find_task(lab.store, name)
        return getattr(getattr(found, "task", None), "aof_id", name)

    rendered = (render_lines(entry, aof_id_of) for entry in lab.store.entries(0, 1_000))
    return [json.loads(line) for part in rendered for line in part]


def test_every_intent_step_has_a_line_with_its_task_and_no_output() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("alice"), DescribeAgent("alice", ("python",)))
    found = CandidateIndex(lab.store).shortlist(Requirements("python"), Policy(), START)
    command = DelegateIntent("python", "i", {"x": SECRET}, patience_ms=60_000, candidates=found)
    lab.do(HUMAN, command)
    lab.do(ALICE, UpdateIntent("i", "alice", 50, "half", partial=SECRET))
    assert lab.code(BOB, ReceiveResult("i", "bob", success=True)) == "anomaly"
    assert lab.code(BOB, ReceiveResult("none", "bob", success=True)) == "anomaly"
    lab.do(ALICE, ReceiveResult("i", "alice", success=True, output=SECRET))
    lab.do(HUMAN, DelegateIntent("python", "j", candidates=found))
    lab.do(HUMAN, MoveTask("j", "cancelled"))
    logged = lines(lab)
    intents = [line for line in logged if line["type"].startswith("intent.")]
    assert [line["type"] for line in intents[:6]] == [
        "intent.created",
        "intent.proposed",
        "intent.approved",
        "intent.dispatched",
        "intent.updated",
        "intent.anomaly",
    ]
    assert {
        "intent.completed",
        "intent.feedback_applied",
        "intent.satisfied",
        "intent.needs_follow_up",
    } <= {line["type"] for line in intents}
    known = lab.task("i").aof_id
    assert {line["taskId"] for line in intents[:6]} == {known}
    assert intents[3]["payload"]["deadline"].endswith("Z")
    unknown = next(line for line in intents if line["payload"].get("intent") == "none")
    assert (unknown["type"], unknown["actor"]) == ("intent.anomaly", "bob")
    assert SECRET not in json.dumps(logged)
