"""Faults where dialects meet: nothing that one says is lost or mistaken in another."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actor import HUB_ACTOR, HUB_NAME, Actor
from dragoman.core.attempt import ClaimTask, ExpireLease, ReleaseTask, ReportOutcome
from dragoman.core.handoff.state import CloseHandoff, CompleteHandoff
from dragoman.core.mail import Mail
from dragoman.core.task_state import CreateTask, EditTask, MoveTask
from dragoman.core.wave import AdvanceWave, StartWave, WaveBead
from dragoman.engine.queries.mail import all_mail
from dragoman.engine.request import Rejected
from dragoman.protocols import agentmail
from tests.engine import handoffs
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN
from tests.engine.mixed_hub import MixedHub, aof_message, turn
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


@pytest.mark.parametrize("what", ["failed", "blocked", "deadletter"])
def test_sender_and_coordinator_are_told_when_the_recipient_does_not_go_on(
    hub: MixedHub, what: str
) -> None:
    hub.register("carl", role="coordinator")
    attempts = 1 if what == "deadletter" else 5
    hub.do(HUMAN, CreateTask("Fix the login", id="t1", ready=True, max_attempts=attempts))
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    outcome: Any = "blocked" if what == "blocked" else "failed"
    hub.do(BOB, ReportOutcome("t1", outcome, "", ("no key",), apply=True))
    status = "ready" if what == "failed" else what
    for name in ("alice", "carl"):
        (told,) = _letters(hub, name, "status.blocked")
        payload = msgspec.json.decode(told.body)
        assert payload["blocking_issue"] == f"t1 is {status}: no key"
        assert payload["handoff_id"] == "h1"
    assert handoffs.state(hub, "h1").status == "activated"


def test_whoever_blocks_the_task_is_not_told_of_it(hub: MixedHub) -> None:
    handoffs.make(hub)
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    hub.do(Actor("orchestrator", "alice"), MoveTask("t1", "blocked", "wait"))
    assert _letters(hub, "alice", "status.blocked") == []


def test_sender_is_told_when_a_lost_lease_ends_in_the_deadletter(hub: MixedHub) -> None:
    hub.do(HUMAN, CreateTask("Fix the login", id="t1", ready=True, max_attempts=1))
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    hub.clock.advance(3_600_000)
    hub.do(HUB_ACTOR, ExpireLease("t1", notify=("carl",)))
    assert hub.task("t1").status == "deadletter"
    assert len(_letters(hub, "alice", "status.blocked")) == 1
    assert len(_letters(hub, "carl", "status.blocked")) == 1


def test_rework_after_a_completion_is_told_to_both_sides(hub: MixedHub) -> None:
    handoffs.make(hub)
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    hub.do(BOB, CompleteHandoff("h1", "merged"))
    hub.do(HUMAN, MoveTask("t1", "ready", "the tests fail"))
    (again,) = _letters(hub, "bob", "status.update")
    (told,) = _letters(hub, "alice", "knowledge.push")
    for letter in (again, told):
        assert letter.sender == HUB_NAME
        assert msgspec.json.decode(letter.body)["text"] == "the tests fail"
    assert msgspec.json.decode(told.body)["sent_back_to"] == "bob"


def test_work_that_another_agent_has_meanwhile_is_no_rework_of_the_handoff(hub: MixedHub) -> None:
    handoffs.make(hub)
    handoffs.offer(hub)
    handoffs.accept(hub)
    handoffs.activate(hub)
    hub.do(BOB, CompleteHandoff("h1", "merged"))
    hub.do(HUMAN, EditTask("t1", assignee="carol"), MoveTask("t1", "ready", "once more"))
    assert _letters(hub, "bob", "status.update") == []


def test_retries_of_a_wave_count_a_failure_told_by_a_result(hub: MixedHub) -> None:
    hub.do(HUMAN, CreateTask("One", "ol-1", assignee="bob"))
    hub.do(HUMAN, StartWave((WaveBead("ol-1"),), 1, "w1", retries={"ERROR": 0}))
    hub.do(HUB_ACTOR, AdvanceWave("w1"))
    hub.do(BOB, ClaimTask("ol-1", "bob"))
    failed = {"intent_id": "ol-1", "agent_id": "bob", "success": False, "error": "no disk"}
    hub.send(failed, BOB)
    assert hub.task("ol-1").status == "blocked"


def test_blocked_of_aof_opens_a_help_case(hub: MixedHub) -> None:
    hub.do(HUMAN, CreateTask("One", "t1", ready=True))
    hub.do(BOB, ClaimTask("t1", "bob"))
    stuck: dict[str, Any] = {"agentId": "bob", "status": "blocked", "blockers": ["no key"]}
    hub.send(aof_message("status.update", hub.task("t1").aof_id, "bob", **stuck))
    (question,) = hub.task("t1").questions
    assert (question.text, question.asked_by) == ("no key", "bob")


@pytest.mark.parametrize("first", ["mail", "saop", "aof"])
def test_chain_begins_with_the_first_worker_of_another_dialect(hub: MixedHub, first: str) -> None:
    hub.register("carol", saop="developer")
    hub.do(HUMAN, CreateTask("Fix the login", id="t1", ready=True))
    if first == "mail":
        letter = {"subject": "[t1] BEAD_ACCEPTED", "body_md": "Bead: t1"}
        hub.call("mail.send", CAROL, to=["mia"], **letter)
    else:
        hub.do(CAROL, ClaimTask("t1", "carol"))
    if first == "saop":
        hub.send(turn("t1"), CAROL)
    hub.do(CAROL, ReleaseTask("t1", "not mine"))
    hub.do(ALICE, ClaimTask("t1", "alice"))
    handoffs.offer(hub)
    assert handoffs.state(hub, "h1").chain == ("carol", "alice")


def _letters(hub: MixedHub, name: str, kind: str) -> list[Mail]:
    found = (letter.mail for letter in all_mail(hub.store, f"in:{name}"))
    return [mail for mail in found if mail.kind == kind]
