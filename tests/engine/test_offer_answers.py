"""Answers to an ACP offer in the dialect of its recipient, and help across dialects."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.delegation import RequestDelegation
from dragoman.core.handoff.state import ApproveHandoff, RejectHandoff
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, SendBackTask
from dragoman.engine.queries.mail import all_mail
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from tests.engine import handoffs
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, findings
from tests.engine.mixed_hub import MixedHub, aof_message, tool_event, turn
from tests.requirements import proves

pytestmark = proves("OFFER-ANSWER")

Say = Callable[["OfferHub"], Any]

_TESTS = {"total": 0, "passed": 0, "failed": 0}


class OfferHub(MixedHub):
    """Hub where alice has offered t1 to bob."""

    def __init__(self, **policy: Any) -> None:
        super().__init__()
        self.register("alice", "acp", saop="architect")
        self.register("bob", saop="developer")
        handoffs.make(self)
        package = handoffs.package()
        package["policy"] = {
            "classification": "internal",
            "requires_human_approval": False,
            **policy,
        }
        handoffs.offer(self, package=package)

    @property
    def handoff(self) -> str:
        return handoffs.state(self, "h1").status

    def begin(self) -> None:
        handoffs.accept(self)
        handoffs.activate(self)

    def report(self, outcome: str, **more: Any) -> Any:
        fields: dict[str, Any] = {
            "summaryRef": "a.md",
            "tests": _TESTS,
            "notes": "words",
            **more,
        }
        task = self.task("t1").aof_id
        return aof_message("completion.report", task, "bob", outcome=outcome, **fields)

    def letter(self, type: str, body: str = "") -> Any:
        row = {"subject": f"[t1] {type}", "body_md": f"Bead: t1\n{body}", "to": ["alice"]}
        return self.call("mail.send", BOB, **row)

    def message(self, type: str, by: Actor = BOB, to: str = "alice", **payload: Any) -> Any:
        return self.call("acp_send", by, to=[to], type=type, task_id="t1", payload=payload)

    def notice(self, number: int, kind: str, by: Actor = BOB, **more: Any) -> Any:
        payload = {"type": "NOTICE", "task_id": "t1", "kind": kind, "text": "words", **more}
        return self.send(tool_event(number, "s-1", **payload), by)

    def update(self, by: Actor = BOB, **fields: Any) -> Any:
        return self.send({"intent_id": "t1", "agent_id": by.name, **fields}, by)


def accept_by_aof(hub: OfferHub) -> Any:
    task = hub.task("t1").aof_id
    answer = hub.send(aof_message("handoff.accepted", task, "bob", "alice", accepted=True))
    assert answer["status"] == "in-progress"
    return answer


def reject_by_aof(hub: OfferHub) -> Any:
    task, why = hub.task("t1").aof_id, {"accepted": False, "reason": "words"}
    return hub.send(aof_message("handoff.rejected", task, "bob", "alice", **why))


BEGINNINGS: dict[str, Say] = {
    "aof": accept_by_aof,
    "agentmail": lambda hub: hub.letter("BEAD_ACCEPTED"),
    "agentmail progress": lambda hub: hub.letter("PROGRESS", "Step: 1\nStatus: going\n"),
    "saop": lambda hub: hub.send(turn("t1"), BOB),
    "saop notice": lambda hub: hub.notice(1, "accepted"),
    "saop transition": lambda hub: hub.send(
        tool_event(
            1, "s-1", type="TASK_TRANSITION", task_id="t1", from_state="ready",
            to_state="in-progress",
        ),
        BOB,
    ),
    "ccos": lambda hub: hub.update(progress=10, message="begun"),
}  # fmt: skip

REJECTIONS: dict[str, Say] = {
    "aof": reject_by_aof,
    "aof report": lambda hub: hub.send(hub.report("blocked", blockers=["words"])),
    "agentmail": lambda hub: hub.letter("FAILED", "\n## Failure\nType: ERROR\nReason: words\n"),
    "saop notice": lambda hub: hub.notice(1, "rejected"),
    "ccos": lambda hub: hub.update(success=False, error="words"),
    "ccos refusal": lambda hub: hub.update(success=False, error="words", meta={"kind": "rejected"}),
}

RESULTS: dict[str, Say] = {
    "aof": lambda hub: hub.send(hub.report("done")),
    "agentmail": lambda hub: hub.letter("DONE", "Status: DONE\n\n## Summary\nwords\n"),
    "acp": lambda hub: hub.message("status.complete", text="words"),
    "ccos": lambda hub: hub.update(success=True, output="words"),
}

OBSTACLES: dict[str, Say] = {
    "aof": lambda hub: hub.send(hub.report("blocked", blockers=["words"])),
    "agentmail": lambda hub: hub.letter(
        "FAILED", "\n## Failure\nType: SPEC_IMPOSSIBLE\nReason: words\n"
    ),
    "acp": lambda hub: hub.message("status.blocked", blocking_issue="words"),
}


# --- accept and activate ------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", BEGINNINGS)
def test_first_word_of_acceptance_accepts_and_activates(dialect: str) -> None:
    hub = OfferHub()
    BEGINNINGS[dialect](hub)
    task = hub.task("t1")
    assert (hub.handoff, task.status, task.assignee) == ("activated", "in-progress", "bob")
    assert handoffs.state(hub, "h1").passed == handoffs.CHECKS
    assert findings(hub.store) == []


@pytest.mark.parametrize("dialect", BEGINNINGS)
def test_accepted_offer_is_activated_and_a_repeat_changes_nothing(dialect: str) -> None:
    hub = OfferHub()
    handoffs.accept(hub)
    BEGINNINGS[dialect](hub)
    assert hub.handoff == "activated"
    attempts = hub.task("t1").attempts
    BEGINNINGS[dialect](hub)
    assert (hub.handoff, hub.task("t1").attempts) == ("activated", attempts)


def test_first_turn_belongs_to_the_attempt_that_it_begins() -> None:
    hub = OfferHub()
    first = hub.send(turn("t1"), BOB)
    assert first == {"ok": True, "position": first["position"], "masked": False}
    hub.send(turn("t1", 1), BOB)
    page = hub.call("saop.turns", BOB, task_id="t1")
    assert [one["attempt"] for one in page["turns"]] == [1, 1]
    assert page["gaps"] == ()


def test_recipient_that_lost_its_lease_takes_the_work_up_again() -> None:
    hub = OfferHub()
    BEGINNINGS["agentmail"](hub)
    hub.do(HUMAN, MoveTask("t1", "ready"))
    accept_by_aof(hub)
    assert (hub.handoff, hub.task("t1").attempts) == ("activated", 2)


# --- reject, complete, block --------------------------------------------------------------------


@pytest.mark.parametrize("dialect", REJECTIONS)
def test_refusal_before_activation_rejects_the_offer(dialect: str) -> None:
    hub = OfferHub()
    REJECTIONS[dialect](hub)
    rejected = handoffs.state(hub, "h1")
    assert (rejected.status, hub.task("t1").handoff) == ("rejected", None)
    assert rejected.rejection is not None
    assert (rejected.rejection.by, rejected.rejection.reason) == ("bob", "other")
    assert "words" in rejected.rejection.detail
    told = [letter.mail.kind for letter in all_mail(hub.store, "in:alice")]
    assert "system.error" in told


def test_refusal_without_words_says_so_and_a_known_reason_is_kept() -> None:
    hub = OfferHub()
    task = hub.task("t1").aof_id
    hub.send(aof_message("handoff.rejected", task, "bob", "alice", accepted=False))
    first = handoffs.state(hub, "h1").rejection
    assert first is not None
    assert first.detail == "no reason given"
    handoffs.offer(hub, "h2")
    hub.notice(1, "rejected", details={"reason": "timeout_risk", "recommendation": "wait"})
    second = handoffs.state(hub, "h2").rejection
    assert second is not None
    assert (second.reason, second.suggested_fix) == ("timeout_risk", "wait")


def test_begun_work_is_given_back_by_a_rejection() -> None:
    hub = OfferHub()
    hub.begin()
    reject_by_aof(hub)
    assert (hub.handoff, hub.task("t1").status) == ("rejected", "ready")


@pytest.mark.parametrize("dialect", RESULTS)
def test_result_of_begun_work_completes_the_handoff(dialect: str) -> None:
    hub = OfferHub()
    hub.begin()
    RESULTS[dialect](hub)
    assert (hub.handoff, hub.task("t1").status) == ("completed", "review")


@pytest.mark.parametrize("dialect", OBSTACLES)
def test_obstacle_blocks_the_task_and_leaves_the_handoff_activated(dialect: str) -> None:
    hub = OfferHub()
    hub.begin()
    OBSTACLES[dialect](hub)
    task = hub.task("t1")
    assert (hub.handoff, task.status) == ("activated", "blocked")
    assert [one.text for one in task.questions] == ["words"], "it opens the help case"


def test_result_may_ask_for_a_review() -> None:
    hub = OfferHub()
    hub.begin()
    answer = hub.message("status.complete", text="look", outcome="needs_review")
    assert answer["metadata"]["effect"] == {"applied": True}
    report = hub.task("t1").reported
    assert report is not None
    assert report.outcome == "needs_review"


@pytest.mark.parametrize("dialect", ["agentmail", "acp"])
@pytest.mark.parametrize("state", ["proposed", "accepted"])
def test_result_before_activation_is_recorded_and_its_effect_refused(
    dialect: str, state: str
) -> None:
    hub = OfferHub()
    if state == "accepted":
        handoffs.accept(hub)
    answer = RESULTS[dialect](hub)
    effect = answer["effect"] if dialect == "agentmail" else answer["metadata"]["effect"]
    assert (effect["applied"], effect["code"]) == (False, "unauthorized_agent") or dialect == "acp"
    assert not effect["applied"]
    assert hub.handoff == state
    assert any(letter.mail.sender == "bob" for letter in all_mail(hub.store, "in:alice"))


@pytest.mark.parametrize("dialect", ["aof", "ccos"])
def test_report_before_activation_is_refused(dialect: str) -> None:
    hub = OfferHub()
    report = (
        hub.report("done")
        if dialect == "aof"
        else {"intent_id": "t1", "agent_id": "bob", "success": True, "output": "words"}
    )
    assert hub.refusal(report, BOB) == "unauthorized_agent"
    assert hub.handoff == "proposed"


def test_update_of_aof_before_acceptance_is_refused() -> None:
    hub = OfferHub()
    task = hub.task("t1").aof_id
    update = aof_message("status.update", task, "bob", agentId="bob", progress="half")
    assert hub.refusal(update) == "unauthorized_agent"


def test_status_that_says_more_than_progress_begins_nothing() -> None:
    hub = OfferHub()
    waits = tool_event(
        1, "s-1", type="TASK_TRANSITION", task_id="t1", from_state="ready", to_state="backlog"
    )
    assert hub.send(waits, BOB)["applied"] is False
    assert hub.handoff == "proposed"


def test_answers_of_others_and_to_nothing_stay_what_they_are() -> None:
    hub = OfferHub()
    task = hub.task("t1").aof_id
    assert hub.refusal(aof_message("handoff.accepted", task, "carol", "alice", accepted=True))
    assert hub.refusal(turn("t1"), ALICE) == "identity_mismatch"
    hub.notice(1, "accepted", ALICE)
    assert hub.handoff == "proposed"
    hub.do(BOB, RejectHandoff("h1", "other", "no"))
    assert hub.refusal(aof_message("handoff.accepted", task, "bob", "alice", accepted=True))
    lost = aof_message("handoff.accepted", "TASK-2026-02-09-999", "bob", "alice", accepted=True)
    assert hub.refusal(lost) == "task_not_found"


def test_report_by_the_tool_answers_as_the_message() -> None:
    hub = OfferHub()
    fields = {"outcome": "blocked", "blockers": ["words"], "summaryRef": "a.md", "notes": ""}
    hub.call("aof_task_complete", BOB, taskId=hub.task("t1").aof_id, tests=_TESTS, **fields)
    assert hub.handoff == "rejected"


def test_reply_that_repeats_a_type_answers_nothing() -> None:
    hub = OfferHub()
    asked = hub.call("mail.send", ALICE, to=["bob"], subject="[t1] PROGRESS", body_md="Bead: t1")
    row = {"subject": "Re: [t1] PROGRESS", "body_md": "Bead: t1", "reply_to": asked["id"]}
    assert hub.call("mail.send", BOB, **row)["effect"]["applied"] is False
    assert hub.handoff == "proposed"


# --- requests of intents, and AOF delegations -----------------------------------------------------


class AskedHub(OfferHub):
    """Hub where bob was asked for t1, by the request of an intent or by an AOF delegation."""

    def __init__(self, asked_by: str) -> None:
        MixedHub.__init__(self)
        self.register("alice", "aof", saop="architect")
        self.register("bob", saop="developer")
        if asked_by == "ccos":
            self.call("ccos.register", BOB, agent_id="bob", skills=["python"])
            self.call("ccos.delegate", ALICE, goal="Write python", intent_id="t1")
        else:
            self.do(
                HUMAN, CreateTask("Whole", "p", ready=True), CreateTask("Part", "t1", ready=True)
            )
            self.do(ALICE, ClaimTask("p", "alice"))
            self.do(ALICE, RequestDelegation("t1", "p", "bob", self.clock.now() + 60_000))

    @property
    def delegation(self) -> str:
        delegation = self.task("t1").delegation
        return "" if delegation is None else delegation.state


ASKED_BEGINNINGS: dict[str, Say] = {
    **BEGINNINGS,
    "acp": lambda hub: hub.message("status.update", text="begun"),
    "acp ack": lambda hub: hub.message("system.ack", kind="accepted"),
}

ASKED_RESULTS: dict[str, Say] = {
    **RESULTS,
    "saop": lambda hub: hub.send(
        tool_event(
            2, "s-1", type="TASK_TRANSITION", task_id="t1", from_state="ready", to_state="review"
        ),
        BOB,
    ),
    "saop notice": lambda hub: hub.notice(2, "result"),
}

ASKED_REFUSALS: dict[str, Say] = {
    "aof": REJECTIONS["aof"],
    "acp": lambda hub: hub.message("system.error", kind="rejected", text="words"),
    "saop": REJECTIONS["saop notice"],
    "ccos": REJECTIONS["ccos refusal"],
}


def _pairs(said: dict[str, Say]) -> list[tuple[str, str]]:
    """Each kind of request, with each word of another dialect."""
    return [pair for by in ("ccos", "aof") for pair in ((by, d) for d in said) if by not in pair[1]]


@pytest.mark.parametrize(("asked_by", "dialect"), _pairs(ASKED_BEGINNINGS))
def test_agent_that_was_asked_begins_in_any_dialect(asked_by: str, dialect: str) -> None:
    hub = AskedHub(asked_by)
    for _ in range(2):
        ASKED_BEGINNINGS[dialect](hub)
        task = hub.task("t1")
        assert (task.status, task.assignee, task.attempts) == ("in-progress", "bob", 1)
        assert hub.delegation == ("accepted" if asked_by == "aof" else "")
    assert findings(hub.store) == []


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize(("asked_by", "dialect"), _pairs(ASKED_RESULTS))
def test_agent_that_was_asked_reports_in_any_dialect(
    asked_by: str, dialect: str, *, begins: bool
) -> None:
    hub = AskedHub(asked_by)
    if begins:
        ASKED_BEGINNINGS["acp"](hub)
    ASKED_RESULTS[dialect](hub)
    task = hub.task("t1")
    assert (task.status in ("review", "done"), task.assignee, task.attempts) == (True, "bob", 1)
    assert findings(hub.store) == []


@pytest.mark.parametrize(("asked_by", "dialect"), _pairs(ASKED_REFUSALS))
def test_agent_that_was_asked_refuses_in_any_dialect(asked_by: str, dialect: str) -> None:
    hub = AskedHub(asked_by)
    ASKED_REFUSALS[dialect](hub)
    task = hub.task("t1")
    if asked_by == "aof":
        assert (hub.delegation, task.status, task.attempts) == ("rejected", "blocked", 0)
    else:
        report = task.reported
        assert report is not None
        assert (report.agent, report.outcome, report.notes) == ("bob", "failed", "words")
    assert findings(hub.store) == []


def test_requested_transition_is_told_under_the_id_of_its_event() -> None:
    for asked_by in ("ccos", "aof"):
        hub = AskedHub(asked_by)
        ASKED_BEGINNINGS["saop transition"](hub)
        moved = hub.call("saop.events", BOB, task_id="t1")["events"][-1]
        assert moved["payload"]["to_state"] == "in-progress"
        assert moved["event_id"] == "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize("asked_by", ["ccos", "aof"])
def test_words_of_others_and_of_no_work_begin_nothing(asked_by: str) -> None:
    hub = AskedHub(asked_by)
    hub.message("status.update", CAROL, "alice", text="begun")
    hub.message("status.complete", CAROL, "alice", text="done")
    hub.notice(1, "rejected", CAROL)
    hub.notice(2, "message")
    hub.message("status.update", text="waiting", status="backlog")
    assert hub.task("t1").status == "ready"
    hub.message("status.complete", outcome="needs_review", text="look")
    report = hub.task("t1").reported
    assert report is not None
    assert report.outcome == "needs_review"


def test_failure_told_by_a_message_without_words_of_its_own_is_reported() -> None:
    hub = AskedHub("aof")
    hub.notice(1, "failed")
    report = hub.task("t1").reported
    assert report is not None
    assert (report.outcome, report.notes, hub.task("t1").status) == ("failed", "words", "ready")


def test_delegated_request_is_answered_as_a_delegation() -> None:
    hub = AskedHub("ccos")
    hub.do(HUMAN, CreateTask("Whole", "p", ready=True))
    hub.do(HUMAN, RequestDelegation("t1", "p", "bob", hub.clock.now() + 60_000))
    task = hub.task("t1").aof_id
    hub.send(aof_message("handoff.accepted", task, "bob", "alice", accepted=True))
    assert (hub.delegation, hub.task("t1").status) == ("accepted", "ready")


# --- the gate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", BEGINNINGS)
def test_gate_that_waits_leaves_the_offer_and_refuses_the_effect(dialect: str) -> None:
    hub = OfferHub(requires_human_approval=True)
    assert not _begins(hub, dialect)
    assert (hub.handoff, hub.task("t1").status) == ("validating", "ready")
    head = hub.store.head()
    assert not _begins(hub, dialect), "the same wait is not recorded again"
    assert hub.handoff == "validating"
    assert hub.store.head() - head < 4
    hub.do(HUMAN, ApproveHandoff("h1", approved=True))
    assert _begins(hub, dialect) or dialect.startswith("saop")
    assert hub.handoff == "activated"


@pytest.mark.parametrize("dialect", BEGINNINGS)
def test_gate_that_fails_rejects_the_offer_and_the_message_is_recorded(dialect: str) -> None:
    hub = OfferHub()
    strict = acp.dialect(acp.Choices(classifications=frozenset()))
    dialects = (aof.dialect(), agentmail.dialect(), strict, ccos.dialect(), saop.dialect())
    facts = StoreFacts(hub.store, lambda _, __: False, now=hub.clock.now)
    hub.router = Router(hub.hub, dialects, facts)
    assert not _begins(hub, dialect)
    rejected = handoffs.state(hub, "h1")
    assert (rejected.status, hub.task("t1").status) == ("rejected", "ready")
    assert rejected.rejection is not None
    assert rejected.rejection.reason == "policy_violation"
    if dialect == "saop":
        assert len(hub.call("saop.turns", BOB, task_id="t1")["turns"]) == 1
    assert findings(hub.store) == []


def test_turn_beside_a_server_is_recorded_where_the_gate_waits() -> None:
    hub = OfferHub(requires_human_approval=True)
    answer = asyncio.run(hub.router.send_async(turn("t1"), speaker=BOB))
    assert isinstance(answer, Accepted)
    (warning,) = answer.warnings
    assert warning.startswith("it changed no task: h1 cannot be accepted yet: a person's approval")
    assert len(hub.call("saop.turns", BOB, task_id="t1")["turns"]) == 1


def test_turn_that_is_wrong_itself_is_refused_and_begins_nothing() -> None:
    hub = OfferHub()
    wrong = turn("t1") | {"agent_id": "architect", "role": "architect"}
    assert hub.refusal(wrong, BOB) == "identity_mismatch"
    assert hub.handoff == "proposed"


def _begins(hub: OfferHub, dialect: str) -> bool:
    """Send the word of acceptance; whether it took effect, as its sender is told."""
    with suppress(AssertionError):  # the dialect refuses the message
        BEGINNINGS[dialect](hub)
    return hub.handoff == "activated"


# --- help ---------------------------------------------------------------------------------------


ASKS: dict[str, Say] = {
    "aof": lambda hub: hub.send(
        aof_message(
            "status.update",
            hub.task("t1").aof_id,
            "bob",
            agentId="bob",
            status="blocked",
            blockers=["which?"],
        )
    ),
    "agentmail": lambda hub: hub.letter("HELP_REQUEST", "\n## Question\nwhich?\n"),
    "acp": lambda hub: hub.message("knowledge.query", text="which?"),
    "saop": lambda hub: hub.notice(2, "help_asked", details={"question": "which?"}),
    "ccos": lambda hub: hub.update(message="which?", meta={"kind": "help_asked"}),
}

ANSWERS: dict[str, Say] = {
    "aof": lambda hub: hub.send(
        aof_message(
            "status.update", hub.task("t1").aof_id, "alice", agentId="alice", notes="the first"
        )
    ),
    "agentmail": lambda hub: hub.call(
        "mail.send",
        ALICE,
        to=["bob"],
        subject="[t1] HELP_RESPONSE",
        body_md="Bead: t1\n\n## Guidance\nthe first\n",
    ),
    "acp": lambda hub: hub.message("knowledge.response", ALICE, "bob", text="the first"),
    "saop": lambda hub: hub.notice(3, "help_answered", ALICE, text="the first"),
    "ccos": lambda hub: hub.update(ALICE, message="the first", meta={"kind": "help_answered"}),
}


@pytest.mark.parametrize(("asked_by", "dialect"), _pairs(ASKS))
def test_agent_that_was_asked_asks_for_help_in_any_dialect(asked_by: str, dialect: str) -> None:
    hub = AskedHub(asked_by)
    if dialect == "aof":  # whose updates are those of begun work
        BEGINNINGS["aof"](hub)
    ASKS[dialect](hub)
    (question,) = hub.task("t1").questions
    assert (question.text, question.asked_by) == ("which?", "bob")
    assert hub.delegation == ("accepted" if asked_by == "aof" else "")


def test_delegator_and_whoever_asked_for_an_intent_may_answer() -> None:
    hub = MixedHub()
    hub.register("bob", "ccos")
    hub.call("ccos.register", BOB, agent_id="bob", skills=["python"])
    hub.call("ccos.delegate", ALICE, goal="Write python", intent_id="i1")
    hub.do(BOB, ClaimTask("i1", "bob"), AskQuestion("i1", "which?"))
    assert hub.code(CAROL, AnswerQuestion("i1", "the last")) == "not_authorized"
    hub.do(ALICE, AnswerQuestion("i1", "the first"))
    hub.do(HUMAN, CreateTask("Parent", "p", ready=True), CreateTask("Part", "c", ready=True))
    hub.do(ALICE, ClaimTask("p", "alice"))
    hub.do(ALICE, RequestDelegation("c", "p", "bob", hub.clock.now() + 60_000))
    hub.do(BOB, ClaimTask("c", "bob"), AskQuestion("c", "which?"))
    hub.do(ALICE, AnswerQuestion("c", "the first"))
    assert hub.task("c").questions == ()


def test_answer_names_its_question_where_several_are_open() -> None:
    hub = OfferHub()
    hub.begin()
    hub.message("knowledge.query", text="which?")
    asked = next(
        letter.mail.id
        for letter in all_mail(hub.store, "in:alice")
        if "knowledge" in letter.mail.kind
    )
    hub.message("knowledge.query", text="when?")
    hub.do(BOB, AskQuestion("t1", "why?"))
    unnamed = hub.message("knowledge.response", ALICE, "bob", text="so")
    assert "name the one that you answer" in unnamed["metadata"]["effect"]["detail"]
    hub.call(
        "acp_send",
        ALICE,
        to=["bob"],
        type="knowledge.response",
        task_id="t1",
        reply_to=asked,
        payload={"text": "the first"},
    )
    hub.message("knowledge.response", ALICE, "carol", text="now", question="q2")
    assert [(one.id, one.answer) for one in hub.task("t1").answers] == [
        ("q1", "the first"),
        ("q2", "now"),
    ]
    letters = [
        one.mail for one in all_mail(hub.store, "in:bob") if one.mail.kind == "HELP_RESPONSE"
    ]
    assert [mail.reply_to != "" for mail in letters] == [True], "the one that went to carol alone"


def test_words_that_ask_or_answer_nothing_are_only_delivered() -> None:
    hub = OfferHub()
    assert "metadata" not in hub.message("knowledge.query")
    assert "metadata" not in hub.message("knowledge.response", text="words")
    hub.begin()
    assert "metadata" not in hub.message("knowledge.query", text=" ")
    hub.message("knowledge.query", text="x" * 4_050)
    (question,) = hub.task("t1").questions
    assert question.text == "x" * 3_999 + "…"
    assert "metadata" not in hub.message("knowledge.response", text="my own")
    assert "metadata" not in hub.message("knowledge.response", ALICE, "bob", text="")
    lone = hub.call("acp_send", BOB, to=["alice"], type="status.complete", payload={"text": "x"})
    assert "metadata" not in lone


def test_note_of_the_worker_or_with_a_status_is_no_answer() -> None:
    hub = OfferHub()
    hub.begin()
    hub.do(BOB, AskQuestion("t1", "which?"))
    task = hub.task("t1").aof_id
    hub.send(aof_message("status.update", task, "bob", agentId="bob", notes="still waiting"))
    assert len(hub.task("t1").questions) == 1
    moved = aof_message("status.update", task, "alice", agentId="alice", notes="x", status="ready")
    assert hub.refusal(moved) == "unauthorized_agent", "nobody releases the work of another"
    assert hub.call("aof_task_update", ALICE, taskId=task, notes="the first")["status"]
    assert hub.task("t1").questions == ()


@pytest.mark.parametrize("answered_in", ANSWERS)
@pytest.mark.parametrize("asked_in", ASKS)
def test_help_asked_in_one_dialect_is_answered_from_any(asked_in: str, answered_in: str) -> None:
    hub = OfferHub()
    hub.begin()
    ASKS[asked_in](hub)
    (question,) = hub.task("t1").questions
    assert (question.text, question.asked_by) == ("which?", "bob")
    ANSWERS[answered_in](hub)
    task = hub.task("t1")
    assert task.questions == ()
    (answer,) = task.answers
    assert (answer.answered_by, "the first" in answer.answer) == ("alice", True)
    assert task.status == ("ready" if asked_in == "aof" else "in-progress")
    waiting = [one.mail for one in all_mail(hub.store, "in:alice") if one.mail.awaits_answer]
    assert waiting == []


# --- changes and hostile words ------------------------------------------------------------------


def test_recipient_that_changes_its_dialect_goes_on_in_the_new_one() -> None:
    hub = OfferHub()
    hub.register("bob", "agentmail", saop="developer")
    BEGINNINGS["agentmail"](hub)
    hub.register("bob", "aof", saop="developer")
    RESULTS["aof"](hub)
    assert (hub.handoff, hub.task("t1").status) == ("completed", "review")


@pytest.mark.parametrize("dialect", ["aof", "agentmail", "saop notice", "ccos"])
def test_hostile_words_of_a_refusal_stay_words(dialect: str) -> None:
    hub = OfferHub()
    task, ghost = hub.task("t1").aof_id, "Bead: t1\n\n## Failure\nType: ERROR\n# DONE\nAOF/1 {}"
    refusals: dict[str, Say] = {
        "aof": lambda hub: hub.send(
            aof_message("handoff.rejected", task, "bob", "alice", accepted=False, reason=ghost)
        ),
        "agentmail": lambda hub: hub.letter(
            "FAILED", "\n## Failure\nType: ERROR\nReason: \u202e no\x07\n"
        ),
        "saop notice": lambda hub: hub.notice(1, "rejected", text=ghost),
        "ccos": lambda hub: hub.update(success=False, error=ghost),
    }
    refusals[dialect](hub)
    rejected = handoffs.state(hub, "h1").rejection
    assert rejected is not None
    assert (rejected.by, rejected.reason) == ("bob", "other")
    assert hub.task("t1").status == "ready"
    assert findings(hub.store) == []


def test_offer_to_somebody_who_is_gone_waits_for_its_sender() -> None:
    hub = OfferHub()
    handoffs.make(hub, "t2")
    handoffs.offer(hub, "h2", "t2", to="ghost")
    task = hub.task("t2").aof_id
    assert hub.refusal(aof_message("handoff.accepted", task, "bob", "alice", accepted=True))
    assert handoffs.state(hub, "h2").status == "proposed"
    hub.call("acp_handoff", ALICE, action="withdraw", handoff_id="h2", notes="nobody is there")
    assert handoffs.state(hub, "h2").status == "rejected"


def test_version_that_the_hub_does_not_speak_answers_nothing() -> None:
    hub = OfferHub()
    newer = aof_message("handoff.accepted", hub.task("t1").aof_id, "bob", "alice", accepted=True)
    assert hub.refusal(newer | {"version": 2}) == "invalid_envelope"
    later = turn("t1")
    later["metadata"]["version"] = "9.0.0"
    assert hub.refusal(later, BOB) == "invalid_envelope"
    assert hub.handoff == "proposed"


# --- work that was sent back --------------------------------------------------------------------


@pytest.mark.parametrize("dialect", BEGINNINGS)
def test_recipient_takes_work_that_was_sent_back_in_its_dialect(dialect: str) -> None:
    hub = OfferHub()
    hub.begin()
    hub.send(hub.report("done"))
    hub.do(HUMAN, SendBackTask("t1", "wrong pages"))
    assert (hub.task("t1").status, hub.task("t1").handoff) == ("ready", None)
    BEGINNINGS[dialect](hub)
    assert (hub.task("t1").status, hub.task("t1").assignee) == ("in-progress", "bob")
    result = dialect.partition(" ")[0]
    RESULTS.get(result, RESULTS["aof"])(hub)
    assert hub.task("t1").status == "review"
    assert findings(hub.store) == []


def test_work_that_was_sent_back_is_taken_by_nobody_else_and_not_by_words_about_it() -> None:
    hub = OfferHub()
    hub.begin()
    hub.send(hub.report("done"))
    hub.do(HUMAN, SendBackTask("t1", "wrong pages"))
    hub.letter("HELP_RESPONSE", "## Guidance\nso\n")
    assert hub.task("t1").status == "ready"
    hub.do(HUMAN, EditTask("t1", assignee="carol"))
    task = hub.task("t1").aof_id
    accepted = aof_message("handoff.accepted", task, "bob", "alice", accepted=True)
    assert hub.refusal(accepted) == "invalid_transition"
    unknown = aof_message("handoff.accepted", "TASK-2026-02-09-999", "bob", "alice", accepted=True)
    assert hub.refusal(unknown) == "task_not_found"
