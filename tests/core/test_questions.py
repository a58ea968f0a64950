"""Questions of tasks: asked, answered and withdrawn, by whom, and what becomes of them."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.attempt import ReportOutcome
from dragoman.core.base import ATTENTION_LIST, Command, Status
from dragoman.core.errors import Refusal
from dragoman.core.limits import MAX_REASON
from dragoman.core.mail import (
    AnswerMail,
    MailAnswered,
    MailPosted,
    PostMail,
)
from dragoman.core.question_state import (
    KEPT_ANSWERS,
    KEPT_FEEDBACK,
    MAX_OPEN_QUESTIONS,
    AnswerQuestion,
    AskQuestion,
    Feedback,
    Question,
    QuestionAnswered,
    QuestionAsked,
    QuestionWithdrawn,
    WithdrawQuestion,
)
from dragoman.core.task_state import (
    ActiveHandoff,
    MoveTask,
    RewindTask,
    SendBackTask,
    TaskEdited,
    TaskTransitioned,
    task_list_keys,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    claim,
    events_of,
    held,
    task,
    with_fields,
)
from tests.requirements import proves

ASK = AskQuestion("T", "Which port?")
ANSWER = AnswerQuestion("T", "8080")


def open_ids(world: World) -> list[str]:
    return [one.id for one in world.tasks["T"].questions]


def asked() -> World:
    """World in which alice, at work on T, has asked q1."""
    world = held()
    world.do(ALICE, ASK)
    return world


def asked_by_letter() -> World:
    """World in which alice has asked q1 by a letter to bob, the helper."""
    world = held()
    letter = PostMail(("bob",), "HELP_REQUEST", "Which port?", "HELP_REQUEST", "m", "th", bead="T")
    world.do(ALICE, replace(letter, answer_wanted=True, due_in_ms=60_000))
    world.do(ALICE, AskQuestion("T", "Which port?", by_letter=True, mail="m"))
    return world


def blocked() -> World:
    """World in which alice's report has blocked T."""
    world = held()
    report = ReportOutcome("T", "blocked", blockers=("no key", "no host"), apply=True)
    world.do(ALICE, report)
    return world


def refusal(world: World, actor: Any, command: Command) -> Refusal:
    found = world.decide(actor, command)
    assert isinstance(found, Refusal), found
    return found


# --- asking -----------------------------------------------------------------------------------


@proves("QUESTION-ASK")
def test_holder_asks_and_goes_on_working() -> None:
    world = held()
    decision = world.do(ALICE, ASK)
    assert events_of(decision) == [QuestionAsked("q1", "Which port?", "alice", 1)]
    assert decision.receipt.question == "q1"
    assert decision.receipt.status == "in-progress"
    assert decision.lease is not None
    found = world.tasks["T"]
    assert found.questions == (Question("q1", "Which port?", NOW, "alice", "ask", 1),)
    assert (found.status, found.notes) == ("in-progress", 1)
    assert task_list_keys(found) == (ATTENTION_LIST,)


@proves("QUESTION-ASK")
def test_same_question_again_is_that_one_even_when_it_was_answered() -> None:
    world = asked()
    again = world.do(ALICE, ASK)
    assert (events_of(again), again.receipt.question, again.receipt.is_repeat) == ([], "q1", True)
    world.do(HUMAN, ANSWER)
    again = world.do(ALICE, ASK)
    assert (events_of(again), again.receipt.question) == ([], "q1")
    assert world.do(ALICE, AskQuestion("T", "Which host?")).receipt.question == "q2"


@proves("QUESTION-ASK")
@pytest.mark.parametrize("actor", [BOB, OBSERVER], ids=["stranger", "observer"])
def test_strangers_and_observers_ask_nothing(actor: Any) -> None:
    assert held().code(actor, ASK) in ("unauthorized_agent", "not_authorized")


