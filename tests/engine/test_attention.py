"""Attention list: what needs a person, and the command that deals with it."""

from typing import Any

from dragoman.config.sections import TeamspaceSettings
from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import PauseAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask, ExpireLease, FlagAttempt, ReportOutcome, explain_wait
from dragoman.core.backoff import Backoff
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.delegation import EscalateDelegation, RequestDelegation
from dragoman.core.handoff.state import ApproveHandoff, ProposeHandoff
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail
from dragoman.core.presence import PRESENCE_MS, ReportPresence
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.queries.agents import acts_as_agent, list_actors
from dragoman.engine.queries.attention import AttentionItem, AttentionKind, find_attention
from dragoman.engine.queries.status import find_status
from dragoman.engine.queries.visibility import find_reader
from dragoman.engine.schemas.status import status_resource
from tests.engine import handoffs
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("SEE-ATTENTION")

MINUTE = 60_000


def items_of(lab: Lab, **more: Any) -> list[AttentionItem]:
    """List what needs a person now."""
    return list(find_attention(lab.store, lab.clock.now(), **more).items)


def only_item(lab: Lab, kind: AttentionKind, **more: Any) -> AttentionItem:
    """Return the only item, which is of this kind."""
    (item,) = items_of(lab, **more)
    assert item.kind == kind
    return item


def report(lab: Lab, task: str, outcome: Any, notes: str = "", *blockers: str) -> None:
    """Claim a task as alice, and report."""
    lab.do(ALICE, ClaimTask(task, "alice"))
    command = ReportOutcome(task, outcome, notes, blockers, apply=True, backoff=Backoff(0, 0))
    lab.do(ALICE, command)


def test_nothing_needs_a_person_while_agents_work() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True, assignee="alice"))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True))
    lab.do(HUMAN, CreateTask("c", id="c"))
    lab.do(ALICE, ClaimTask("a", "alice"))

    attention = find_attention(lab.store, START)

    assert attention.items == ()
    assert attention.counts == {}


def test_work_in_review_waits_for_approval() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True))
    lab.clock.advance(MINUTE)
    report(lab, "a", "done", "all\ntests   pass " + "x" * 200)

    item = only_item(lab, "review")

    assert (item.task, item.agent, item.since) == ("a", "alice", START + MINUTE)
    assert item.text.startswith("alice reports done: all tests pass xxx")
    assert (len(item.text), item.text[-1]) == (160, "…")
    assert item.command == "dragoman task approve a"

    lab.do(HUMAN, MoveTask("a", "done"))
    assert items_of(lab) == []


def test_review_without_a_report_is_listed() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, MoveTask("a", "review"))

    assert only_item(lab, "review").text == "waits for a review"


def test_blocked_task_is_a_question_of_its_agent() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    report(lab, "a", "blocked", "", "Which database?")

    item = only_item(lab, "question")

    assert (item.task, item.agent) == ("a", "alice")
    assert item.text == "blocked: Which database?"
    assert item.command == 'dragoman task answer a "…"'


def test_open_questions_are_listed_each_with_its_own_command() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, AskQuestion("a", "Which port?"))

    item = only_item(lab, "question")
    assert (item.task, item.agent, item.text) == ("a", "alice", "alice asks: Which port?")
    assert item.command == 'dragoman task answer a "…"'

    report = ReportOutcome("a", "blocked", blockers=("no key",), apply=True)
    lab.do(ALICE, report)
    commands = {item.text: item.command for item in items_of(lab)}
    assert commands == {
        "alice asks: Which port?": 'dragoman task answer a "…" --question q1',
        "blocked: no key": 'dragoman task answer a "…" --question q2',
    }
    lab.do(HUMAN, AnswerQuestion("a", "8080", "q1"))
    lab.do(HUMAN, AnswerQuestion("a", "in the vault"))
    assert items_of(lab) == []


