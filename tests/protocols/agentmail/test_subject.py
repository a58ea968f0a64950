"""Subjects: position of the type and of the bead id."""

import pytest

from dragoman.protocols.agentmail import MessageType, Parser
from tests.protocols.agentmail.letters import parse
from tests.requirements import proves

LEADING = {
    "done": "DONE",
    "Done.": "DONE",
    "DONE!": "DONE",
    "  spawn_ack  ": "SPAWN_ACK",
    "Re: done": "DONE",
    "RE: Fwd: fw: done now": "DONE",
    "Re:[ol-1] done": "DONE",
    "[ol-1] Re: done": "DONE",
    "[ol-1]: done": "DONE",
    "[ol-1]done": "DONE",
    "ol-1: done": "DONE",
    "ol-1:done": "DONE",
    "ol-1 : done": "DONE",
    "Progress (half)": "PROGRESS",
    "checkpoint/handover": "CHECKPOINT",
    "[ol-1]\u00a0done": "DONE",
    "[ol-1]\u2003:\u00a0Re:\u00a0done": "DONE",
    "ol-1:\u00a0done": "DONE",
    "Re\u00a0:\u00a0done": "DONE",
}
ELSEWHERE = {
    "all DONE": "DONE",
    "(DONE)": "DONE",
    "**FAILED**": "FAILED",
    "[DONE] auth": "DONE",
    "Note: FAILED": "FAILED",
    "urgent, HELP_REQUEST!": "HELP_REQUEST",
    "ABANDONED, not DONE": "DONE",
}
NOWHERE = [
    "ABANDONED",
    "all done",
    "Note: done",
    "abc: done",
    "UNDONE",
    "DONE_ISH",
    "NOT-DONE",
    "DONE-ish",
    "DONE.md is new",
    "DONEß",
    "PROGRESS\u0301",
    "all DONE\u0336",
    "PROGRE\u017f\u017f",
    "chec\u212apoint",
    "progreß",
    "ＤＯＮＥ",
    "Re:",
    "[",
    "[]",
    ":",
    "\x00",
    "UNKNOWN",
]


@proves("MAIL-TYPE")
@pytest.mark.parametrize(("subject", "type"), [*LEADING.items(), *ELSEWHERE.items()])
def test_type_counts_at_the_start_or_in_capitals(subject: str, type: str) -> None:
    assert parse(subject).type == type


@proves("MAIL-TYPE")
@pytest.mark.parametrize("subject", NOWHERE)
def test_other_subjects_are_unknown_with_a_problem(subject: str) -> None:
    message = parse(subject)
    assert message.type is MessageType.UNKNOWN
    assert [problem.name for problem in message.problems] == ["unknown_type"]


@proves("MAIL-TYPE")
@pytest.mark.parametrize(
    ("subject", "first"),
    [("DONE but FAILED", "DONE"), ("all FAILED, not DONE", "FAILED"), ("done? FAILED", "DONE")],
)
def test_first_of_two_types_counts_with_a_problem(subject: str, first: str) -> None:
    message = parse(subject)
    assert message.type == first
    assert [problem.name for problem in message.problems] == ["two_types"]


@proves("MAIL-TYPE")
def test_repeated_type_is_one_type() -> None:
    assert parse("DONE, really DONE").problems == ()


BEADS = {
    "[ol-527.1] PROGRESS": "ol-527.1",
    "[ ol-527.1\t] PROGRESS": "ol-527.1",
    "[auth] DONE": "auth",
    "ol-1 : DONE": "ol-1",
    "Re: [a-1] DONE": "a-1",
    "[`a-1`] DONE": "a-1",
    "[ **a-1** ] DONE": "a-1",
    "Re: `a-1`: DONE": "a-1",
    "`a-1` : done": "a-1",
    "a-1: DONE": "a-1",
    "v2: DONE": "v2",
    "a.b: nothing known": "a.b",
    "a-1:DONE": "a-1",
    "[a-1] b-2: DONE": "a-1",
    "[two words] DONE": "",
    "[DONE] PROGRESS": "",
    "[a-1 DONE": "",
    "DONE [a-1]": "",
    "12:30 DONE": "",
    "Re[2]: DONE": "",
    "status update: DONE": "",
    "help_request: x": "",
    "abc: DONE": "",
    f"{'a-' * 80}: DONE": "",
}


@proves("MAIL-BEAD")
@pytest.mark.parametrize(("subject", "bead_id"), BEADS.items())
def test_id_before_the_type_is_the_bead(subject: str, bead_id: str) -> None:
    assert parse(subject).bead_id == bead_id


@proves("MAIL-BEAD", "MAIL-TYPE")
def test_word_before_a_colon_is_a_bead_if_a_task_has_that_name() -> None:
    parser = Parser(is_known={"auth"}.__contains__)

    assert parser.parse({"subject": "auth: done"}).bead_id == "auth"
    assert parser.parse({"subject": "auth: done"}).type is MessageType.DONE
    assert parser.parse({"subject": "note: DONE"}).bead_id == ""


@proves("MAIL-BEAD")
def test_bead_of_the_body_wins_with_a_problem() -> None:
    message = parse("[a-1] PROGRESS", "Step: x\nBead: b-2")
    (problem,) = message.problems

    assert message.bead_id == "b-2"
    assert (problem.name, problem.line) == ("bead_mismatch", 2)
    assert parse("[a-1] PROGRESS", "Bead: a-1").problems == ()


@proves("MAIL-BEAD")
@pytest.mark.parametrize("type", ["SPAWN_REQUEST", "SPAWN_ACK"])
@pytest.mark.parametrize(
    ("subject", "body"),
    [("{}", "Issue: a-1"), ("{}", "Bead: x-9\nIssue: a-1"), ("{}", "Bead: a-1"), ("[a-1] {}", "")],
)
def test_issue_of_spawn_letters_is_the_bead(type: str, subject: str, body: str) -> None:
    parsed = parse(subject.format(type), body).parsed
    assert (parsed.issue_id, parsed.bead_id) == ("a-1", "a-1")


@proves("MAIL-BEAD")
def test_issue_of_other_letters_and_thread_are_no_bead() -> None:
    assert parse("PROGRESS", "Issue: a-1", thread_id="a-1").bead_id == ""
    assert parse("hello", "Bead: a-1").bead_id == "a-1"
