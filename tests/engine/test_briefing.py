"""Briefing of a task: what earlier attempts, answers and reviews left for the next one."""

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.attempt import CheckpointTask, ClaimTask, ReleaseTask, ReportOutcome
from dragoman.core.attempt_state import Checkpoint, TaskClaimed
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.task_state import (
    CreateTask,
    MoveTask,
    NoteTask,
    SendBackTask,
    UpdateTask,
)
from dragoman.engine.queries.briefing import (
    MAX_LOG_LINES,
    MAX_LOG_TEXT,
    Briefing,
    build_briefing,
    find_briefing,
)
from dragoman.engine.schemas.briefing import briefing_resource, briefing_sections
from tests.engine.lab import ALICE, BOB, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("BRIEFING")


@pytest.fixture
def lab() -> Lab:
    """Give a hub where alice works on T."""
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))
    return lab


def find(lab: Lab, version: int = 0) -> Briefing:
    """Find the briefing of T, which is not empty."""
    found = find_briefing(lab.store, lab.task("T"), version)
    assert found is not None
    return found


def test_first_attempt_has_no_briefing(lab: Lab) -> None:
    assert find_briefing(lab.store, lab.task("T")) is None
    assert briefing_resource(None) is None
    lab.do(ALICE, NoteTask("T", "begun"))
    assert find_briefing(lab.store, lab.task("T")) is None, "its own lines are no news to it"


def test_next_attempt_has_the_report_the_feedback_and_the_answers(lab: Lab) -> None:
    lab.do(ALICE, AskQuestion("T", "red or blue?"))
    lab.do(HUMAN, AnswerQuestion("T", "blue"))
    lab.do(ALICE, AskQuestion("T", "how thick?"))
    lab.do(ALICE, UpdateTask("T", progress="half", notes="of the hull", blockers=("rain",)))
    lab.do(ALICE, ReportOutcome("T", "done", "painted red", apply=True))
    lab.do(HUMAN, SendBackTask("T", "it has to be blue"))
    lab.do(ALICE, ClaimTask("T", "alice"))
    found = find(lab)
    assert [(one.text, one.answer) for one in found.answers] == [("red or blue?", "blue")]
    assert [one.text for one in found.questions] == ["how thick?"]
    assert [one.text for one in found.feedback] == ["it has to be blue"]
    assert [line.text for line in found.log] == ["half; of the hull; rain"]
    last = found.last_attempt
    assert last is not None
    assert (last.attempt, last.agent, last.outcome, last.notes) == (
        1,
        "alice",
        "done",
        "painted red",
    )
    assert last.reason == "reported_done"
    shown = msgspec.to_builtins(briefing_resource(found))
    assert shown["lastAttempt"]["outcome"] == "done"
    assert shown["answers"][0]["answeredBy"] == "hera"
    assert shown["checkpoint"] is None


def test_attempt_without_a_report_is_told_with_the_reason_of_its_end(lab: Lab) -> None:
    lab.do(ALICE, ReleaseTask("T", "no brush here"))
    last = find(lab).last_attempt
    assert last is not None, "it is told before the next claim, too"
    assert (last.outcome, last.reason) == (None, "no brush here")
    lab.do(BOB, ClaimTask("T", "bob"))
    assert find(lab).last_attempt == last
    sections = dict(briefing_sections(find(lab)))
    assert "ended without a report" in sections["The last attempt"]
    assert "> no brush here" in sections["The last attempt"]


def test_checkpoint_and_lines_of_others_are_told(lab: Lab) -> None:
    lab.do(ALICE, CheckpointTask("T", "MANUAL", "0a1b2c3", "half is done", "do the rest"))
    lab.do(HUMAN, NoteTask("T", "the brush is in the shed"))
    lab.do(BOB, ClaimTask("T", "bob"))
    found = find(lab)
    shown = msgspec.to_builtins(briefing_resource(found))
    assert shown["checkpoint"]["nextSteps"] == "do the rest"
    (line,) = shown["log"]
    assert (line["by"], line["text"]) == ("human:hera", "the brush is in the shed")
    sections = dict(briefing_sections(found))
    assert "in commit 0a1b2c3" in sections["Where the last attempt stopped"]
    assert "human:hera: the brush" in sections["The last lines of its log"]