def test_task_that_is_blocked_by_its_question_is_listed_once() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, AskQuestion("a", "Which port?"))
    lab.do(ALICE, ReportOutcome("a", "blocked", blockers=("Which port?",), apply=True))

    assert only_item(lab, "question").text == "blocked: Which port?"


def test_task_blocked_without_a_reason_names_what_it_waits_for() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a"))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, blocked_by=("a",)))
    lab.do(HUMAN, MoveTask("b", "blocked"))
    lab.do(HUMAN, CreateTask("c", id="c", ready=True))
    lab.clock.advance(1)
    lab.do(HUMAN, MoveTask("c", "blocked"))

    assert [item.text for item in items_of(lab)] == ["blocked: waits for a", "blocked"]


def test_given_up_task_says_why() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True, max_attempts=1))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True))
    report(lab, "a", "failed", "the disk is full")
    lab.clock.advance(1)
    lab.do(HUMAN, MoveTask("b", "deadletter"))

    first, second = items_of(lab)

    assert (first.kind, first.task) == ("deadletter", "a")
    assert first.text == "given up after attempt 1: the disk is full"
    assert first.agent == "alice", "who worked on it last, though it is nobody's now"
    assert first.command == "dragoman task retry a"
    assert second.text == "given up after attempt 0"


def test_task_given_up_because_its_lease_was_lost_says_so() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True, max_attempts=1))
    lab.do(ALICE, ClaimTask("a", "alice", ttl_ms=MINUTE))
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, ExpireLease("a"))

    text = only_item(lab, "deadletter").text
    assert text == "given up after attempt 1: its lease ran out without a heartbeat"

    for number in range(12):
        lab.do(HUMAN, NoteTask("a", f"{number}"))
    assert only_item(lab, "deadletter").text == "given up after attempt 1", "too long ago"


def test_handoff_that_needs_approval_is_listed_until_it_is_given() -> None:
    lab = Lab()
    handoffs.make(lab)
    gated = {"classification": "internal", "requires_human_approval": True}
    handoffs.offer(lab, package=handoffs.package(policy=gated), title="Fix the login")

    item = only_item(lab, "gate")

    assert (item.task, item.agent) == ("t1", "alice")
    assert item.text == "handoff from alice to bob: Fix the login"
    assert item.command == "dragoman handoff approve h1"
    hidden = {"default": TeamspaceSettings(members=("zoe",))}
    assert items_of(lab, reader=find_reader(CAROL, hidden)) == []
    assert items_of(lab, reader=find_reader(BOB, hidden)) == [item], "it is offered to bob"
    elsewhere = {"other": hidden["default"]}
    assert items_of(lab, reader=find_reader(CAROL, elsewhere)) == [item]

    lab.do(HUMAN, ApproveHandoff("h1"))
    assert items_of(lab) == []


def test_overdue_handoff_is_listed_until_it_goes_on() -> None:
    lab = Lab()
    handoffs.make(lab)
    handoffs.offer(lab)
    handoffs.late(lab)

    item = only_item(lab, "escalation")

    assert (item.task, item.agent) == ("t1", "bob")
    assert item.text.startswith("handoff to bob is proposed since 2026-02-09T14:30:00.000Z")
    assert item.command == "dragoman handoff diagnose h1"

    handoffs.accept(lab)
    assert items_of(lab) == []


def test_late_delegation_is_listed_until_its_task_ends() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("bob"))
    lab.do(HUMAN, CreateTask("parent", id="p", ready=True))
    lab.do(ALICE, ClaimTask("p", "alice"))
    lab.do(HUMAN, CreateTask("a part", id="a", ready=True))
    lab.do(ALICE, RequestDelegation("a", "p", "bob", START + MINUTE))
    lab.clock.advance(MINUTE)
    assert items_of(lab) == []
    lab.do(HUB_ACTOR, EscalateDelegation("a"))

    item = only_item(lab, "escalation")

    assert (item.task, item.agent, item.since) == ("a", "bob", START + MINUTE)
    assert item.text == "the delegation to bob was due by 2026-02-09T14:31:00.000Z: a part"
    assert item.command == "dragoman task assign a NAME"

    lab.do(HUMAN, MoveTask("a", "cancelled"))
    assert items_of(lab) == []


