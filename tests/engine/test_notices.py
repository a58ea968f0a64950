"""Notices: entries of the ledger after which a person is needed."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import PauseAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask, ExpireLease, FlagAttempt, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.delegation import EscalateDelegation, RequestDelegation
from dragoman.core.mail import EscalateMail, PostMail
from dragoman.core.question_state import AskQuestion
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.core.trace import EscalateEntropy, RecordTurn
from dragoman.engine.queries.attention import AttentionItem
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.notices import find_notice
from tests.engine import handoffs
from tests.engine.lab import ALICE, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("NOTIFY-ATTENTION")

MINUTE = 60_000


@pytest.fixture
def lab() -> Lab:
    """Give a hub where alice works on a."""
    lab = Lab()
    lab.do(HUMAN, CreateTask("paint it", id="a", ready=True, max_attempts=1))
    lab.do(ALICE, ClaimTask("a", "alice"))
    return lab


def notices_of(lab: Lab) -> list[AttentionItem]:
    """Notices of the whole ledger."""
    made = (find_notice(lab.store, entry) for entry in all_entries(lab.store))
    return [item for item in made if item is not None]


def only_notice(lab: Lab) -> AttentionItem:
    """Return the only notice of the ledger."""
    (item,) = notices_of(lab)
    return item


def test_work_that_goes_well_needs_nobody(lab: Lab) -> None:
    lab.do(ALICE, PostMail(("bob",), "hello", ""))
    lab.do(ALICE, ReportOutcome("a", "done", apply=True))
    lab.do(HUMAN, MoveTask("a", "done"))
    assert notices_of(lab) == []


def test_what_a_person_does_is_no_notice(lab: Lab) -> None:
    lab.do(HUMAN, MoveTask("a", "blocked", "wait"))
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(HUMAN, PauseAgent("alice", "it is enough"))
    assert notices_of(lab) == []


def test_deadletter_and_a_blocked_task_have_the_command_that_deals_with_them(lab: Lab) -> None:
    lab.do(ALICE, ReportOutcome("a", "failed", "no brush", apply=True, backoff=Backoff(0, 0)))
    item = only_notice(lab)
    assert (item.kind, item.task, item.command) == ("deadletter", "a", "dragoman task retry a")
    lab.do(HUMAN, CreateTask("b", id="b", ready=True))
    lab.do(ALICE, ClaimTask("b", "alice"))
    lab.do(ALICE, ReportOutcome("b", "blocked", "", ("no key",), apply=True))
    blocked = notices_of(lab)[1]
    assert (blocked.kind, blocked.text) == ("question", "blocked: no key")
    lab.do(HUMAN, MoveTask("b", "ready"))
    assert notices_of(lab)[1] == blocked, "it is what was known then"


def test_question_is_told_with_the_command_that_answers_it(lab: Lab) -> None:
    lab.do(ALICE, AskQuestion("a", "red or blue?"))
    item = only_notice(lab)
    assert (item.kind, item.text) == ("question", "alice asks: red or blue?")
    assert item.command == 'dragoman task answer a "…"'


def test_request_for_help_is_told_once_and_only_if_no_agent_gets_it(lab: Lab) -> None:
    letter = PostMail(("chiron",), "Which key?", "", id="m1", bead="a", answer_wanted=True)
    lab.do(ALICE, letter, AskQuestion("a", "Which key?", by_letter=True, mail="m1"))
    item = only_notice(lab)
    assert (item.kind, item.task, item.text) == ("help", "a", "alice asks chiron: Which key?")
    lab.do(HUMAN, RegisterAgent("bob"))
    lab.do(ALICE, PostMail(("bob",), "Which key?", "", id="m2", answer_wanted=True))
    assert notices_of(lab) == [item]


def test_quiet_attempt_that_waits_for_an_answer_is_told_by_its_question(lab: Lab) -> None:
    lab.do(ALICE, AskQuestion("a", "red or blue?"))
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE))
    assert only_notice(lab).kind == "question"


def test_task_given_up_because_its_lease_was_lost_says_so(lab: Lab) -> None:
    lab.clock.advance(60 * MINUTE)
    lab.do(HUB_ACTOR, ExpireLease("a"))
    item = only_notice(lab)
    assert item.text == "given up after attempt 1: its lease ran out without a heartbeat"
    lab.do(HUMAN, MoveTask("a", "ready"))
    assert only_notice(lab) == item, "it is what was known then"


def test_quiet_attempt_is_told_when_flagged_and_when_escalated(lab: Lab) -> None:
    for advance in (MINUTE, MINUTE):
        lab.clock.advance(advance)
        lab.do(HUB_ACTOR, FlagAttempt("a", MINUTE, MINUTE))
    flagged, escalated = notices_of(lab)
    assert flagged.kind == "no_progress"
    assert flagged.text.startswith("alice is alive and shows no progress since 2026-02-09T14:30")
    assert flagged.command == escalated.command == "dragoman task move a ready"
    assert escalated.text.startswith("escalated: alice still shows no progress since 2026-02-09")


def test_late_letters_are_told(lab: Lab) -> None:
    lab.do(HUMAN, RegisterAgent("bob"))
    letter = PostMail(("bob",), "Done?", "", id="m1", due_in_ms=MINUTE, answer_wanted=True)
    lab.do(ALICE, letter)
    lab.do(ALICE, replace(letter, id="m2", answer_wanted=False, ack_wanted=True))
    lab.clock.advance(MINUTE)
    for id in ("m1", "m2"):
        lab.do(HUB_ACTOR, EscalateMail(id))
    assert [item.kind for item in notices_of(lab)] == ["help", "escalation"]


def test_late_delegation_and_late_handoff_are_told(lab: Lab) -> None:
    lab.do(HUMAN, RegisterAgent("bob"))
    lab.do(HUMAN, CreateTask("a part", id="p", ready=True))
    lab.do(ALICE, RequestDelegation("p", "a", "bob", START + MINUTE))
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, EscalateDelegation("p"))
    assert only_notice(lab).command == "dragoman task assign p NAME"

    other = Lab()
    handoffs.make(other)
    handoffs.offer(other)
    handoffs.late(other)
    item = only_notice(other)
    assert (item.kind, item.command) == ("escalation", "dragoman handoff diagnose h1")


def test_pause_by_the_hub_and_a_lost_agent_are_told(lab: Lab) -> None:
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(HUB_ACTOR, PauseAgent("alice", "over budget"))
    item = only_notice(lab)
    assert (item.kind, item.text) == ("paused", "alice is paused: over budget")
    assert item.command == "dragoman agent resume alice"
    developer = Actor("agent", "developer")
    lab.do(developer, RecordTurn("one", 0, "developer", 0.5, {"turn_index": 0}, "d0"))
    lab.do(HUB_ACTOR, EscalateEntropy("one", "loop", "round and round", (0,), 2.0, 2.0))
    lost = notices_of(lab)[1]
    assert lost.text == "the agent seems to be getting lost (loop): round and round"
    assert (lost.task, lost.command) == ("one", "dragoman task show one")