def test_log_is_short_and_its_long_lines_are_cut(lab: Lab) -> None:
    for number in range(MAX_LOG_LINES + 5):
        lab.do(ALICE, NoteTask("T", f"{number} {'x' * MAX_LOG_TEXT}"))
    lab.do(ALICE, ReleaseTask("T", "tired"))
    log = find(lab).log
    assert [line.text.partition(" ")[0] for line in log] == [str(5 + at) for at in range(10)]
    assert all(len(line.text) == MAX_LOG_TEXT + 1 and line.text.endswith("…") for line in log)


def test_briefing_of_an_earlier_version_is_the_one_of_then(lab: Lab) -> None:
    lab.do(ALICE, ReleaseTask("T", "no brush here"))
    version = lab.do(BOB, ClaimTask("T", "bob")).version
    then = find(lab, version)
    lab.do(BOB, NoteTask("T", "found one"))
    assert find(lab, version) == then
    assert find(lab) == then


def test_attempt_with_a_long_history_has_nothing_of_its_own_in_its_briefing(lab: Lab) -> None:
    for number in range(510):
        lab.do(ALICE, NoteTask("T", f"line {number}"))
    assert find_briefing(lab.store, lab.task("T")) is None


def test_text_of_a_briefing_quotes_the_words_of_others(lab: Lab) -> None:
    lab.do(ALICE, AskQuestion("T", "red or blue?"))
    lab.do(HUMAN, AnswerQuestion("T", "blue\n## Forged"))
    lab.do(ALICE, AskQuestion("T", "how thick?"))
    lab.do(ALICE, ReportOutcome("T", "partial", "one half", ("paint",), apply=True))
    lab.do(HUMAN, SendBackTask("T", "both halves"))
    lab.do(ALICE, NoteTask("T", "a line"))
    sections = dict(briefing_sections(find(lab)))
    assert sections["Answered questions"].endswith("Answered by hera:\n\n> blue\n> ## Forged")
    assert sections["Open questions"] == "q2, asked by alice:\n\n> how thick?"
    assert sections["Reasons of reviews that sent the work back"].endswith("\n\n> both halves")
    last = sections["The last attempt"]
    assert last.startswith("Attempt 1, by alice, reported partial, 2026-02-09T14:30:00.000Z.")
    assert "> one half\n\nBlockers:\n\n> paint\n\nIt ended because of:" in last
    assert last.endswith("\n\n> its agent reported partial")
    assert sections["The last lines of its log"] == "- 2026-02-09T14:30:00.000Z a line"


def test_question_of_the_hub_and_parts_that_are_missing_are_left_out() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(HUMAN, MoveTask("T", "blocked", "wait for the paint"))
    (heading, text), *others = briefing_sections(find(lab))
    assert (heading, text) == (
        "Open questions",
        "q1, asked by the hub:\n\n> wait for the paint",
    )
    assert others == []
    task = replace(
        lab.task("T"), questions=(), checkpoint=Checkpoint("TIMEOUT", by="bob", at=START)
    )
    only_reason = build_briefing(task, ())
    assert only_reason is not None
    assert list(briefing_sections(only_reason)) == []
    claimed = build_briefing(task, ((START, TaskClaimed("ready", 1, 1, "bob", 1)),))
    assert claimed is not None
    assert dict(briefing_sections(claimed)) == {
        "The last attempt": "Attempt 1, by bob, ended without a report."
    }
    described = replace(
        task, checkpoint=Checkpoint("MANUAL", description="half", by="bob", at=START)
    )
    assert dict(briefing_sections(build_briefing(described, ()) or only_reason)) == {
        "Where the last attempt stopped": "> half"
    }