def test_unanswered_letter_is_listed_if_no_agent_can_answer_it() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    letter = PostMail(("chiron",), "Which key?", "", id="m1", bead="a", answer_wanted=True)
    lab.do(ALICE, letter)

    item = only_item(lab, "help")

    assert (item.task, item.agent, item.since) == ("a", "alice", START)
    assert item.text == "alice asks chiron: Which key?"
    assert item.command == "dragoman mail show m1"

    lab.do(HUMAN, RegisterAgent("chiron", "human"))
    assert only_item(lab, "help") == item
    lab.do(HUMAN, AnswerMail("m1", roles=("human",)))
    assert items_of(lab) == []


HELP_BODY = "Bead: a\nIssue Type: SPEC\n\n## Problem\nunclear\n\n## Question\nwhich\nspec?\n"


def ask_for_help(lab: Lab, id: str = "m1", bead: str = "a", body: str = HELP_BODY) -> PostMail:
    """Make a letter of alice that asks for help."""
    subject = f"[{bead}] HELP_REQUEST"
    return PostMail(
        ("chiron",), subject, body, "HELP_REQUEST", id=id, bead=bead, answer_wanted=True
    )


def test_request_for_help_that_asks_a_question_of_a_task_is_answered_there() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="T-1", aliases=("bead:a",), ready=True))
    lab.do(ALICE, ClaimTask("T-1", "alice"))
    asked = AskQuestion("T-1", "SPEC: which spec?", by_letter=True, mail="m1")
    lab.do(ALICE, ask_for_help(lab), asked)

    item = only_item(lab, "help")

    assert (item.text, item.question) == ("alice asks chiron: SPEC: which spec?", "q1")
    assert item.command == 'dragoman task answer T-1 "…"'
    lab.do(ALICE, AskQuestion("T-1", "and where?"))
    commands = [one.command for one in items_of(lab)]
    assert commands == [f'dragoman task answer T-1 "…" --question q{n}' for n in (2, 1)]
    lab.do(HUMAN, AnswerQuestion("T-1", "this one", "q1"))
    assert only_item(lab, "question").question == "q2", "its letter is answered, too"


def test_request_for_help_without_a_question_of_a_task_is_answered_by_letter() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    for id, bead, body in (("m1", "a", HELP_BODY), ("m2", "", "How?"), ("m3", "gone", " ")):
        lab.do(ALICE, ask_for_help(lab, id, bead, body))

    items = items_of(lab)

    assert [one.text for one in items] == [
        "alice asks chiron: which spec?",
        "alice asks chiron: How?",
        "alice asks chiron: [gone] HELP_REQUEST",
    ]
    answer = 'dragoman mail send --type HELP_RESPONSE --reply-to m1 --to alice --body "…"'
    assert (items[0].command, items[0].question) == (answer, "")


def test_letter_to_an_agent_is_listed_once_it_is_late() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("bob"))
    question = PostMail(
        ("bob",), "Done?", "", id="m1", answer_wanted=True, ack_wanted=True, due_in_ms=MINUTE
    )
    notice = PostMail(("bob",), "Look", "", id="m2", ack_wanted=True, due_in_ms=MINUTE)
    lab.do(ALICE, question)
    lab.do(ALICE, notice)
    assert items_of(lab) == []

    lab.clock.advance(MINUTE)

    item = only_item(lab, "help")
    assert (item.task, item.command) == ("", "dragoman mail show m1")
    lab.do(HUB_ACTOR, EscalateMail("m2"))
    late = items_of(lab)[1]
    assert (late.kind, late.agent, late.since) == ("escalation", "alice", START + MINUTE)
    assert late.text == "bob did not acknowledge the letter of alice: Look"
    assert late.command == "dragoman mail show m2"
    lab.do(BOB, AckMail("m2"))
    assert items_of(lab) == [item]