@proves("QUESTION-ASK")
def test_question_needs_a_text_and_a_task_that_goes_on() -> None:
    assert held().code(ALICE, AskQuestion("T", "  ")) == "invalid_field"
    assert held().code(ALICE, AskQuestion("T", "x" * (MAX_REASON + 1))) == "invalid_field"
    assert held().code(ALICE, AskQuestion("no", "why?")) == "task_not_found"
    for status in ("done", "cancelled"):
        ended = World(task("T", status, "alice", attempts=1, agents=("alice",)))
        assert "it has ended" in refusal(ended, ALICE, ASK).detail


@proves("QUESTION-ASK")
def test_open_questions_are_limited() -> None:
    world = held()
    for number in range(MAX_OPEN_QUESTIONS):
        world.do(ALICE, AskQuestion("T", f"{number}?"))
    refused = refusal(world, ALICE, ASK)
    assert (refused.code, "withdraw" in refused.detail) == ("invalid_field", True)
    world.do(ALICE, WithdrawQuestion("T", "q7"))
    assert world.do(ALICE, ASK).receipt.question == f"q{MAX_OPEN_QUESTIONS + 1}"


@proves("QUESTION-ASK")
def test_question_outlives_its_attempt() -> None:
    world = asked()
    world.do(ALICE, MoveTask("T", "ready"))
    assert open_ids(world) == ["q1"]
    # Its owner may ask while nobody works on it, too.
    world = World(task("T", "review", "alice", attempts=1, agents=("alice",)))
    assert events_of(world.do(ALICE, ASK)) == [QuestionAsked("q1", "Which port?", "alice")]


# --- answering --------------------------------------------------------------------------------


@proves("QUESTION-ANSWER")
@pytest.mark.parametrize("actor", [HUMAN, ORCHESTRATOR], ids=["human", "orchestrator"])
def test_answer_is_kept_with_the_task_and_sent_to_whoever_asked(actor: Any) -> None:
    world = asked()
    decision = world.do(actor, ANSWER, NOW + 5)
    answered, posted = events_of(decision)
    assert answered == QuestionAnswered("q1", "8080", actor.name)
    assert isinstance(posted, MailPosted)
    assert (posted.to, posted.kind, posted.thread) == (("alice",), "HELP_RESPONSE", "T")
    assert (posted.sender, posted.body) == (actor.name, "Bead: T\n\n8080\n")
    found = world.tasks["T"]
    assert found.questions == ()
    (kept,) = found.answers
    assert (kept.id, kept.answer, kept.answered_by) == ("q1", "8080", actor.name)
    assert kept.answered_at == NOW + 5
    assert found.status == "in-progress"


@proves("QUESTION-ANSWER")
def test_answer_needs_the_id_where_several_are_open() -> None:
    world = asked()
    world.do(ALICE, AskQuestion("T", "Which host? " + "x" * 300))
    refused = refusal(world, HUMAN, ANSWER)
    assert (refused.code, refused.path) == ("invalid_field", "question")
    assert "q1 'Which port?'" in refused.detail
    assert "…" in refused.detail
    world.do(HUMAN, AnswerQuestion("T", "localhost", "q2"))
    assert open_ids(world) == ["q1"]


@proves("QUESTION-ANSWER")
def test_second_answer_is_a_repeat_or_refused() -> None:
    world = asked()
    world.do(HUMAN, ANSWER)
    for command in (ANSWER, AnswerQuestion("T", "8080", "q1")):
        again = world.do(HUMAN, command)
        assert (events_of(again), again.receipt.is_repeat) == ([], True)
    other = refusal(world, HUMAN, AnswerQuestion("T", "9090", "q1"))
    assert (other.code, "'8080'" in other.detail) == ("already_answered", True)
    assert refusal(world, ORCHESTRATOR, ANSWER).code == "already_answered"
    assert refusal(world, HUMAN, AnswerQuestion("T", "9090")).code == "question_not_found"


