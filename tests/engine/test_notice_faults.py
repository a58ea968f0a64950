"""Faults where dialects meet: nothing that one says is lost or mistaken in another."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.handoff.state import CloseHandoff, CompleteHandoff
from dragoman.core.task_state import CreateTask, EditTask, MoveTask
from dragoman.engine.queries.mail import all_mail
from dragoman.engine.request import Rejected
from dragoman.protocols import agentmail
from tests.engine import handoffs
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN
from tests.engine.mixed_hub import MixedHub, aof_message
from tests.requirements import proves

pytestmark = proves("DIALECTS-MEET")


@pytest.fixture
def hub() -> MixedHub:
    return MixedHub()


def delegate(hub: MixedHub) -> None:
    """Delegate an intent to bob."""
    hub.register("bob", "ccos")
    hub.call("ccos.register", BOB, agent_id="bob", skills=["python"])
    hub.call("ccos.delegate", Actor("orchestrator", "alice"), goal="Write python", intent_id="i1")


def test_request_is_not_offered_while_its_task_is_in_review(hub: MixedHub) -> None:
    delegate(hub)
    hub.do(HUMAN, EditTask("i1", review_required=True))
    hub.do(BOB, ClaimTask("i1", "bob"))
    assert len(hub.call("ccos.requests", BOB)["requests"]) == 1
    hub.do(BOB, ReportOutcome("i1", "needs_review", "look", apply=True))
    assert hub.call("ccos.requests", BOB)["requests"] == []


def test_priority_of_an_offer_is_that_of_its_new_task(hub: MixedHub) -> None:
    package: Any = handoffs.package("n1")
    package["task"]["priority"] = "high"
    hub.call("acp_handoff", ALICE, action="initiate", to_agent="bob", **package)
    assert hub.task("n1").priority == "high"


def test_partial_work_is_no_plain_completion(hub: MixedHub) -> None:
    handoffs.make(hub)
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    hub.do(BOB, ReportOutcome("t1", "partial", "half of it", apply=True))
    (told,) = (
        letter.mail
        for letter in all_mail(hub.store, "in:alice")
        if letter.mail.kind == "handoff.complete"
    )
    payload = msgspec.json.decode(told.body)
    assert (payload["outcome"], payload["note"]) == ("partial", "half of it")


def test_work_that_was_sent_back_cannot_be_closed(hub: MixedHub) -> None:
    handoffs.make(hub)
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    hub.do(BOB, CompleteHandoff("h1", "merged"))
    hub.do(HUMAN, MoveTask("t1", "ready", "rework"))
    assert hub.code(ALICE, CloseHandoff("h1")) == "invalid_transition"
    again = hub.router.call("acp_handoff", {"action": "activate", "handoff_id": "h1"}, BOB)
    assert isinstance(again, Rejected)
    assert again.code == "invalid_transition"
    hub.do(BOB, ClaimTask("t1", "bob"))
    hub.do(BOB, ReportOutcome("t1", "done", "now", apply=True))
    assert hub.code(ALICE, CloseHandoff("h1")) == ""


def test_summary_of_a_thread_has_the_status_of_its_task(hub: MixedHub) -> None:
    hub.do(HUMAN, CreateTask("One", "t1", ready=True))
    hub.call("mail.send", ALICE, to=["bob"], subject="[t1] hi", body_md="Bead: t1")
    assert hub.call("mail.summary", HUMAN, thread_id="t1")["task_status"] == "ready"
    hub.call("mail.send", ALICE, to=["bob"], subject="hi", body_md="x", thread_id="free")
    assert hub.call("mail.summary", HUMAN, thread_id="free")["task_status"] == ""


def test_byte_order_mark_hides_no_heading() -> None:
    letter = {"subject": "HELP_REQUEST", "body_md": "\ufeff## Problem\nno disk\n## Question\nwhy?"}
    parsed = agentmail.Parser().parse(letter).parsed
    assert (parsed.problem, parsed.question) == ("no disk", "why?")


@pytest.mark.parametrize("dialect", ["agentmail", "aof"])
def test_agent_that_was_asked_answers_in_any_dialect_without_a_claim(
    hub: MixedHub, dialect: str
) -> None:
    delegate(hub)
    if dialect == "agentmail":
        letter = {"subject": "[i1] DONE", "body_md": "Bead: i1\nStatus: DONE\n\n## Summary\nok"}
        answer = hub.call("mail.send", BOB, to=["alice"], **letter)
        assert answer["effect"]["applied"]
    else:
        tests = {"total": 0, "passed": 0, "failed": 0}
        known: dict[str, Any] = {
            "outcome": "done",
            "summaryRef": "a.md",
            "tests": tests,
            "notes": "ok",
        }
        hub.send(aof_message("completion.report", hub.task("i1").aof_id, "bob", **known))
    assert hub.task("i1").status == "done"
    assert hub.call("ccos.intent", HUMAN, intent_id="i1")["state"] == "Satisfied"


def test_answer_of_another_agent_is_still_refused(hub: MixedHub) -> None:
    delegate(hub)
    assert hub.code(CAROL, ReportOutcome("i1", "done", "x")) == "unauthorized_agent"
    hub.do(HUMAN, CreateTask("Plain", "t2", ready=True, assignee="bob"))
    assert hub.code(BOB, ReportOutcome("t2", "done", "x")) == "unauthorized_agent"


def test_without_a_store_of_artifacts_a_completion_is_taken_at_its_word(hub: MixedHub) -> None:
    handoffs.make(hub)
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    named = [{"artifact_id": "a", "ref": {"type": "file", "path": "none.txt"}}]
    answer = hub.call("acp_handoff", BOB, action="complete", handoff_id="h1", final_artifacts=named)
    assert answer["status"] == "completed"