def test_paused_agent_is_listed_while_work_waits_for_it() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("bob"))
    lab.do(HUMAN, PauseAgent("bob", "over budget"))
    assert items_of(lab) == []
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))

    item = only_item(lab, "paused")

    assert (item.task, item.agent, item.since) == ("", "bob", START)
    assert item.text == "bob is paused while 1 ready task waits: over budget"
    assert item.command == "dragoman agent resume bob"
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, assignee="bob"))
    assert "while 2 ready tasks wait" in only_item(lab, "paused").text


@proves("AGENT-PRESENCE")
def test_session_that_waits_for_input_is_listed_until_it_goes_on_or_is_forgotten() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(ALICE, ReportPresence("alice", "s-1", "waiting", "Run the tests?"))
    lab.do(ALICE, ReportPresence("alice", "s-2", "working"))

    item = only_item(lab, "waits_for_input")

    assert (item.agent, item.task) == ("alice", "")
    assert item.text == "alice waits for input in session s-1: Run the tests?"
    shown = status_resource(find_status(lab.store, lab.clock.now(), find_attention(lab.store, 0)))
    (agent,) = (one for one in shown.agents if one.name == "alice")
    assert [(one.session, one.state, one.text) for one in agent.sessions] == [
        ("s-1", "waiting", "Run the tests?"),
        ("s-2", "working", None),
    ]
    lab.do(ALICE, ReportPresence("alice", "s-1", "idle"))
    assert items_of(lab) == []
    lab.do(ALICE, ReportPresence("alice", "s-1", "waiting"))
    lab.clock.advance(PRESENCE_MS)
    assert items_of(lab) == []


def test_assignee_that_nobody_knows_is_listed() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True, assignee="bbo"))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, assignee="bbo", blocked_by=("a",)))

    item = only_item(lab, "unknown_assignee")

    assert (item.task, item.agent) == ("a", "bbo")
    assert item.text == "nobody called bbo is known: a"
    assert item.command == "dragoman task assign a NAME"
    assert items_of(lab, served={"bbo"}) == []
    lab.do(HUMAN, RegisterAgent("bbo"))
    assert items_of(lab) == []


def test_agent_that_has_spoken_is_known_without_registration() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, assignee="carol"))
    lab.do(Actor("agent", "carol"), NoteTask("a", "hello"))

    assert items_of(lab) == []
    assert list_actors(lab.store) == {"carol": "agent", "hera": "human"}
    assert acts_as_agent(lab.store, "carol")
    assert not acts_as_agent(lab.store, "hera")


def test_limit_holds_for_each_kind_and_all_are_counted() -> None:
    lab = Lab()
    for number in range(5):
        lab.do(HUMAN, CreateTask("r", id=f"r{number}", ready=True))
        report(lab, f"r{number}", "done")
        lab.do(HUMAN, CreateTask("q", id=f"q{number}", ready=True))
        report(lab, f"q{number}", "blocked", "", "why?")
        lab.do(HUMAN, CreateTask("u", id=f"u{number}", ready=True, assignee="zed"))

    attention = find_attention(lab.store, START, limit=2)

    kinds = [item.kind for item in attention.items]
    assert kinds == ["question"] * 2 + ["review"] * 2 + ["unknown_assignee"] * 2
    assert attention.counts == {"question": 5, "review": 5, "unknown_assignee": 5}
    assert attention.total == 15