@proves("QUESTION-ANSWER")
def test_nobody_answers_what_was_withdrawn_or_never_asked() -> None:
    world = asked()
    world.do(ALICE, WithdrawQuestion("T", "q1"))
    for question, which in (("", ""), ("q1", " q1"), ("q9", " q9")):
        refused = refusal(world, HUMAN, AnswerQuestion("T", "8080", question))
        assert (refused.code, refused.detail) == (
            "question_not_found",
            f"T has no open question{which}: see `dragoman task show T`",
        )
    assert world.code(HUMAN, AnswerQuestion("no", "8080")) == "task_not_found"
    assert asked().code(HUMAN, AnswerQuestion("T", "")) == "invalid_field"
    assert asked().code(HUMAN, AnswerQuestion("T", "x" * (MAX_REASON + 1))) == "invalid_field"


@proves("QUESTION-ANSWER")
def test_neither_the_one_who_asked_nor_a_stranger_answers() -> None:
    own = refusal(asked(), ALICE, ANSWER)
    assert (own.code, "Withdraw it" in own.detail) == ("not_authorized", True)
    stranger = refusal(asked(), BOB, ANSWER)
    may = "people, orchestrators and those for whom it is worked on may"
    assert (stranger.code, may in stranger.detail) == ("not_authorized", True)
    assert asked().code(COORDINATOR, ANSWER) == "not_authorized"
    assert asked().code(OBSERVER, ANSWER) == "not_authorized"
    own_block = refusal(blocked(), ALICE, AnswerQuestion("T", "it is in the vault"))
    assert "Move the task to ready" in own_block.detail


@proves("QUESTION-ANSWER")
def test_the_last_answers_are_kept() -> None:
    world = held()
    for number in range(1, KEPT_ANSWERS + 3):
        world.do(ALICE, AskQuestion("T", f"{number}?"))
        world.do(HUMAN, AnswerQuestion("T", "yes", f"q{number}"))
    kept = world.tasks["T"].answers
    assert [one.id for one in kept] == [f"q{n}" for n in range(3, KEPT_ANSWERS + 3)]


# --- blocked tasks ----------------------------------------------------------------------------


@proves("QUESTION-BLOCKED")
def test_blocked_report_is_a_question_and_its_answer_makes_the_task_ready() -> None:
    world = blocked()
    expected = Question("q1", "no key; no host", NOW, "alice", "blocked", 1)
    assert world.tasks["T"].questions == (expected,)
    decision = world.do(HUMAN, AnswerQuestion("T", "both are in the vault"))
    assert TaskTransitioned("blocked", "ready", "q1 was answered by hera") in events_of(decision)
    assert decision.receipt.status == "ready"
    found = world.tasks["T"]
    assert (found.status, found.questions) == ("ready", ())
    claim(world)
    assert world.tasks["T"].answers[0].answer == "both are in the vault"


@proves("QUESTION-BLOCKED")
def test_task_that_a_person_has_blocked_is_answered_like_any_other() -> None:
    world = World(task("T"))
    world.do(ORCHESTRATOR, MoveTask("T", "blocked"))
    assert world.tasks["T"].questions == (Question("q1", "", NOW, kind="blocked"),)
    answered, moved = events_of(world.do(HUMAN, AnswerQuestion("T", "go on")))
    assert isinstance(answered, QuestionAnswered)
    assert isinstance(moved, TaskTransitioned)
    # Work that is taken from its holder was not blocked by that one.
    world = held()
    world.do(HUMAN, MoveTask("T", "blocked", "wait for the vendor"))
    assert world.tasks["T"].questions[0].asked_by == ""


@proves("QUESTION-BLOCKED")
def test_blocked_task_becomes_ready_by_its_last_answer() -> None:
    world = asked()
    world.do(ALICE, ReportOutcome("T", "blocked", blockers=("no key",), apply=True))
    assert open_ids(world) == ["q1", "q2"]
    world.do(HUMAN, AnswerQuestion("T", "8080", "q1"))
    assert world.tasks["T"].status == "blocked"
    world.do(HUMAN, AnswerQuestion("T", "it is there now"))
    assert world.tasks["T"].status == "ready"


@proves("QUESTION-BLOCKED")
def test_task_that_waits_for_its_open_question_asks_no_other() -> None:
    world = asked()
    world.do(ALICE, ReportOutcome("T", "blocked", blockers=("Which port?",), apply=True))
    assert [(one.id, one.kind) for one in world.tasks["T"].questions] == [("q1", "ask")]
    world.do(HUMAN, ANSWER)
    assert world.tasks["T"].status == "ready"


@proves("QUESTION-BLOCKED")
def test_questions_end_with_what_they_are_about() -> None:
    world = asked()
    world.do(ALICE, ReportOutcome("T", "blocked", blockers=("no key",), apply=True))
    world.do(HUMAN, MoveTask("T", "ready"))
    assert open_ids(world) == ["q1"]
    world.do(HUMAN, MoveTask("T", "cancelled"))
    assert open_ids(world) == []
    assert world.code(HUMAN, ANSWER) == "question_not_found"


@proves("QUESTION-BLOCKED")
@pytest.mark.parametrize(("status", "expected"), [("done", []), ("ready", ["q1"])])
def test_rewind_closes_and_keeps_questions_like_any_move(
    status: Status, expected: list[str]
) -> None:
    world = asked()
    world.past["T", 1] = task("T", status)
    world.do(HUMAN, RewindTask("T", 1))
    assert open_ids(world) == expected


# --- letters ----------------------------------------------------------------------------------


@proves("QUESTION-HELP", "MAIL-HELP")
def test_answer_to_a_question_by_letter_closes_the_letter() -> None:
    world = asked_by_letter()
    assert world.tasks["T"].questions == (
        Question("q1", "Which port?", NOW, "alice", "help", 1, "m"),
    )
    answered, posted, closed = events_of(world.do(HUMAN, ANSWER))
    assert isinstance(answered, QuestionAnswered)
    assert isinstance(posted, MailPosted)
    assert (posted.thread, posted.reply_to) == ("th", "m")
    assert closed == MailAnswered("m", "hera", posted.id)
    assert not world.mails["m"].awaits_answer


@proves("QUESTION-HELP", "MAIL-HELP")
def test_answer_by_letter_answers_the_question() -> None:
    world = asked_by_letter()
    closed, answered = events_of(world.do(BOB, AnswerMail("m", text="8080")))
    assert isinstance(closed, MailAnswered)
    assert answered == QuestionAnswered("q1", "8080", "bob")
    assert world.tasks["T"].questions == ()
    assert world.code(BOB, AnswerMail("m", text="x" * (MAX_REASON + 1))) == "invalid_field"


@proves("QUESTION-HELP")
def test_helper_answers_only_what_its_letter_asks() -> None:
    world = asked_by_letter()
    world.do(ALICE, AskQuestion("T", "Which host?"))
    refused = refusal(world, BOB, AnswerQuestion("T", "localhost", "q2"))
    assert refused.code == "not_authorized"
    world.do(BOB, AnswerQuestion("T", "8080", "q1"))
    assert open_ids(world) == ["q2"]
    stranger = asked_by_letter()
    refused = refusal(stranger, replace(BOB, name="carol"), ANSWER)
    assert "and bob" in refused.detail


@proves("QUESTION-HELP")
def test_letter_about_no_task_and_one_that_asks_nothing_answer_no_question() -> None:
    letter = PostMail(("bob",), "HELP_REQUEST", "?", "HELP_REQUEST", "m", answer_wanted=True)
    for bead in ("", "T", "unknown"):
        world = asked()
        world.do(ALICE, replace(letter, bead=bead))
        assert len(events_of(world.do(BOB, AnswerMail("m", text="8080")))) == 1
        assert open_ids(world) == ["q1"]


@proves("QUESTION-HELP")
def test_letter_that_was_answered_before_is_not_closed_again() -> None:
    world = asked_by_letter()
    world.mails["m"] = replace(world.mails["m"], answer="n")
    assert len(events_of(world.do(HUMAN, ANSWER))) == 2


# --- withdrawing ------------------------------------------------------------------------------