@proves("SEE-WAIT")
def test_ready_task_that_not_everybody_can_claim_has_its_reason() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(HUMAN, CreateTask("b", id="b", ready=True, blocked_by=("a",), assignee="bob"))
    lab.do(HUMAN, CreateTask("c", id="c", ready=True, assignee="bob"))
    lab.do(HUMAN, CreateTask("d", id="d", ready=True))
    lab.do(ALICE, ClaimTask("d", "alice"))
    lab.do(ALICE, ReportOutcome("d", "failed", apply=True, backoff=Backoff(MINUTE, MINUTE)))
    lab.do(HUMAN, CreateTask("t1", id="t1", ready=True))
    lab.do(ALICE, ProposeHandoff("t1", "bob", handoffs.package("t1"), id="h1"))
    lab.do(HUMAN, CreateTask("e", id="e"))

    waits = {name: explain_wait(lab.task(name), START) for name in ("a", "b", "c", "d", "t1", "e")}

    assert waits["a"] is None
    assert waits["e"] is None
    assert {name: (one.kind, one.reason, one.agent) for name, one in waits.items() if one} == {
        "b": ("dependency", "waits for a", ""),
        "c": ("reserved", "reserved for bob", "bob"),
        "d": ("backoff", "backoff until 2026-02-09T14:31:00.000Z", ""),
        "t1": ("handoff", "handoff h1: only alice can claim it", "alice"),
    }
    assert explain_wait(lab.task("d"), START + MINUTE) is None


@proves("ATTEMPT-QUIET")
def test_quiet_attempt_needs_a_person_until_its_next_progress() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE))

    item = only_item(lab, "no_progress")

    assert (item.task, item.agent, item.since) == ("a", "alice", START)
    assert item.text.startswith("alice is alive and shows no progress since 2026-")
    assert item.command == "dragoman task move a ready"
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE, 1))
    assert only_item(lab, "no_progress") == item, "it is not yet time"
    lab.clock.advance(1)
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE, 1))
    escalated = only_item(lab, "no_progress")
    assert escalated.text.startswith("escalated: alice still shows no progress since 2026-")

    lab.do(ALICE, NoteTask("a", "here it is"))
    assert items_of(lab) == []
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE))
    lab.do(HUMAN, MoveTask("a", "ready"))
    assert items_of(lab) == []


@proves("ATTEMPT-QUIET")
def test_quiet_attempt_that_waits_for_an_answer_is_listed_by_its_question() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a", ready=True))
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, AskQuestion("a", "Which port?"))
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE))
    assert only_item(lab, "question").question == "q1"

    lab.do(HUMAN, AnswerQuestion("a", "8080"), AskQuestion("a", "Is it done?"))
    assert [one.kind for one in items_of(lab)] == ["question", "no_progress"], "it is hera's"


@proves("ATTEMPT-QUIET")
def test_quiet_attempt_on_a_late_delegation_is_listed_as_late_once_it_goes_on() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", id="a"), CreateTask("b", id="b", ready=True))
    lab.do(HUMAN, RequestDelegation("b", "a", "alice", START + 1))
    lab.do(ALICE, ClaimTask("b", "alice"))
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, FlagAttempt("b", MINUTE))
    assert only_item(lab, "no_progress").task == "b"

    lab.do(HUB_ACTOR, EscalateDelegation("b"))
    assert only_item(lab, "no_progress").task == "b"
    lab.do(ALICE, NoteTask("b", "here it is"))
    assert only_item(lab, "escalation").task == "b"


def test_review_is_listed_when_its_checks_have_proven_the_work() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("b", id="b", ready=True))
    report(lab, "b", "done", "that too")
    lab.do(HUMAN, CreateTask("a", id="a", ready=True, checks=("make test",)))
    report(lab, "a", "done", "all of it")
    running = find_attention(lab.store, lab.clock.now(), limit=1)
    assert [one.task for one in running.items] == ["b"], "nobody can approve a yet"
    assert running.counts == {"review": 1}
    lab.do(HUMAN, MoveTask("b", "done"))

    passed = CheckResult("make test", 0)
    lab.do(HUB_ACTOR, RecordChecks("a", 1, (passed,)))
    assert only_item(lab, "review").text == "proven by its checks: alice reports done: all of it"