@proves("QUESTION-WITHDRAW")
def test_whoever_asked_and_people_withdraw_a_question() -> None:
    for actor in (ALICE, HUMAN):
        world = asked()
        decision = world.do(actor, WithdrawQuestion("T", "q1"))
        assert events_of(decision) == [QuestionWithdrawn("q1", actor.name)]
        assert open_ids(world) == []


@proves("QUESTION-WITHDRAW")
def test_withdrawn_letter_waits_no_longer_and_its_recipients_are_told() -> None:
    world = asked_by_letter()
    _, posted, closed = events_of(world.do(ALICE, WithdrawQuestion("T", "q1")))
    assert isinstance(posted, MailPosted)
    assert (posted.to, posted.thread, posted.kind) == (("bob",), "th", "")
    assert closed == MailAnswered("m", "alice", posted.id)


@proves("QUESTION-WITHDRAW")
def test_what_cannot_be_withdrawn() -> None:
    world = asked()
    assert world.code(BOB, WithdrawQuestion("T", "q1")) == "unauthorized_agent"
    assert world.code(ALICE, WithdrawQuestion("T", "q2")) == "question_not_found"
    assert world.code(ALICE, WithdrawQuestion("no", "q1")) == "task_not_found"
    of_others = refusal(world, COORDINATOR, WithdrawQuestion("T", "q1"))
    assert (of_others.code, "alice has" in of_others.detail) == ("not_authorized", True)
    reason = refusal(blocked(), HUMAN, WithdrawQuestion("T", "q1"))
    assert "move the task" in reason.detail


# --- sending work back ------------------------------------------------------------------------


def in_review() -> World:
    return World(task("T", "review", "alice", attempts=1, agents=("alice",)))


@proves("TASK-SEND-BACK")
def test_sent_back_work_is_ready_for_the_same_agent_with_the_reason() -> None:
    world = in_review()
    decision = world.do(HUMAN, SendBackTask("T", "no tests"))
    assert events_of(decision) == [
        TaskEdited(reserved_for="alice"),
        TaskTransitioned("review", "ready", "no tests"),
    ]
    assert decision.receipt.status == "ready"
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.reserved_for) == ("ready", "alice", "alice")
    assert found.feedback == (Feedback("no tests", NOW),)
    claim(world)
    assert world.tasks["T"].feedback == (Feedback("no tests", NOW),)


@proves("TASK-SEND-BACK")
def test_feedback_of_earlier_reviews_is_kept() -> None:
    world = in_review()
    for number in range(KEPT_FEEDBACK + 1):
        world.do(HUMAN, SendBackTask("T", f"reason {number}"))
        claim(world)
        world.do(ALICE, ReportOutcome("T", "done", apply=True))
    kept = [one.text for one in world.tasks["T"].feedback]
    assert kept == [f"reason {n}" for n in range(1, KEPT_FEEDBACK + 1)]
    # A move without a reason says nothing that the next attempt could use.
    world.do(HUMAN, MoveTask("T", "ready"))
    assert [one.text for one in world.tasks["T"].feedback] == kept


@proves("TASK-SEND-BACK")
def test_work_that_is_handed_over_stays_with_its_claimant() -> None:
    active = ActiveHandoff("h", "alice", "bob", is_taken=True)
    world = with_fields(in_review(), handoff=active)
    decision = world.do(HUMAN, SendBackTask("T", "no tests"))
    assert events_of(decision) == [TaskTransitioned("review", "ready", "no tests")]


@proves("TASK-SEND-BACK")
def test_only_reviewers_send_back_and_only_work_in_review() -> None:
    assert in_review().code(ALICE, SendBackTask("T", "no tests")) == "not_authorized"
    assert in_review().code(BOB, SendBackTask("T", "no tests")) == "unauthorized_agent"
    assert in_review().code(HUMAN, SendBackTask("T", " ")) == "invalid_field"
    assert in_review().code(HUMAN, SendBackTask("no", "no tests")) == "task_not_found"
    assert held().code(HUMAN, SendBackTask("T", "no tests")) == "invalid_transition"
